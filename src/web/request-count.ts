/** Counts the requests in progress of each holder in the share `requests`. */
import type { Holdings } from '../core/shares/shares.ts';
import type { HttpResponse } from './request.ts';

/** The holders of the requests that are counted now, by response. */
const counted = new WeakMap<HttpResponse, Holdings>();

/** Counts a request until `requestDone`. Throws `share_exceeded` or `store_full` if the holder has too many. */
export function requestBegan(response: HttpResponse, holdings: Holdings): void {
  // The requester may have disconnected while its token was checked.
  if (response.destroyed) return;
  holdings.claim('requests', 1);
  counted.set(response, holdings);
}

/**
 * Stops counting a request in the share `requests`. Called in three cases: the response has ended; the response becomes
 * an event stream, which counts as a socket instead; an operation begins that may wait. Such an operation counts in the
 * share `waits`, and a burst of calls that `waits` allows must not be refused by `requests`. Idempotent.
 */
export function requestDone(response: HttpResponse): void {
  const holdings = counted.get(response);
  if (!holdings) return;
  counted.delete(response);
  holdings.release('requests', 1);
}
