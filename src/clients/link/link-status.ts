/** The states of a link, and the relay's welcome. */
import { JSON_DEPTH, MAX_FRAME_BYTES } from '../../protocol/bounds.ts';
import type { DownFrame } from '../../protocol/frames.ts';

export type Welcome = Extract<DownFrame, { type: 'welcome' }>;

/** The bounds that the relay sets for frames and payloads. */
export type LinkBounds = { readonly maxFrameBytes: number; readonly maxDepth: number };

/** The bounds of the protocol. They are used until the first `welcome`, and over HTTP. */
export const BOUNDS: LinkBounds = { maxFrameBytes: MAX_FRAME_BYTES, maxDepth: JSON_DEPTH };

export function boundsOf({ max_frame_bytes, max_depth = JSON_DEPTH }: Welcome): LinkBounds {
  return { maxFrameBytes: max_frame_bytes, maxDepth: max_depth };
}

/**
 * The state of a link:
 *
 * - `connecting`: a socket is being opened. `attempt` counts the failures since the last stable link.
 * - `connected`: the relay has sent `welcome`.
 * - `disconnected`: there is no link. `retryInMs` is the time until the next attempt, in milliseconds; null before
 * `connect` is called.
 * - `closed`: the link is closed permanently: by `close()` (reason `client_closed`, or `closed` for a caller), or
 * because the relay says not to reconnect or refuses a constant token.
 *
 * `reason` is the name of the close code if there was one. Otherwise it is `connection_lost`, `connect_timeout`,
 * `connect_failed`, `heartbeat_lost`, `token_failed`, or before the first attempt `not_connected`. `message` tells a
 * person what happened and what to do.
 */
export type LinkStatus =
  | { readonly state: 'connecting'; readonly attempt: number }
  | { readonly state: 'connected'; readonly welcome: Welcome }
  | {
      readonly state: 'disconnected';
      readonly reason: string;
      readonly message: string;
      readonly retryInMs: number | null;
    }
  | { readonly state: 'closed'; readonly reason: string; readonly message: string };

/**
 * The error of a runtime whose link is closed permanently. `ready()` rejects with it, and so do requests to register or
 * remove a site or to pause the client.
 */
export class LinkClosedError extends Error {
  readonly reason: string;

  constructor({ reason, message }: { readonly reason: string; readonly message: string }) {
    super(`The link is closed: ${reason}. ${message}`);
    this.name = 'LinkClosedError';
    this.reason = reason;
  }
}
