/**
 * The shares: lists the resources that users share, counts what each holder has of each, and refuses what exceeds the
 * bounds.
 */
import type { Principal } from '../auth/principal.ts';
import { fail, refuseInputs, type Code, type InputError } from '../errors.ts';
import type { JsonText } from '../json.ts';
import { INLINE_PAYLOAD_BYTES } from '../limits.ts';
import { thenDo, type MaybePromise } from '../maybe-promise.ts';

// Lists the resources that the users of a relay share, and bounds how much of each one user and all users may hold.

/**
 * The resources of one relay that its users share. Users do not trust each other: the amount that one user holds must
 * leave the others their guarantee. Amounts are bytes if the name says so, else counts.
 */
export const SHARE_NAMES = [
  /** The number of open links of clients and callers. */
  'links',
  /** The bytes of what clients advertise and report: their metadata, actions, contexts and windows. */
  'advertised_bytes',
  /**
   * The bytes of params in memory, for commands that wait for their client or for dispatch, or that may have to be written
   * again because their client has not reported on them yet.
   */
  'queued_bytes',
  /** The bytes of results of ended commands. */
  'result_bytes',
  /** The number of ended commands with a whole record. Beyond it, only their marks are kept. */
  'ended_records',
  /** The bytes of retained history. */
  'history_bytes',
  /** The bytes in the spill store. */
  'spilled_bytes',
  /** The number of callers' waits for a command. */
  'waits',
  /** The bytes of answers that their readers have not read yet. */
  'unread_bytes',
  /**
   * The number of command ids within their idempotency window: of live commands, of ended ones with a record, and of
   * those with only a mark. For each id that a caller chooses, room for its mark is reserved, so that the id runs at
   * most once.
   */
  'marks',
  /**
   * The number of remembered ids of ingested messages, by which repeated ones are recognised. When it is used up, ids are
   * forgotten early, and the counters of deduplication are no longer exact.
   */
  'dedup_marks',
  /**
   * The number of connections, of HTTP and of links. Each is counted for the holder of the last valid token that
   * arrived over it.
   */
  'sockets',
  /** The number of HTTP requests in progress, without event streams and mutations that have begun. */
  'requests',
  /** The number of live feeds of command events; subscriptions of one holder with equal filters share a feed. */
  'feeds',
  /** The number of documents in progress: queries and REST reads that have not been answered yet. */
  'documents',
] as const;

export type ShareName = (typeof SHARE_NAMES)[number];

/** The share that a refusal names if a member's part of an admission scope is used up. Its bounds are in the policy. */
export const SCOPE_SHARE = 'scope';
/** The share that a refusal names if a user has recorded too much since the last snapshot of a data directory. */
export const RECORDED_SHARE = 'recorded_bytes';
export type RefusedShare = ShareName | typeof SCOPE_SHARE | typeof RECORDED_SHARE;

/**
 * The bounds of one resource. `guarantee`: the amount that one user may hold while more than three quarters of the
 * total are in use (`shareRefusal` has the whole rule). `total`: the bound of all users together; null: only the
 * guarantee bounds each user.
 */
export type ShareBound = { readonly guarantee: number; readonly total: number | null };
export type ShareBounds = Readonly<Record<ShareName, ShareBound>>;

/** The configured bounds; an absent one has its default. */
export type GivenBounds = { readonly [Name in ShareName]?: Partial<ShareBound> };

const MIB = 1024 * 1024;

/**
 * The defaults. A process of 512 MiB survives even if all of them are used up at once. A mark of a command takes about
 * 50 bytes. The 2 million marks are nearly twice what 300 calls per second need in an hour. A mark of a message takes
 * about 200 bytes, most of which it shares with its message.
 */
export const SHARE_BOUNDS: ShareBounds = {
  links: { guarantee: 1_000, total: 20_000 },
  advertised_bytes: { guarantee: 16 * MIB, total: 64 * MIB },
  queued_bytes: { guarantee: 16 * MIB, total: 64 * MIB },
  result_bytes: { guarantee: 16 * MIB, total: 64 * MIB },
  ended_records: { guarantee: 25_000, total: 100_000 },
  history_bytes: { guarantee: 16 * MIB, total: 256 * MIB },
  spilled_bytes: { guarantee: 128 * MIB, total: 1024 * MIB },
  waits: { guarantee: 10_000, total: null },
  unread_bytes: { guarantee: 32 * MIB, total: 64 * MIB },
  marks: { guarantee: 1_300_000, total: 2_000_000 },
  dedup_marks: { guarantee: 50_000, total: 500_000 },
  sockets: { guarantee: 2_000, total: 24_000 },
  requests: { guarantee: 256, total: 4_096 },
  feeds: { guarantee: 16, total: 256 },
  documents: { guarantee: 256, total: null },
};

