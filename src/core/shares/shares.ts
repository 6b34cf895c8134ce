/** Counts how much of each bounded resource each holder has, and refuses what exceeds the bounds. */
import { fail } from '../errors.ts';
import { isAdministrator } from './holder.ts';
import {
  SHARE_BOUNDS,
  type ShareBounds,
  SHARE_NAMES,
  type ShareName,
  shareRefusal,
  SHARE_MESSAGE,
  type ShareRefusal,
} from './share-bounds.ts';

export function createShares(given: Partial<ShareBounds> = {}): Shares {
  return new Shares({ ...SHARE_BOUNDS, ...given });
}

const INDEX = Object.fromEntries(SHARE_NAMES.map((name, index) => [name, index])) as Readonly<
  Record<ShareName, number>
>;

/** The holdings of each user in this process, and the totals. */
export class Shares {
  readonly bounds: ShareBounds;
  /** The users that hold anything. */
  readonly #users = new Map<string, Holdings>();
  readonly #used = SHARE_NAMES.map(() => 0);
  readonly #over = SHARE_NAMES.map(() => new Set<Holdings>());

  constructor(bounds: ShareBounds) {
    this.bounds = bounds;
  }

  /** Returns the holdings of a user. A link, queue or stream keeps this object as long as it exists. */
  of(userId: string): Holdings {
    return this.find(userId) ?? new Holdings(this, userId);
  }

  /** Returns the amount that all users hold together. */
  used(share: ShareName): number {
    return this.#used[INDEX[share]] ?? 0;
  }

  /** Whether the total of the share is used up. */
  full(share: ShareName): boolean {
    const { total } = this.bounds[share];
    return total !== null && this.used(share) >= total;
  }

  /**
   * Returns the users that exceed their guarantee, in no particular order. There are only few, because each holds more
   * than a guarantee.
   */
  over(share: ShareName): Iterable<Holdings> {
    return this.#over[INDEX[share]] ?? [];
  }

  /** Returns the user that exceeds its guarantee the most; null if none does. Eviction begins with this user. */
  mostOver(share: ShareName): Holdings | null {
    let most: Holdings | null = null;
    for (const holdings of this.over(share))
      if (most === null || holdings.held(share) > most.held(share)) most = holdings;
    return most;
  }

  // The methods below are for Holdings only.

  find(userId: string): Holdings | undefined {
    return this.#users.get(userId);
  }

  enter(holdings: Holdings): void {
    this.#users.set(holdings.userId, holdings);
  }

  leave(holdings: Holdings): void {
    this.#users.delete(holdings.userId);
  }

  /** Updates the total, and the set of users that exceed their guarantee. */
  changed(holdings: Holdings, share: ShareName, by: number): void {
    const index = INDEX[share];
    this.#used[index] = (this.#used[index] ?? 0) + by;
    const { guarantee } = this.bounds[share];
    const held = holdings.held(share);
    const isOver = held > guarantee;
    // Most changes do not cross the guarantee, so the set stays unchanged.
    if (isOver === held - by > guarantee) return;
    if (isOver) this.#over[index]?.add(holdings);
    else this.#over[index]?.delete(holdings);
  }
}

/**
 * The amounts of all shares that one user holds. Links, queues and streams keep this object and update it, so that no
 * call has to look up the user. Amounts are counts or bytes, and never negative. Code that takes an amount must release
 * the same amount once.
 */
export class Holdings {
  readonly userId: string;
  readonly #table: Shares;
  readonly #admin: boolean;
  readonly #held = SHARE_NAMES.map(() => 0);
  /**
   * The number of resources of which the user holds anything. At 0, the table removes this object. The table may then
   * register another object for the user, which `#current` returns.
   */
  #kinds = 0;

  constructor(table: Shares, userId: string) {
    this.#table = table;
    this.userId = userId;
    this.#admin = isAdministrator(userId);
  }

  held(share: ShareName): number {
    return this.#current().#held[INDEX[share]] ?? 0;
  }

  /** Returns why `amount` more may not be taken; null if it may. Changes nothing. */
  refusal(share: ShareName, amount: number): ShareRefusal | null {
    const used = this.#table.used(share);
    return shareRefusal(this.#table.bounds[share], { held: this.held(share), used, amount, admin: this.#admin });
  }

  /**
   * Whether the user would hold at most half of its guarantee, and all users at most half of the total, with `amount`
   * more.
   */
  hasPlenty(share: ShareName, amount: number): boolean {
    const { guarantee, total } = this.#table.bounds[share];
    if (2 * (this.held(share) + amount) > guarantee) return false;
    return total === null || 2 * (this.#table.used(share) + amount) <= total;
  }

  /**
   * Takes the amount if there is room. Otherwise throws `share_exceeded` or `store_full`, with the share's name in
   * `share`, and takes nothing.
   */
  claim(share: ShareName, amount: number): void {
    const refusal = this.refusal(share, amount);
    if (refusal) fail(refusal, SHARE_MESSAGE[refusal], { share });
    this.take(share, amount);
  }

  /** Takes the amount without a check, for data that must be stored. The caller must evict data afterwards. */
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
   * Returns the user's registered object; this object if none is registered. An object that holds anything is
   * registered.
   */
  #current(): Holdings {
    if (this.#kinds > 0) return this;
    return this.#table.find(this.userId) ?? this;
  }
}
