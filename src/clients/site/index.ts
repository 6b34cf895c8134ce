/** Exports `callboard/site`, the client of a viewer of a cooperative site, in a browser. Needs only `fetch`. */
export { CooperativeSiteBrowserClient } from './client.ts';
export { SiteError, type SiteErrorDetails } from './site-types.ts';
export type {
  SiteClientOptions,
  SiteEvent,
  SiteGap,
  SiteInvocation,
  SiteInvokeOptions,
  StreamStatus,
  SubscribeOptions,
} from './site-types.ts';
export type { Failure, Outcome } from '../caller/caller-types.ts';
export type { Clock } from '../link/platform.ts';
export type { TokenSource } from '../link/socket.ts';