/**
 * The part of a total up to which no user is refused, however much they hold. Above it, a user gets no more than their
 * guarantee.
 */
export const BORROWED_PART = 3 / 4;

/**
 * What may be held beyond a total, as a part of it. Users who hold little may use one such part once the total is used
 * up, and administrators another one.
 */
export const RESERVE_PART = 1 / 16;

/**
 * Why a user may not hold more. `share_exceeded`: the user would hold more than their share while room is short.
 * `store_full`: the total is used up.
 */
export type ShareRefusal = 'share_exceeded' | 'store_full';

/** A holder that wants `amount` more. `held`: what it holds; `used`: what all hold; `admin`: it is an administrator. */
type ShareClaim = {
  readonly held: number;
  readonly used: number;
  readonly amount: number;
  readonly admin: boolean;
};

/**
 * Returns why a holder may not take an amount; null: they may. This is the one rule of all shares;
 * `backends/redis/program/transaction.lua` has it for those that Redis counts.
 *
 * Up to three quarters of the total nobody is refused. Above that, a user may hold up to the guarantee. Once the total
 * is used up, a reserve is left for users who hold little. There, a user may hold at most free² / reserve with the
 * claim, where `free` is what the claim leaves of the reserve; but always 1 as long as the reserve has room. Each
 * holder can take only a part of what is left, so that another user finds room too (`guaranteeBeside` computes how
 * much).
 */
export function shareRefusal({ guarantee, total }: ShareBound, claim: ShareClaim): ShareRefusal | null {
  const { held, used, amount, admin } = claim;
  const wanted = held + amount;
  if (total === null) return wanted > guarantee ? 'share_exceeded' : null;
  const after = used + amount;
  const reserve = Math.floor(total * RESERVE_PART);
  if (admin && after <= total + reserve + Math.max(1, reserve)) return null;
  if (wanted > guarantee && after > total * BORROWED_PART) return 'share_exceeded';
  if (after <= total) return null;
  const free = total + reserve - after;
  return free >= 0 && (wanted <= 1 || wanted * reserve <= free * free) ? null : 'store_full';
}

/**
 * Returns the amount that a user can always hold beside at most `others` other users, even if each of them takes all
 * that it can. This amount is the guarantee while they leave room for it, and less with each further user.
 * docs/shares.md promises this amount.
 */
export function guaranteeBeside(bound: ShareBound, others: number): number {
  const { guarantee, total } = bound;
  if (total === null) return guarantee;
  let used = 0;
  for (let user = 0; user < others; user++) used += mostOf(bound, used, total);
  return mostOf(bound, used, guarantee);
}

/** Returns the most that a user without holdings can take, at most `limit`, beside others who hold `used`. */
function mostOf(bound: ShareBound, used: number, limit: number): number {
  let least = 0;
  let most = limit;
  while (least < most) {
    const amount = Math.ceil((least + most) / 2);
    if (shareRefusal(bound, { held: 0, used, amount, admin: false }) === null) least = amount;
    else most = amount - 1;
  }
  return least;
}

/** The bounds of a spill store in the memory of this process. */
export const SPILL_IN_MEMORY: ShareBound = { guarantee: 32 * MIB, total: 128 * MIB };

/**
 * Completes the given bounds with the defaults. A default guarantee is lowered to the total. Throws `invalid_argument`,
 * naming each share whose guarantee exceeds its total or whose bounds are not whole numbers of at least 1.
 */
export function shareBounds(given: GivenBounds = {}, defaults: Partial<ShareBounds> = {}): ShareBounds {
  const faults: InputError[] = [];
  const bounds = { ...SHARE_BOUNDS, ...defaults };
  for (const name of SHARE_NAMES) {
    bounds[name] = fillBound(given[name], bounds[name]);
    const detail = boundFault(bounds[name]);
    if (detail !== null) faults.push({ parameter: `shares.${name}`, detail });
  }
  refuseInputs(faults, '\n');
  return bounds;
}

/** Completes one bound with its defaults. A default guarantee is lowered to the total. */
export function fillBound(given: Partial<ShareBound> = {}, defaults: ShareBound): ShareBound {
  const { total = defaults.total, guarantee = Math.min(defaults.guarantee, total ?? Infinity) } = given;
  return { guarantee, total };
}

