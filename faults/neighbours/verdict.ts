/** Judges one attack: whether the honest user was harmed, and whether the relay's memory kept its limit. */
import { SHARE_BOUNDS } from '../../src/core/shares/shares.ts';
import type { OperationCounts, Phase, Wholeness } from './figures.ts';

/** The result of one attack in one mode. Times are in milliseconds, memory in bytes. */
export type Episode = {
  readonly attack: string;
  readonly mode: 'direct' | 'shared';
  readonly alone: Phase;
  readonly beside: Phase;
  readonly wholeness: Wholeness;
  readonly operations: OperationCounts;
  /** The resident memory of each relay before the attack, and its maximum during the attack. */
  readonly memory: readonly { readonly base: number; readonly peak: number }[];
  /** The relays whose processes ended, each with the last lines of its standard error. */
  readonly ended: readonly string[];
};

const MIB = 1024 * 1024;
/**
 * The memory that a relay in direct mode may use for spilled payloads, in bytes: the total of that share when no
 * directory is set.
 */
const SPILLED_IN_MEMORY = 128 * MIB;
/** The memory for the record that remains of one ended command, in bytes. */
const MARK_BYTES = 50;
/** The memory of an idle link with its socket and its row, in bytes. */
const LINK_BYTES = 24 * 1024;
/** The factor by which memory may exceed the counted bytes, because of object headers and garbage. */
const SLACK = 1.3;
/**
 * The limits of the honest user's p99 during an attack: P99_MS milliseconds, or P99_TIMES its value without the attack.
 * The greater of the two applies.
 */
const P99_MS = 100;
const P99_TIMES = 5;
/** The limit of the longest time until an answer of /healthz, in milliseconds. */
const HEALTH_MS = 250;

/** Returns the sum of the totals of all shares (limits of what users may hold), in bytes. */
export function totalOfShares(): number {
  const { links, marks, spilled_bytes: _, waits: __, ...bytes } = SHARE_BOUNDS;
  const sum = Object.values(bytes).reduce((all, { total }) => all + (total ?? 0), 0);
  return sum + SPILLED_IN_MEMORY + (marks.total ?? 0) * MARK_BYTES + (links.total ?? 0) * LINK_BYTES;
}

export function p99Bound(alone: number): number {
  return Math.max(P99_MS, P99_TIMES * alone);
}

/**
 * Returns the promises that the relay broke; none if it kept all. `timing` false: the p99 is not judged, because the
 * machine is busy.
 */
export function faultsOf(episode: Episode, { timing }: { readonly timing: boolean }): readonly string[] {
  const { alone, beside, wholeness, operations, memory, ended } = episode;
  const faults = [
    ...ended.map((reason) => `a relay ended: ${reason}`),
    ...listed('calls did not end as they should', beside.wrong),
    ...listed("operator's reads failed", beside.readsWrong),
    ...listed('requests of /healthz failed', beside.healthWrong),
    ...listed('trials of a new user or of the operator failed', beside.trialsWrong),
    ...listed('ids were not kept', wholeness.idsBroken),
    ...listed('commands lost rows', wholeness.rowsMissing),
  ];
  const bound = p99Bound(alone.p99);
  if (timing && beside.p99 > bound) faults.push(`p99 ${beside.p99.toFixed(0)} ms, at most ${bound.toFixed(0)}`);
  if (timing && beside.healthMax > HEALTH_MS)
    faults.push(`/healthz took ${beside.healthMax.toFixed(0)} ms, at most ${HEALTH_MS}`);
  for (const { base, peak } of memory) {
    const most = base + SLACK * totalOfShares();
    if (peak > most) faults.push(`${mib(peak)} MiB resident, at most ${mib(most)}`);
  }
  if (Object.values(operations).every((count) => count === 0))
    faults.push('the attack did nothing, so this proves nothing');
  const honest = [beside.calls, beside.reads, beside.health, beside.trials, wholeness.ids];
  if (honest.includes(0)) faults.push('the honest user did nothing, so this proves nothing');
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

/** Returns a Markdown table with a row for each episode. */
export function tableOf(episodes: readonly Episode[], timing: { readonly timing: boolean }): string {
  const rows = episodes.map((episode) => {
    const { attack, mode, alone, beside, wholeness, operations, memory } = episode;
    const failed = beside.readsWrong.length + beside.healthWrong.length + beside.trialsWrong.length;
    const served = beside.reads + beside.health + beside.trials - failed;
    return [
      attack,
      mode,
      beside.calls,
      beside.calls - beside.wrong.length,
      `${alone.p99.toFixed(0)} ms`,
      `${beside.p99.toFixed(0)} ms`,
      `${beside.healthMax.toFixed(0)} ms`,
      `${served} of ${beside.reads + beside.health + beside.trials}`,
      `${wholeness.ids - wholeness.idsBroken.length} of ${wholeness.ids}`,
      wholeness.rowsMissing.length === 0 ? 'all' : `${wholeness.rowsMissing.length} lost some`,
      memory.map(({ base, peak }) => `${mib(base)} to ${mib(peak)} MiB`).join(', '),
      Object.entries(operations)
        .map(([name, count]) => `${count} ${name}`)
        .join(', '),
      faultsOf(episode, timing).length === 0 ? 'holds' : '**fails**',
    ];
  });
  return [COLUMNS, COLUMNS.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}
