/** Bounds what GraphQL takes without a token: the rate per address and the size of bodies. It does not authenticate. */
import type { IncomingMessage } from 'node:http';
import type { Clock } from '../core/clock.ts';
import { fail } from '../core/errors.ts';
import { ANONYMOUS_BODY_BYTES, ANONYMOUS_BURST, ANONYMOUS_RATE } from '../core/limits.ts';
import { RateTable, TokenBucket } from '../core/rates.ts';

/** The greatest number of addresses that are remembered. Beyond it, the least recently used is forgotten. */
const ADDRESSES = 10_000;

/** Limits GraphQL requests without a token, by address. */
export type AnonymousRate = {
  /**
   * Counts one request of this address. Over the limit it throws `rate_limited` with the time to wait, and counts
   * nothing.
   */
  take(address: string): void;
};

/** Creates the limit, with one token bucket per address. */
export function createAnonymousRate(clock: Clock): AnonymousRate {
  const rate = { perSecond: ANONYMOUS_RATE, burst: ANONYMOUS_BURST };
  const buckets = new RateTable(ADDRESSES, () => new TokenBucket(clock, rate));
  return {
    take(address) {
      const retryAfterMs = buckets.of(address).take();
      if (retryAfterMs === 0) return;
      fail('rate_limited', 'Too many GraphQL requests without a token from this address.', { retryAfterMs });
    },
  };
}

/** Bounds what GraphQL accepts without a token. */
export type AnonymousGate = {
  /** The largest body that is read. */
  readonly bodyBytes: number;
  /**
   * Throws `rate_limited` as `AnonymousRate` does, and `unauthenticated` if the announced body is larger than is
   * accepted without a token.
   */
  admit(request: IncomingMessage, address: string): void;
};

/** Creates the gate. `maxBodyBytes`: the largest body that is read with a token. */
export function createAnonymousGate(clock: Clock, maxBodyBytes: number): AnonymousGate {
  const rate = createAnonymousRate(clock);
  const bodyBytes = Math.min(maxBodyBytes, ANONYMOUS_BODY_BYTES);
  return {
    bodyBytes,
    admit({ headers }, address) {
      rate.take(address);
      const announced = Number(headers['content-length'] ?? 0);
      if (announced > bodyBytes && announced <= maxBodyBytes) fail('unauthenticated', 'A bearer token is needed.');
    },
  };
}
