/** Counts the requests that are in progress, each in the share `requests` of its holder. */
import type { Holdings } from '../core/shares/shares.ts';
import type { HttpResponse } from './request.ts';

/** The requests that count in the share `requests`, by their response. */
const counted = new WeakMap<HttpResponse, Holdings>();

/** Counts a request until `requestDone`. Throws `share_exceeded` or `store_full` if the holder has too many. */
export function requestBegan(response: HttpResponse, holdings: Holdings): void {
  // The requester may have hung up while its token was checked.
  if (response.destroyed) return;
  holdings.claim('requests', 1);
  counted.set(response, holdings);
}

/**
 * Ends the counting of a request. Called when its response has ended or becomes an event stream, which counts as a
 * socket. Also called when an operation that may wait begins: the share `waits` counts it, and a burst of calls that
 * `waits` allows must not be refused here. Idempotent.
 */
export function requestDone(response: HttpResponse): void {
  const holdings = counted.get(response);
  if (!holdings) return;
  counted.delete(response);
  holdings.release('requests', 1);
}
