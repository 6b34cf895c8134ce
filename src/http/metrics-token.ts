/** The token for metrics. */
import { timingSafeEqual } from 'node:crypto';
import { digest } from './secret-digest.ts';

/** The token that may read the metrics and nothing else. No other part of the relay knows it. */
export class MetricsToken {
  #expected: Buffer | null = null;

  /** `token`: the token that is accepted; null: only administrators may read the metrics. */
  constructor(token: string | null = null) {
    this.replace(token);
  }

  /** Accepts only this token from now on; null: none. */
  replace(token: string | null): void {
    this.#expected = token === null ? null : digest(token);
  }

  /** Whether the given token is this one. Compares digests of one length, so that timing reveals nothing. */
  accepts(given: string | null): boolean {
    return given !== null && this.#expected !== null && timingSafeEqual(digest(given), this.#expected);
  }
}
