/** Defines the states of a link, as users of the client libraries see them. */
import type { DownFrame } from '../../protocol/frames.ts';

export type Welcome = Extract<DownFrame, { type: 'welcome' }>;

/**
 * The state of a link:
 *
 * - `connecting`: a socket is being opened. `attempt` counts the failures since the last stable link.
 * - `connected`: the relay sent `welcome`.
 * - `disconnected`: there is no link. `retryInMs` is the time until the next attempt, in milliseconds; null before
 *   `connect` is called.
 * - `closed`: the link is closed permanently, by `close()` (reason `client_closed`) or because the relay's close code
 *   says not to reconnect.
 *
 * `reason` is the name of the close code if there was one, otherwise `connection_lost`, `connect_timeout`,
 * `connect_failed`, `heartbeat_lost`, `token_failed`, or `not_connected` before the first attempt.
 */
export type LinkStatus =
  | { readonly state: 'connecting'; readonly attempt: number }
  | { readonly state: 'connected'; readonly welcome: Welcome }
  | { readonly state: 'disconnected'; readonly reason: string; readonly retryInMs: number | null }
  | { readonly state: 'closed'; readonly reason: string };

/** The error with which `ready()` and every pending wait reject when the link is closed permanently. */
export class LinkClosedError extends Error {
  readonly reason: string;

  constructor(reason: string) {
    super(`The link is closed: ${reason}.`);
    this.name = 'LinkClosedError';
    this.reason = reason;
  }
}
