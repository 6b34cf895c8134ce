/** Counts the HTTP requests in progress of each holder, as the share `requests`. */
import type { ServerResponse } from 'node:http';
import type { Holdings } from '../core/shares/shares.ts';

/** The requests that count, by their response. An entry is removed when its request no longer counts. */
const counted = new WeakMap<ServerResponse, Holdings>();

/**
 * Counts a request of the holder from now on, until `requestDone`. Throws `share_exceeded` or `store_full` (share
 * `requests`) if the holder may have no further one.
 */
export function requestBegan(response: ServerResponse, holdings: Holdings): void {
  // The requester may have hung up while its token was checked.
  if (response.destroyed) return;
  holdings.claim('requests', 1);
  counted.set(response, holdings);
}

/**
 * Ends the counting of a request: its response has ended or has become an event stream, or its mutation begins. A
 * stream holds a socket, and a call counts in the share `waits`, so neither uses up what other requests need. A
 * mutation is not counted while the store answers, because a burst of calls would then be refused that `waits` allows.
 * Idempotent.
 */
export function requestDone(response: ServerResponse): void {
  const holdings = counted.get(response);
  if (!holdings) return;
  counted.delete(response);
  holdings.release('requests', 1);
}
