/** Defines the resources that the users of a relay share, and how much of each one user and all users may hold. */
import { refuseInputs, type Code, type InputError } from '../errors.ts';

/**
 * The resources that the users of one relay share. Users do not trust each other: whatever one user holds must leave
 * the others their guarantee. Amounts are in bytes if the name says so, and counts otherwise.
 */
export const SHARE_NAMES = [
  /** The number of open links of clients and callers. */
  'links',
  /** The bytes that clients advertise and report: their metadata, actions, contexts and windows. */
  'advertised_bytes',
  /**
   * The bytes of params in memory: of commands that wait for their client or for dispatch, and of dispatched commands
   * that may have to be written again because their client has not reported on them yet.
   */
  'queued_bytes',
  /** The bytes of results of ended commands. */
  'result_bytes',
  /** The number of ended commands whose whole record is stored. If there are more, only their marks are stored. */
  'ended_records',
  /** The bytes of retained history. */
  'history_bytes',
  /** The bytes in the spill store. */
  'spilled_bytes',
  /** The number of callers' waits for commands. */
  'waits',
  /** The bytes of answers that were written and that their readers have not read yet. */
  'unread_bytes',
  /**
   * The number of command ids within their idempotency window: of live commands, of ended commands with a record, and
   * of ended commands with only a mark. For each id that a caller chooses, room for a mark is reserved, so that the id
   * runs at most once.
   */
  'marks',
  /**
   * The number of remembered message ids, by which repeated messages are recognised. If this share is used up, ids are
   * forgotten early, and the counters of deduplication are no longer exact.
   */
  'dedup_marks',
  /**
   * The number of open HTTP and WebSocket connections. Each is counted for the holder of the last valid token that
   * arrived over it.
   */
  'sockets',
  /** The number of HTTP requests in progress, not counting event streams and mutations that have begun. */
  'requests',
  /** The number of live feeds of command events. The subscriptions of one holder with equal filters share a feed. */
  'feeds',
  /** The number of documents in progress: queries and REST reads that are not answered yet. */
  'documents',
] as const;

export type ShareName = (typeof SHARE_NAMES)[number];

/**
 * The share in the refusal of a user who has used up a member's part of an admission scope. The policy defines its
 * bounds.
 */
export const SCOPE_SHARE = 'scope';
/** The share in the refusal of a user who has caused too many records since the data directory's last snapshot. */
export const RECORDED_SHARE = 'recorded_bytes';
export type RefusedShare = ShareName | typeof SCOPE_SHARE | typeof RECORDED_SHARE;

/**
 * The bounds of one resource. `guarantee`: the most that one user may hold while more than three quarters of the total
 * are in use (see `shareRefusal` for the whole rule). `total`: the most that all users may hold together; null if only
 * the guarantee limits each user.
 */
export type ShareBound = { readonly guarantee: number; readonly total: number | null };
export type ShareBounds = Readonly<Record<ShareName, ShareBound>>;

/** The configured bounds. An absent bound has its default. */
export type GivenBounds = { readonly [Name in ShareName]?: Partial<ShareBound> };

const MIB = 1024 * 1024;

/**
 * The default bounds. A process with 512 MiB survives even if all of them are used up at once. A mark of a command
 * takes about 50 bytes. The 2 million marks are nearly twice what 300 calls per second need in an hour. A mark of a
 * message takes about 200 bytes, most of which it shares with its message.
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
 * The fraction of a total up to which no user is refused, however much the user holds. Above it, a user gets no more
 * than its guarantee.
 */
export const BORROWED_PART = 3 / 4;

/**
 * The fraction of a total that may be held beyond it. When the total is used up, users who hold little may use one such
 * reserve, and administrators another one.
 */
export const RESERVE_PART = 1 / 16;

/**
 * Why a user may not hold more. `share_exceeded`: the user would exceed its share while room is short. `store_full`:
 * the total is used up.
 */
export type ShareRefusal = 'share_exceeded' | 'store_full';

/**
 * A holder that wants `amount` more. `held`: what it holds now. `used`: what all hold now. `admin`: whether it is an
 * administrator.
 */
type ShareClaim = {
  readonly held: number;
  readonly used: number;
  readonly amount: number;
  readonly admin: boolean;
};

/**
 * Returns why a holder may not take an amount; null if it may. All shares follow this rule;
 * `backends/redis/program/transaction.lua` implements it for the shares that Redis counts.
 *
 * Up to three quarters of the total nobody is refused. Above that, a user may hold up to its guarantee. When the total
 * is used up, users who hold little can still use a reserve: a user may hold at most free² / reserve, including the
 * claim, where `free` is the rest of the reserve after the claim. Holding 1 is always permitted while the reserve has
 * room. Each holder can take only a part of what is left, so that another user finds room too (`guaranteeBeside`
 * computes how much).
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
 * Returns the amount that a user can always hold beside at most `others` other users, even if each of them takes as
 * much as it can. This is the guarantee while the others leave room for it, and less with each further user.
 * docs/shares.md promises this amount.
 */
export function guaranteeBeside(bound: ShareBound, others: number): number {
  const { guarantee, total } = bound;
  if (total === null) return guarantee;
  let used = 0;
  for (let user = 0; user < others; user++) used += mostOf(bound, used, total);
  return mostOf(bound, used, guarantee);
}

/** Returns the most that a user without holdings can take while others hold `used`; at most `limit`. */
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

/** The bounds of a spill store in this process's memory. */
export const SPILL_IN_MEMORY: ShareBound = { guarantee: 32 * MIB, total: 128 * MIB };

/**
 * Completes the configured bounds with the defaults. A default guarantee is lowered to the total if necessary. Throws
 * `invalid_argument` with the name of each share whose guarantee exceeds its total, or whose bounds are not whole
 * numbers of at least 1.
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

/** Completes one bound with its defaults. A default guarantee is lowered to the total if necessary. */
export function fillBound(given: Partial<ShareBound> = {}, defaults: ShareBound): ShareBound {
  const { total = defaults.total, guarantee = Math.min(defaults.guarantee, total ?? Infinity) } = given;
  return { guarantee, total };
}

/** Describes what is wrong with a bound; null if nothing is. */
export function boundFault({ guarantee, total }: ShareBound): string | null {
  const isCount = (amount: number): boolean => Number.isSafeInteger(amount) && amount >= 1;
  if (!isCount(guarantee) || (total !== null && !isCount(total))) return 'expected whole numbers of at least 1';
  return total !== null && guarantee > total ? `the guarantee ${guarantee} exceeds the total ${total}` : null;
}

export function isShareRefusal(code: Code): code is ShareRefusal {
  return code === 'share_exceeded' || code === 'store_full';
}

/** The message of a refusal, for the requester. */
export const SHARE_MESSAGE: Readonly<Record<ShareRefusal, string>> = {
  share_exceeded: 'You hold more than your share of this resource.',
  store_full: 'The relay has no room left for this resource.',
};
