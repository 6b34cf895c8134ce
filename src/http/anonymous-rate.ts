/** Bounds what GraphQL takes without a token: the rate per address and the size of bodies. It does not authenticate. */
import type { IncomingMessage } from 'node:http';
import type { Clock } from '../core/clock.ts';
import { fail } from '../core/errors.ts';
import { ANONYMOUS_BODY_BYTES, ANONYMOUS_BURST, ANONYMOUS_RATE } from '../core/limits.ts';
import { createTtlCache } from './ttl-cache.ts';

/** The greatest number of addresses that are remembered. Beyond it, the oldest is forgotten. */
const ADDRESSES = 10_000;

/** Limits GraphQL requests without a token, by address. */
export type AnonymousRate = {
  /**
   * Counts one request of this address. Over the limit it throws `rate_limited` with the time to wait, and counts
   * nothing.
   */
  take(address: string): void;
};

/**
 * Keeps one token bucket per address, for at most 10 000 addresses: beyond that it drops the least recently counted.
 */
export function createAnonymousRate(clock: Clock): AnonymousRate {
  // After this long without requests a bucket is full again, so it may be dropped.
  const ms = Math.ceil((ANONYMOUS_BURST / ANONYMOUS_RATE) * 1000);
  const buckets = createTtlCache<{ readonly tokens: number; readonly at: number }>({ clock, size: ADDRESSES, ms });
  return {
    take(address) {
      const now = clock.now();
      const { tokens: before, at } = buckets.get(address) ?? { tokens: ANONYMOUS_BURST, at: now };
      const tokens = Math.min(ANONYMOUS_BURST, before + ((now - at) / 1000) * ANONYMOUS_RATE);
      if (tokens < 1) {
        const retryAfterMs = Math.ceil(((1 - tokens) / ANONYMOUS_RATE) * 1000);
        fail('rate_limited', 'Too many GraphQL requests without a token from this address.', { retryAfterMs });
      }
      buckets.set(address, { tokens: tokens - 1, at: now });
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
