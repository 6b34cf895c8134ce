/** Lists the resources that the users of a relay share, and bounds how much of each one user and all users may hold. */
import { CallboardError, type InputError } from '../errors.ts';

/**
 * The resources of one relay that its users share. Users do not trust each other: the amount that one user holds must
 * leave the others their guarantee. Amounts are bytes if the name says so, else counts.
 */
export const SHARE_NAMES = [
  /** The number of open links of clients and callers. */
  'links',
  /** The bytes of what clients advertise and report: their metadata, actions, contexts and windows. */
  'advertised_bytes',
  /** The bytes of params in memory, for commands that wait for their client or for dispatch. */
  'queued_bytes',
  /** The bytes of results of ended commands. */
  'result_bytes',
  /** The number of ended commands with a whole record. Beyond it, only their marks are kept. Direct mode only. */
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
   * The number of remembered ids of ingested messages and reported ends, by which repeated ones are recognised. When it
   * is used up, ids are forgotten early, and the counters of deduplication are no longer exact. Direct mode only.
   */
  'dedup_marks',
  /** The number of documents in progress: queries and REST reads that have not been answered yet. */
  'documents',
] as const;

export type ShareName = (typeof SHARE_NAMES)[number];

/**
 * The bounds of one resource. `guarantee`: the amount that one user may hold as long as the total is not used up.
 * `total`: the bound of all users together; null: only the guarantee bounds each user.
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
  documents: { guarantee: 256, total: null },
};

/**
 * The part of a total up to which no user is refused, however much they hold. Above it, only users over their guarantee
 * are refused, until the total is used up.
 */
export const BORROWED_PART = 3 / 4;

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
  if (faults.length === 0) return bounds;
  const lines = faults.map(({ parameter, detail }) => `${parameter}: ${detail}`);
  throw new CallboardError('invalid_argument', lines.join('\n'), { errors: faults });
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
