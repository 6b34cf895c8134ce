/** Holds one object for each user, with the user's holdings, ended commands and waiters. */
import type { Shares } from '../../core/shares/shares.ts';
import type { Entry, UserLedger } from './ledger-entry.ts';
import { List, SparseQueue } from './collections.ts';

export function hasNoRecord(entry: Entry): boolean {
  return entry.reduced;
}

export function hasNoResult(entry: Entry): boolean {
  return entry.result === null;
}

/**
 * The objects of users. A user has one for as long as the user has a client, an ended command or a mark, and until
 * `shortUntil` is over.
 */
export class UserLedgers {
  readonly #shares: Shares;
  readonly #users = new Map<string, UserLedger>();

  constructor(shares: Shares) {
    this.#shares = shares;
  }

  find(userId: string): UserLedger | undefined {
    return this.#users.get(userId);
  }

  of(userId: string): UserLedger {
    const known = this.#users.get(userId);
    if (known) return known;
    const made: UserLedger = {
      userId,
      holdings: this.#shares.of(userId),
      records: new SparseQueue(hasNoRecord),
      results: new SparseQueue(hasNoResult),
      waiters: new List(),
      clients: 0,
      shortUntil: -Infinity,
      unmarkedId: '',
    };
    this.#users.set(userId, made);
    return made;
  }

  values(): Iterable<UserLedger> {
    return this.#users.values();
  }

  /** Removes the object of a user who has nothing left. */
  dropIdle(user: UserLedger, now: number): void {
    if (user.clients > 0 || user.records.size > 0 || user.holdings.held('marks') > 0 || now < user.shortUntil) return;
    this.#users.delete(user.userId);
  }
}
