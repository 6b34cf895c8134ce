/** The token that may only read the metrics. */
import { timingSafeEqual } from 'node:crypto';
import { digest } from './secret-digest.ts';

/** Holds the token that may read the metrics and nothing else. No other part of the relay accepts it. */
export class MetricsToken {
  #expected: Buffer | null = null;

  /** `token`: the token that is accepted; null: only administrators may read the metrics. */
  constructor(token: string | null = null) {
    this.replace(token);
  }

  /** From now on accepts only this token; null: accepts none. */
  replace(token: string | null): void {
    this.#expected = token === null ? null : digest(token);
  }

  /**
   * Whether the given token is the accepted one. Compares digests, because those have equal lengths and their timing
   * reveals nothing.
   */
  accepts(given: string | null): boolean {
    return given !== null && this.#expected !== null && timingSafeEqual(digest(given), this.#expected);
  }
}
