/** Exports `callboard/caller`, which invokes, awaits and cancels commands, over HTTP or over one link. */
export { createHttpCaller, CallerError, type CallerErrorDetails, type HttpCallerOptions } from './caller.ts';
export { createLinkCaller, type LinkCallerOptions } from './link-caller.ts';
export { defineActions } from '../link/actions.ts';
export type * from '../link/actions.ts';
export type {
  ActionCaller,
  AwaitOptions,
  Caller,
  Evidence,
  Failure,
  Handle,
  Invocation,
  InvokeOptions,
  Outcome,
  Receipt,
  Target,
} from './caller.ts';
export { rawJson, type Clock, type LinkStatus, type RawJson, type Welcome } from '../link/platform.ts';
export type { SocketConstructor, SocketLike, TokenSource } from '../link/platform.ts';
export type { ErrorCode, ProgressUpdate, TraceApi } from '../link/relay-request.ts';
