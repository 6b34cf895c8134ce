/** Exports `callboard/runtime`, a client that advertises actions and runs commands, in Node and browsers. */
export { createRuntime } from './runtime.ts';
export { ActionCancelled, ActionError, SiteRefusedError, type ActionErrorCode } from './errors.ts';
export { LinkClosedError, type LinkStatus, type Welcome } from '../link/status.ts';
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
export type { ReportedContext, ReportedWindow } from './report-rows.ts';
export type { ReportChanges } from './report-state.ts';
export type { Clock } from '../link/clock.ts';
export { rawJson, type RawJson } from '../link/raw.ts';
export type { SocketConstructor, SocketLike } from '../link/socket.ts';
export type { TokenSource } from '../link/token.ts';
export type { TraceApi } from '../link/tracing.ts';
