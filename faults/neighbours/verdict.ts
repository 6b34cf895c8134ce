/** Judges one attack: whether the honest user was harmed, and whether the relay's memory stayed within its limit. */
import { SHARE_BOUNDS } from '../../src/core/shares/share-bounds.ts';
import type { HeldCalls, OperationCounts, Phase, Wholeness } from './figures.ts';

/** The modes of the relays. `directory`: one relay with a data directory. */
export const MODES = ['direct', 'directory', 'shared', 'owned'] as const;
export type Mode = (typeof MODES)[number];
/** The modes whose store can be full: the disk of the data directory, or the memory of Redis. */
export const FILLED_MODES = MODES.filter((mode) => mode !== 'direct');
/** Whether a mode is run by default, which is so for all modes except `owned`. */
export const isUsual = (mode: Mode): boolean => mode !== 'owned';

/**
 * The maximum size of a data directory, without large payloads and the audit, and of its largest snapshot, in bytes.
 */
export type DiskUse = { readonly peak: number; readonly snapshot: number };

/**
 * The observations while the store had no room. `skipped`: why it could not be filled. `noticed`: whether /readyz
 * reported that it was full. `roomMs`: how long all relays took to be ready after it had room again, in milliseconds;
 * null: too long.
 */
export type FullTime =
  | { readonly skipped: string }
  | {
      readonly skipped: null;
      readonly during: Phase;
      readonly held: HeldCalls;
      readonly noticed: boolean;
      readonly roomMs: number | null;
    };

/** The result of one attack in one mode. Times are in milliseconds, and memory is in bytes. */
export type Episode = {
  readonly attack: string;
  readonly mode: Mode;
  readonly alone: Phase;
  /**
   * The honest user's observations during the attack, except for the time in which the store was full, which is in
   * `full`.
   */
  readonly beside: Phase;
  /** Null: the store was not filled. */
  readonly full: FullTime | null;
  readonly wholeness: Wholeness;
  readonly operations: OperationCounts;
  /** The resident memory of each relay before the attack, and its maximum during the attack. */
  readonly memory: readonly { readonly base: number; readonly peak: number }[];
  /** Null: the relays have no data directory. */
  readonly disk: DiskUse | null;
  /** The relays whose processes ended, with the last lines of their standard error. */
  readonly ended: readonly string[];
};

const MIB = 1024 * 1024;
/**
 * The memory that a relay in direct mode may use for spilled payloads, in bytes: the total of that share if no
 * directory is set.
 */
const SPILLED_IN_MEMORY = 128 * MIB;
/** The memory for the record that remains of one ended command, in bytes. */
const MARK_BYTES = 50;
/** The memory of an idle link with its socket and its row, in bytes. */
const LINK_BYTES = 24 * 1024;
/** The factor by which memory may exceed the counted bytes, for object headers and garbage. */
const SLACK = 1.3;
/**
 * The limits of the honest user's p99 during an attack: P99_MS milliseconds, or P99_TIMES its value without the attack,
 * whichever is greater.
 */
const P99_MS = 100;
const P99_TIMES = 5;
/**
 * The limits of the longest time until /healthz is answered: HEALTH_MS milliseconds, or P99_TIMES its value without the
 * attack, whichever is greater.
 */
const HEALTH_MS = 250;

/** Returns the sum of the totals of all shares, in bytes. Shares limit what users may hold. */
export function totalOfShares(): number {
  const { links, marks, spilled_bytes: _, waits: __, ...bytes } = SHARE_BOUNDS;
  const sum = Object.values(bytes).reduce((all, { total }) => all + (total ?? 0), 0);
  return sum + SPILLED_IN_MEMORY + (marks.total ?? 0) * MARK_BYTES + (links.total ?? 0) * LINK_BYTES;
}

/**
 * Returns the maximum disk use that docs/durable.md promises, in bytes: two snapshots, the journals, and the reserve.
 */
function mostOfDisk(snapshot: number): number {
  return 2 * snapshot + (snapshot > 32 * MIB ? 576 : 288) * MIB + 8 * MIB;
}

export function p99Bound(alone: number): number {
  return Math.max(P99_MS, P99_TIMES * alone);
}

/**
 * Returns the promises that the relay broke; empty if it kept all. `timing` false: the p99 is not judged, because the
 * machine is busy.
 */
