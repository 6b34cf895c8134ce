/** Exports `callboard/caller`, which invokes, awaits and cancels commands, over HTTP or over one link. */
export { createHttpCaller, type HttpCallerOptions } from './http-caller.ts';
export { createLinkCaller, type LinkCallerOptions } from './link-caller.ts';
export { CallerError, type CallerErrorDetails } from './caller-types.ts';
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
} from './caller-types.ts';
export type { Clock } from '../link/platform.ts';
export { rawJson, type RawJson } from '../link/platform.ts';
export type { LinkStatus, Welcome } from '../link/socket.ts';
export type { SocketConstructor, SocketLike } from '../link/socket.ts';
export type { TokenSource } from '../link/socket.ts';
export type { TraceApi } from '../link/relay-request.ts';