/** Describes the fault of a bound; null: the bound is valid. */
export function boundFault({ guarantee, total }: ShareBound): string | null {
  const isCount = (amount: number): boolean => Number.isSafeInteger(amount) && amount >= 1;
  if (!isCount(guarantee) || (total !== null && !isCount(total))) return 'expected whole numbers of at least 1';
  return total !== null && guarantee > total ? `the guarantee ${guarantee} exceeds the total ${total}` : null;
}

export function isShareRefusal(code: Code): code is ShareRefusal {
  return code === 'share_exceeded' || code === 'store_full';
}

/** The message of a refusal that the requester gets. */
export const SHARE_MESSAGE: Readonly<Record<ShareRefusal, string>> = {
  share_exceeded: 'You hold more than your share of this resource.',
  store_full: 'The relay has no room left for this resource.',
};

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

  /** Whether the total is reached, so that only the reserve is left. */
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

// Finds the name under which a requester's use of bounded resources is counted.

/** The holder of all requesters without a token. User ids hold no "/", so this name cannot collide with a user. */
const UNAUTHENTICATED = '/unauthenticated';
const GRANTS = '/grants/';
const ADMINS = '/admin/';

/**
 * Returns the holder to whom a requester's use is counted: the user itself, or a holder for each administrator's name.
 * All requesters without a token have one holder together. So have the holders of grants to all sites of one owner,
 * because a user can make any number of grants, and each would otherwise have a guarantee. They are apart from the
 * owner, so that a viewer cannot use up what the owner may hold.
 */
export function holderOf(principal: Principal | null): string {
  if (principal === null) return UNAUTHENTICATED;
  if (principal.kind === 'user') return principal.userId;
  return principal.kind === 'admin' ? `${ADMINS}${principal.name}` : `${GRANTS}${principal.ownerId}`;
}

/** Whether a holder is an administrator, who may use what is reserved of each share. */
function isAdministrator(holder: string): boolean {
  return holder.startsWith(ADMINS);
}

// Reads how much of each share is in use: by all nodes where the store counts the share, otherwise in this process.

/** The amounts of all users together. */
export type SharesInUse = {
  used(share: ShareName): number;
  /** Whether the store counts this share for all nodes. Then this process does not know which users hold it. */
  inStore(share: ShareName): boolean;
};

/** Returns what is in use now. `store` reads the shares that the store counts; absent if it counts none. */
export function sharesInUse(
  shares: Pick<Shares, 'used'>,
  store?: () => MaybePromise<ReadonlyMap<ShareName, number>>,
): MaybePromise<SharesInUse> {
  return thenDo(store?.() ?? new Map<ShareName, number>(), (counted) => ({
    used: (share) => counted.get(share) ?? shares.used(share),
    inStore: (share) => counted.has(share),
  }));
}

// Estimates how many bytes the params of a command count in the share `queued_bytes`.

/** The maximum number of UTF-8 bytes for one UTF-16 code unit. */
const UNIT_BYTES = 3;

/** Returns the most bytes that a text of this length can have as UTF-8. This is cheaper than counting the bytes. */
export function paramsBytesAtMost(params: JsonText): number {
  return params.length * UNIT_BYTES;
}

/**
 * Whether the params are so small that they are never refused if the command can be dispatched at once: its client is
 * connected and has no queue.
 */
export function paramsAreSmall(params: JsonText | null): boolean {
  return params === null || paramsBytesAtMost(params) <= INLINE_PAYLOAD_BYTES;
}

// Finds the shares whose total is used up, which refuse new links or commands of users who hold much.

/**
 * The shares that new links or commands need. The others do not refuse new work: their data is evicted (results,
 * history), or their room is free again within moments.
 */
const NEEDED: readonly ShareName[] = ['links', 'advertised_bytes', 'queued_bytes', 'spilled_bytes', 'marks', 'sockets'];
/** The smallest part of a total that counts as room, for shares in bytes. The next payload may not fit into less. */
const SMALL_PART = 1 / 64;

/**
 * Returns the shares that new links and commands need and whose total has no room left. The node still takes links and
 * commands of users who hold little, and those that need none of these shares.
 */
export function fullShares({ bounds }: Pick<Shares, 'bounds'>, inUse: Pick<SharesInUse, 'used'>): readonly ShareName[] {
  return NEEDED.filter((name) => hasNoRoom(name, bounds[name].total, inUse.used(name)));
}

function hasNoRoom(share: ShareName, total: number | null, used: number): boolean {
  if (total === null) return false;
  const room = total - used;
  return share.endsWith('_bytes') ? room < total * SMALL_PART : room < 1;
}