export function faultsOf(episode: Episode, { timing }: { readonly timing: boolean }): readonly string[] {
  const { alone, beside, full, wholeness, operations, memory, disk, ended } = episode;
  const faults = [
    ...ended.map((reason) => `a relay ended: ${reason}`),
    ...listed('calls did not end as they should', beside.wrong),
    ...listed("operator's reads failed", beside.readsWrong),
    ...listed('requests of /healthz failed', beside.healthWrong),
    ...listed('trials of a new user or of the operator failed', beside.trialsWrong),
    ...listed('ids were not kept', wholeness.idsBroken),
    ...listed('commands lost rows', wholeness.rowsMissing),
    ...(full && full.skipped === null ? faultsOfFull(full) : []),
  ];
  const bound = p99Bound(alone.p99);
  if (timing && beside.p99 > bound) faults.push(`p99 ${beside.p99.toFixed(0)} ms, at most ${bound.toFixed(0)}`);
  const healthBound = Math.max(HEALTH_MS, P99_TIMES * alone.healthMax);
  if (timing && beside.healthMax > healthBound)
    faults.push(`/healthz took ${beside.healthMax.toFixed(0)} ms, at most ${healthBound.toFixed(0)}`);
  for (const { base, peak } of memory) {
    const most = base + SLACK * totalOfShares();
    if (peak > most) faults.push(`${mib(peak)} MiB resident, at most ${mib(most)}`);
  }
  if (disk && disk.peak > mostOfDisk(disk.snapshot))
    faults.push(`${mib(disk.peak)} MiB in the directory, at most ${mib(mostOfDisk(disk.snapshot))}`);
  if (Object.values(operations).every((count) => count === 0))
    faults.push('the attack did nothing, so this proves nothing');
  const honest = [beside.calls, beside.reads, beside.health, beside.trials, wholeness.ids];
  if (honest.includes(0)) faults.push('the honest user did nothing, so this proves nothing');
  return faults;
}

/** Returns the promises that the relay broke while its store was full. */
function faultsOfFull({ during, held, noticed, roomMs }: FullTime & { readonly skipped: null }): readonly string[] {
  const faults = [
    ...listed('calls of a full store were not refused with store_full', during.wrong),
    ...listed('reads of a full store failed', during.readsWrong),
    ...listed('requests of /healthz failed while the store was full', during.healthWrong),
    ...listed('commands that ended while the store was full did not end as they should', held.wrong),
  ];
  if (roomMs === null) faults.push('a relay did not notice that there is room again');
  if (!noticed) faults.push('no relay said that its store was full, so this proves nothing');
  if ([during.calls, during.reads, during.health, held.calls].includes(0))
    faults.push('the honest user did nothing while the store was full, so this proves nothing');
  return faults;
}

function listed(what: string, items: readonly string[]): readonly string[] {
  return items.length === 0 ? [] : [`${items.length} ${what}: ${items.slice(0, 3).join('; ')}`];
}

function mib(bytes: number): string {
  return (bytes / MIB).toFixed(0);
}

const COLUMNS = [
  'attack',
  'mode',
  'calls',
  'as they should',
  'p99 alone',
  'p99 beside',
  '/healthz at most',
  'reads and trials',
  'ids kept',
  'rows kept',
  'resident',
  'what the attack did',
  'verdict',
];

/** The columns after the first two, for runs whose store is full in the middle. */
const FULL_COLUMNS = [
  'refused while full',
  'completed while full',
  'ended while full',
  'reads while full',
  'room noticed',
];

/** Returns a Markdown table with one row for each episode. The store must be filled in all of the runs, or in none. */
export function tableOf(episodes: readonly Episode[], timing: { readonly timing: boolean }): string {
  const isFull = episodes.some(({ full }) => full !== null);
  const rows = episodes.map((episode) => {
    const { attack, mode, alone, beside, full, wholeness, operations, memory, disk } = episode;
    return [
      attack,
      mode,
      ...(isFull ? cellsOfFull(full) : []),
      beside.calls,
      beside.calls - beside.wrong.length,
      `${alone.p99.toFixed(0)} ms`,
      `${beside.p99.toFixed(0)} ms`,
      `${beside.healthMax.toFixed(0)} ms`,
      servedOf(beside),
      `${wholeness.ids - wholeness.idsBroken.length} of ${wholeness.ids}`,
      wholeness.rowsMissing.length === 0 ? 'all' : `${wholeness.rowsMissing.length} lost some`,
      [
        ...memory.map(({ base, peak }) => `${mib(base)} to ${mib(peak)} MiB`),
        ...(disk ? [`${mib(disk.peak)} MiB on disk`] : []),
      ].join(', '),
      Object.entries(operations)
        .map(([name, count]) => `${count} ${name}`)
        .join(', '),
      faultsOf(episode, timing).length === 0 ? 'holds' : '**fails**',
    ];
  });
  const columns = isFull ? [...COLUMNS.slice(0, 2), ...FULL_COLUMNS, ...COLUMNS.slice(2)] : COLUMNS;
  return [columns, columns.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

function cellsOfFull(full: FullTime | null): readonly (string | number)[] {
  if (full === null || full.skipped !== null) return FULL_COLUMNS.map(() => '-');
  const { during, held, roomMs } = full;
  return [
    during.refused,
    during.calls - during.refused - during.wrong.length,
    `${held.calls - held.wrong.length} of ${held.calls}`,
    servedOf(during),
    roomMs === null ? 'no' : `${roomMs.toFixed(0)} ms`,
  ];
}

/** Returns how many reads and trials of a phase succeeded. */
function servedOf({ reads, readsWrong, health, healthWrong, trials, trialsWrong }: Phase): string {
  const all = reads + health + trials;
  return `${all - readsWrong.length - healthWrong.length - trialsWrong.length} of ${all}`;
}
