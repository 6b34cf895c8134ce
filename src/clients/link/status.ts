import type { DownFrame } from '../../protocol/frames.ts';

export type Welcome = Extract<DownFrame, { type: 'welcome' }>;

/**
 * `connecting`: a socket is being opened. `connected`: the relay said welcome. `disconnected`: no link; it comes back in `retryInMs` (null:
 * `connect` was not called yet). `closed`: for good, by `close()` (reason `client_closed`) or because the relay's close code says that
 * coming back is of no use. A reason is the name of a close code where there was one, else `connection_lost`, `connect_timeout`,
 * `connect_failed`, `heartbeat_lost` or `token_failed`.
 */
export type LinkStatus =
  | { readonly state: 'connecting'; readonly attempt: number }
  | { readonly state: 'connected'; readonly welcome: Welcome }
  | { readonly state: 'disconnected'; readonly reason: string; readonly retryInMs: number | null }
  | { readonly state: 'closed'; readonly reason: string };

/** What `ready()` rejects with, and what ends every wait of a link that was closed for good. */
export class LinkClosedError extends Error {
  readonly reason: string;

  constructor(reason: string) {
    super(`The link is closed: ${reason}.`);
    this.name = 'LinkClosedError';
    this.reason = reason;
  }
}
