/** Core's RevocationStore in memory. */
import { REVOCATIONS_MAX, REVOCATIONS_MAX_WIDE } from '../../core/limits.ts';
import type { Clock } from '../../core/ports.ts';
import type { Revocation, RevocationStore } from '../../core/revocations/revocation.ts';

/** The kept revocations, in the order of their numbers. */
export class MemoryRevocations implements RevocationStore {
  readonly #clock: Pick<Clock, 'now'>;
  #rows: Revocation[] = [];
  #last = 0;

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  readonly add: RevocationStore['add'] = (row) => {
    this.#expire();
    if (this.#rows.length >= (row.tokenId === null ? REVOCATIONS_MAX_WIDE : REVOCATIONS_MAX)) return null;
    // A number is never used again, also after a restart that knows of no row any more.
    const added: Revocation = { ...row, seq: Math.max(this.#last + 1, this.#clock.now()) };
    this.restore(added);
    return added;
  };

  readonly after: RevocationStore['after'] = (seq, first) => {
    this.#expire();
    return this.#rows.filter((row) => row.seq > seq).slice(0, first);
  };

  /** Puts back a row. Rows are put back in the order of their numbers; one that is here already changes nothing. */
  restore(row: Revocation): void {
    if (row.seq <= this.#last) return;
    this.#last = row.seq;
    this.#rows.push(row);
  }

  all(): readonly Revocation[] {
    return this.#rows;
  }

  #expire(): void {
    const now = this.#clock.now();
    if (this.#rows.some(({ expiresAt }) => expiresAt <= now))
      this.#rows = this.#rows.filter(({ expiresAt }) => expiresAt > now);
  }
}
