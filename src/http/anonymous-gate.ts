/** Limits the rate and the body size of requests without a token. */
import { fail } from '../core/errors.ts';
import { ANONYMOUS_BODY_BYTES, ANONYMOUS_BURST, ANONYMOUS_RATE } from '../core/limits.ts';
import type { Clock } from '../core/ports.ts';
import { RateTable, TokenBucket } from '../core/rates.ts';
import type { HttpRequest } from '../web/request.ts';
import { ADDRESSES } from './verify-queue.ts';

/** Limits requests without a token to GraphQL and to the routes that need none. */
export class AnonymousGate {
  /** The maximum size of a body that is read. */
  readonly bodyBytes: number;
  readonly #maxBodyBytes: number;
  readonly #buckets: RateTable<TokenBucket>;

  /** `maxBodyBytes`: the maximum size of a body of a request with a token. */
  constructor(clock: Clock, maxBodyBytes: number) {
    const rate = { perSecond: ANONYMOUS_RATE, burst: ANONYMOUS_BURST };
    this.bodyBytes = Math.min(maxBodyBytes, ANONYMOUS_BODY_BYTES);
    this.#maxBodyBytes = maxBodyBytes;
    this.#buckets = new RateTable(ADDRESSES, () => new TokenBucket(clock, rate));
  }

  /**
   * Counts one request of this address. If the address is over its rate, throws `rate_limited` with the time to wait,
   * and does not count the request. Throws `unauthenticated` if the announced body is larger than `bodyBytes`.
   */
  admit({ headers }: Pick<HttpRequest, 'headers'>, address: string): void {
    const retryAfterMs = this.#buckets.of(address).take();
    if (retryAfterMs > 0)
      fail('rate_limited', 'Too many requests without a token from this address.', { retryAfterMs });
    const announced = Number(headers['content-length'] ?? 0);
    if (announced > this.bodyBytes && announced <= this.#maxBodyBytes)
      fail('unauthenticated', 'A bearer token is needed.');
  }
}
