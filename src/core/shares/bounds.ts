import { CallboardError, type Fault } from '../errors.ts';

/**
 * What is shared out among the users of one relay. Users are strangers to each other: what one of them holds must leave the others their
 * guarantee. Counts, or bytes where the name says so.
 */
export const SHARE_NAMES = [
  /** Open links of clients and callers. */
  'links',
  /** Bytes of advertised actions and metadata, and of reported contexts and windows. */
  'advertised_bytes',
  /** Bytes of params of commands that wait for their client or for dispatch, as far as they are in memory. */
  'queued_bytes',
  /** Bytes of results of ended commands. */
  'result_bytes',
  /** Ended commands with a whole record; beyond, a mark alone is left. In direct mode. */
  'ended_records',
  /** Bytes of retained history. */
  'history_bytes',
  /** Bytes in the spill store. */
  'spilled_bytes',
  /** Callers that wait for a command. */
  'waits',
  /** Bytes of answers that their readers have not taken yet. */
  'unread_bytes',
  /**
   * Command ids within their idempotency window: of live commands, of ended ones with a record, and marks. Room for its mark is kept for each
   * id that a caller chooses, so that it runs at most once.
   */
  'marks',
  /**
   * Marks of ingested messages and reported ends, by which repeated ones are known. Beyond, marks go early, and the counters of deduplication are
   * no longer exact. In direct mode.
   */
  'dedup_marks',
] as const;

export type ShareName = (typeof SHARE_NAMES)[number];

/** `guarantee`: what one user may always hold while the total lasts. `total`: of all users together; null: no bound but the guarantee. */
export type ShareBound = { readonly guarantee: number; readonly total: number | null };
export type ShareBounds = Readonly<Record<ShareName, ShareBound>>;

/** Bounds as somebody gives them: what is left out is a default. */
export type GivenBounds = { readonly [Name in ShareName]?: Partial<ShareBound> };

const MIB = 1024 * 1024;

/**
 * Defaults: a process of 512 MiB survives all of them at once. A mark takes about 50 bytes; 2 million serve 300 calls a second for an hour twice
 * over. A deduplication mark takes about 200 bytes, most of which its message shares.
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
};

/** Below this part of a total no user is refused, however much they hold; above it only users over their guarantee are. */
export const BORROWED_PART = 3 / 4;

/** The spill store's bounds where it is this process' memory. */
export const SPILL_IN_MEMORY: ShareBound = { guarantee: 32 * MIB, total: 128 * MIB };

/**
 * All bounds: what is given, else the default. A guarantee that is not given is at most the total. Throws `invalid_argument`, naming each
 * share whose guarantee exceeds its total or whose bounds are no whole numbers from 1 on.
 */
export function shareBounds(given: GivenBounds = {}, defaults: Partial<ShareBounds> = {}): ShareBounds {
  const faults: Fault[] = [];
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

/** What is not given is the default, and a guarantee that is not given at most the total. */
export function fillBound(given: Partial<ShareBound> = {}, defaults: ShareBound): ShareBound {
  const { total = defaults.total, guarantee = Math.min(defaults.guarantee, total ?? Infinity) } = given;
  return { guarantee, total };
}

/** What is wrong with a bound; null: nothing. */
export function boundFault({ guarantee, total }: ShareBound): string | null {
  const isCount = (amount: number): boolean => Number.isSafeInteger(amount) && amount >= 1;
  if (!isCount(guarantee) || (total !== null && !isCount(total))) return 'expected whole numbers from 1 on';
  return total !== null && guarantee > total ? `the guarantee ${guarantee} exceeds the total ${total}` : null;
}
