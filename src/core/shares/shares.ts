/** Counts what each holder has of each share, and refuses what exceeds it. */
import { fail, type Code } from '../errors.ts';
import {
  SHARE_BOUNDS,
  SHARE_NAMES,
  shareRefusal,
  type ShareBounds,
  type ShareName,
  type ShareRefusal,
} from './bounds.ts';
import { isAdministrator } from './holders.ts';

export function isShareRefusal(code: Code): code is ShareRefusal {
  return code === 'share_exceeded' || code === 'store_full';
}

/** The message of a refusal that the requester gets. */
export const SHARE_MESSAGE: Readonly<Record<ShareRefusal, string>> = {
  share_exceeded: 'You hold more than your share of this resource.',
  store_full: 'The relay has no room left for this resource.',
};

/**
 * The amounts of every share that one user holds. Links, queues and streams keep a reference and update it, so that no
 * call has to look up the user. Amounts are counts or bytes and never negative. The code that takes an amount releases
 * the same amount once.
 */
export interface Holdings {
  readonly userId: string;
  held(share: ShareName): number;
  /** Returns why `amount` more may not be taken; null: it may. Changes nothing. */
  refusal(share: ShareName, amount: number): ShareRefusal | null;
  /**
   * Takes the amount if there is room; otherwise throws `share_exceeded` or `store_full` with the member `share` and
   * reserves nothing.
   */
  claim(share: ShareName, amount: number): void;
  /** Takes the amount without a check, for data that must be recorded. The owner of the data evicts afterwards. */
  take(share: ShareName, amount: number): void;
  release(share: ShareName, amount: number): void;
}

/** Keeps the holdings of each user of this process, and the totals. */
export interface Shares {
  readonly bounds: ShareBounds;
  /** Returns the holdings of a user. Keep the reference as long as the link, queue or stream lives. */
  of(userId: string): Holdings;
  /** Returns the amount that all users hold together. */
  used(share: ShareName): number;
  /** Whether the total is reached, so that the next `claim` of any user is refused. */
  full(share: ShareName): boolean;
  /**
   * Returns the users over their guarantee, in no particular order. They are at most as many as guarantees fit into the
   * total.
   */
  over(share: ShareName): Iterable<Holdings>;
  /** Returns the user who exceeds their guarantee the most; null if none does. Eviction takes from this user first. */
  mostOver(share: ShareName): Holdings | null;
}

export function createShares(given: Partial<ShareBounds> = {}): Shares {
  return new ShareTable({ ...SHARE_BOUNDS, ...given });
}

const INDEX: Readonly<Record<ShareName, number>> = indexes();

class ShareTable implements Shares {
  readonly bounds: ShareBounds;
  /** The users that hold something. */
  readonly #users = new Map<string, UserHoldings>();
  readonly #used = SHARE_NAMES.map(() => 0);
  readonly #over = SHARE_NAMES.map(() => new Set<UserHoldings>());

  constructor(bounds: ShareBounds) {
    this.bounds = bounds;
  }

  of(userId: string): Holdings {
    return this.find(userId) ?? new UserHoldings(this, userId);
  }

  used(share: ShareName): number {
    return this.#used[INDEX[share]] ?? 0;
  }

  full(share: ShareName): boolean {
    const { total } = this.bounds[share];
    return total !== null && this.used(share) >= total;
  }

  over(share: ShareName): Iterable<Holdings> {
    return this.#over[INDEX[share]] ?? [];
  }

  mostOver(share: ShareName): Holdings | null {
    let most: Holdings | null = null;
    for (const holdings of this.over(share))
      if (most === null || holdings.held(share) > most.held(share)) most = holdings;
    return most;
  }

  find(userId: string): UserHoldings | undefined {
    return this.#users.get(userId);
  }

  enter(holdings: UserHoldings): void {
    this.#users.set(holdings.userId, holdings);
  }

  leave(holdings: UserHoldings): void {
    this.#users.delete(holdings.userId);
  }

  /** Updates the total and the set of users over their guarantee. */
  changed(holdings: UserHoldings, share: ShareName, by: number): void {
    const index = INDEX[share];
    this.#used[index] = (this.#used[index] ?? 0) + by;
    const { guarantee } = this.bounds[share];
    const held = holdings.held(share);
    const isOver = held > guarantee;
    // Most changes cross no guarantee.
    if (isOver === held - by > guarantee) return;
    if (isOver) this.#over[index]?.add(holdings);
    else this.#over[index]?.delete(holdings);
  }
}

class UserHoldings implements Holdings {
  readonly userId: string;
  readonly #table: ShareTable;
  readonly #admin: boolean;
  readonly #held = SHARE_NAMES.map(() => 0);
  /**
   * The number of resources of which the user holds something. At 0 the table drops this object. Another object may
   * then be made and registered for the user; `#current` returns that one.
   */
  #kinds = 0;

  constructor(table: ShareTable, userId: string) {
    this.#table = table;
    this.userId = userId;
    this.#admin = isAdministrator(userId);
  }

  held(share: ShareName): number {
    return this.#current().#held[INDEX[share]] ?? 0;
  }

  refusal(share: ShareName, amount: number): ShareRefusal | null {
    const used = this.#table.used(share);
    return shareRefusal(this.#table.bounds[share], { held: this.held(share), used, amount, admin: this.#admin });
  }

  claim(share: ShareName, amount: number): void {
    const refusal = this.refusal(share, amount);
    if (refusal) fail(refusal, SHARE_MESSAGE[refusal], { share });
    this.take(share, amount);
  }

  take(share: ShareName, amount: number): void {
    if (amount <= 0) return;
    this.#current().#change(share, amount);
  }

  release(share: ShareName, amount: number): void {
    if (amount <= 0) return;
    this.#current().#change(share, -amount);
  }

  #change(share: ShareName, by: number): void {
    const index = INDEX[share];
    const before = this.#held[index] ?? 0;
    this.#held[index] = before + by;
    if (before === 0 && this.#kinds++ === 0) this.#table.enter(this);
    this.#table.changed(this, share, by);
    if (before + by !== 0) return;
    if (--this.#kinds === 0) this.#table.leave(this);
  }

  /**
   * Returns the user's registered object, or this one if none is registered. An object that holds something is
   * registered.
   */
  #current(): UserHoldings {
    if (this.#kinds > 0) return this;
    return this.#table.find(this.userId) ?? this;
  }
}

function indexes(): Record<ShareName, number> {
  return Object.fromEntries(SHARE_NAMES.map((name, index) => [name, index])) as Record<ShareName, number>;
}
