/** Exports `callboard/site`, the client of a viewer of a cooperative site, in a browser. Needs only `fetch`. */
export { CooperativeSiteBrowserClient, SiteError, type SiteErrorDetails } from './client.ts';
export type {
  SiteClientOptions,
  SiteEvent,
  SiteGap,
  SiteInvocation,
  SiteInvokeOptions,
  StreamStatus,
  SubscribeOptions,
} from './client.ts';
export type { Failure, Outcome } from '../caller/caller.ts';
export type { Clock, TokenSource } from '../link/platform.ts';
