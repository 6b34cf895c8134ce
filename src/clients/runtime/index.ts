/** Exports `callboard/runtime`, a client that advertises actions and runs commands, in Node and browsers. */
export { createRuntime, newContextId } from './runtime.ts';
export { ActionCancelled, ActionError, SiteRefusedError, type ActionErrorCode } from './ends.ts';
export { newClientId } from '../link/page.ts';
export { defineActions } from '../link/actions.ts';
export type * from '../link/actions.ts';
export type * from './types.ts';
export type { ReportChanges, ReportedContext, ReportedWindow } from './reports.ts';
export { LinkClosedError, rawJson, type Clock, type LinkStatus, type RawJson, type Welcome } from '../link/platform.ts';
export type { SocketConstructor, SocketLike, TokenSource } from '../link/platform.ts';
export type { ErrorCode, TraceApi } from '../link/relay-request.ts';
