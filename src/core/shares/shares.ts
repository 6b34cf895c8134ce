/** The shares: counts what each holder has of each resource, and refuses what exceeds the bounds. */
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

/** Keeps the holdings of each user of this process, and the totals. */
export class Shares {
  readonly bounds: ShareBounds;
  /** The users that hold something. */
  readonly #users = new Map<string, Holdings>();
  readonly #used = SHARE_NAMES.map(() => 0);
  readonly #over = SHARE_NAMES.map(() => new Set<Holdings>());

  constructor(bounds: ShareBounds) {
    this.bounds = bounds;
  }

  /** Returns the holdings of a user. Keep the reference as long as the link, queue or stream lives. */
  of(userId: string): Holdings {
    return this.find(userId) ?? new Holdings(this, userId);
  }

  /** Returns the amount that all users hold together. */
  used(share: ShareName): number {
    return this.#used[INDEX[share]] ?? 0;
  }

  /** Whether all users together hold the total. */
  full(share: ShareName): boolean {
    const { total } = this.bounds[share];
    return total !== null && this.used(share) >= total;
  }

  /**
   * Returns the users over their guarantee, in no particular order. They are few, because each of them holds more than
   * a guarantee.
   */
  over(share: ShareName): Iterable<Holdings> {
    return this.#over[INDEX[share]] ?? [];
  }

  /** Returns the user who exceeds their guarantee the most; null if none does. Eviction takes from this user first. */
  mostOver(share: ShareName): Holdings | null {
    let most: Holdings | null = null;
    for (const holdings of this.over(share))
      if (most === null || holdings.held(share) > most.held(share)) most = holdings;
    return most;
  }

  // Only Holdings uses the methods below.

  find(userId: string): Holdings | undefined {
    return this.#users.get(userId);
  }

  enter(holdings: Holdings): void {
    this.#users.set(holdings.userId, holdings);
  }

  leave(holdings: Holdings): void {
    this.#users.delete(holdings.userId);
  }

  /** Updates the total and the set of users over their guarantee. */
  changed(holdings: Holdings, share: ShareName, by: number): void {
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

/**
 * The amounts of every share that one user holds. Links, queues and streams keep a reference and update it, so that no
 * call has to look up the user. Amounts are counts or bytes and never negative. The code that takes an amount releases
 * the same amount once.
 */
export class Holdings {
  readonly userId: string;
  readonly #table: Shares;
  readonly #admin: boolean;
  readonly #held = SHARE_NAMES.map(() => 0);
  /**
   * The number of resources of which the user holds something. At 0 the table drops this object. Another object may
   * then be made and registered for the user; `#current` returns that one.
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

  /** Returns why `amount` more may not be taken; null: it may. Changes nothing. */
  refusal(share: ShareName, amount: number): ShareRefusal | null {
    const used = this.#table.used(share);
    return shareRefusal(this.#table.bounds[share], { held: this.held(share), used, amount, admin: this.#admin });
  }

  /** Whether `amount` more leaves this user half of the guarantee, and all users half of the total. */
  hasPlenty(share: ShareName, amount: number): boolean {
    const { guarantee, total } = this.#table.bounds[share];
    if (2 * (this.held(share) + amount) > guarantee) return false;
    return total === null || 2 * (this.#table.used(share) + amount) <= total;
  }

  /**
   * Takes the amount if there is room; otherwise throws `share_exceeded` or `store_full` with the member `share` and
   * reserves nothing.
   */
  claim(share: ShareName, amount: number): void {
    const refusal = this.refusal(share, amount);
    if (refusal) fail(refusal, SHARE_MESSAGE[refusal], { share });
    this.take(share, amount);
  }

  /** Takes the amount without a check, for data that must be recorded. The owner of the data evicts afterwards. */
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
   * Returns the user's registered object, or this one if none is registered. An object with a holding is registered.
   */
  #current(): Holdings {
    if (this.#kinds > 0) return this;
    return this.#table.find(this.userId) ?? this;
  }
}
