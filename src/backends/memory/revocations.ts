/** Core's RevocationStore in memory: the revocations, in the order of their numbers. */
import {
  REVOCATIONS_MAX,
  REVOCATIONS_MAX_WIDE,
  REVOCATIONS_OF_ADMINS,
  REVOCATIONS_PER_USER,
  REVOCATIONS_PER_USER_WIDE,
} from '../../core/limits.ts';
import type { Clock } from '../../core/ports.ts';
import type { NewRevocation, Revocation, RevocationStore } from '../../core/revocations/revocation.ts';

/** Core's RevocationStore in memory. */
export class MemoryRevocations implements RevocationStore {
  readonly #clock: Pick<Clock, 'now'>;
  #rows: Revocation[] = [];
  #last = 0;
  /** How many rows each user has set. */
  #ofUsers = new Map<string, number>();
  /** The time at which the next row expires, or an earlier time. */
  #expiresAt = Infinity;

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  readonly add: RevocationStore['add'] = (row) => {
    this.#expire();
    if (!this.#hasRoom(row)) return null;
    // A number is never used twice, even after a restart that lost all rows.
    const added: Revocation = { ...row, seq: Math.max(this.#last + 1, this.#clock.now()) };
    this.restore(added);
    return added;
  };

  readonly after: RevocationStore['after'] = (seq, first) => {
    if (seq >= this.#last) return [];
    this.#expire();
    return this.#rows.filter((row) => row.seq > seq).slice(0, first);
  };

  /** Restores a row. Rows must be restored in the order of their numbers. A row that exists already changes nothing. */
  restore(row: Revocation): void {
    if (row.seq <= this.#last) return;
    this.#last = row.seq;
    this.#rows.push(row);
    this.#note(row);
  }

  all(): readonly Revocation[] {
    return this.#rows;
  }

  #hasRoom({ who, tokenId }: NewRevocation): boolean {
    const isWide = tokenId === null;
    const most = isWide ? REVOCATIONS_MAX_WIDE : REVOCATIONS_MAX;
    if (!isOfUser(who)) return this.#rows.length < most;
    const own = isWide ? REVOCATIONS_PER_USER_WIDE : REVOCATIONS_PER_USER;
    return this.#rows.length < most - REVOCATIONS_OF_ADMINS && (this.#ofUsers.get(who) ?? 0) < own;
  }

  #note({ who, expiresAt }: Revocation): void {
    this.#expiresAt = Math.min(this.#expiresAt, expiresAt);
    if (isOfUser(who)) this.#ofUsers.set(who, (this.#ofUsers.get(who) ?? 0) + 1);
  }

  #expire(): void {
    const now = this.#clock.now();
    if (this.#expiresAt > now) return;
    this.#rows = this.#rows.filter(({ expiresAt }) => expiresAt > now);
    this.#ofUsers = new Map();
    this.#expiresAt = Infinity;
    for (const row of this.#rows) this.#note(row);
  }
}

function isOfUser(who: string): boolean {
  return who.startsWith('user:');
}
