/** Exports `callboard/caller`, which invokes, awaits and cancels commands, over HTTP or over one link. */
export { createHttpCaller, type HttpCallerOptions } from './http.ts';
export { createLinkCaller, type LinkCallerOptions } from './link.ts';
export { CallerError, type CallerErrorDetails } from './errors.ts';
export type {
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
} from './types.ts';
export type { Clock } from '../link/clock.ts';
export { rawJson, type RawJson } from '../link/raw.ts';
export type { LinkStatus, Welcome } from '../link/status.ts';
export type { SocketConstructor, SocketLike } from '../link/socket.ts';
export type { TokenSource } from '../link/token.ts';
export type { TraceApi } from '../link/tracing.ts';
