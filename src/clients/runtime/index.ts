/** Exports `callboard/runtime`, a client that advertises actions and runs commands, in Node and browsers. */
export { createRuntime } from './runtime.ts';
export { ActionCancelled, ActionError, SiteRefusedError, type ActionErrorCode } from './ends.ts';
export { LinkClosedError, type LinkStatus, type Welcome } from '../link/socket.ts';
export type {
  Action,
  ActionRequest,
  ActionSpec,
  Call,
  Drop,
  Handler,
  Judge,
  Params,
  Runtime,
  RuntimeOptions,
  SiteCall,
  SiteDefinition,
  SiteRegistration,
  Verdict,
} from './types.ts';
export type { ReportedContext, ReportedWindow } from './reports.ts';
export type { ReportChanges } from './reports.ts';
export type { Clock } from '../link/platform.ts';
export { rawJson, type RawJson } from '../link/platform.ts';
export type { SocketConstructor, SocketLike } from '../link/socket.ts';
export type { TokenSource } from '../link/socket.ts';
export type { TraceApi } from '../link/relay-request.ts';
