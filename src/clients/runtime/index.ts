/**
 * Exports `callboard/runtime`, with which a program connects as a client, advertises actions and runs commands, in Node
 * and in browsers.
 */
export { createRuntime, newContextId } from './runtime.ts';
export {
  ActionCancelled,
  ActionError,
  PauseRefusedError,
  SiteRefusedError,
  type ActionErrorCode,
} from './action-errors.ts';
export { newClientId } from '../link/page.ts';
export { defineActions } from '../link/actions.ts';
export type * from '../link/actions.ts';
export type * from './types.ts';
export type { ReportChanges, ReportedContext, ReportedWindow } from './reports.ts';
export { LinkClosedError, type LinkStatus, type Welcome } from '../link/link-status.ts';
export { rawJson, type RawJson } from '../link/raw-json.ts';
export { type Clock } from '../link/platform.ts';
export type { SocketConstructor, SocketLike } from '../link/platform.ts';
export type { TokenSource } from '../link/reconnect.ts';
export type { ErrorCode } from '../link/library-error.ts';
export type { TraceApi } from '../link/spans.ts';
