/** Judges one attack: whether the honest user was harmed, and whether the relay's memory kept its bound. */
import { SHARE_BOUNDS } from '../../src/core/shares/bounds.ts';
import type { OperationCounts, Phase, Wholeness } from './figures.ts';

/** The result of one attack in one mode. Times in milliseconds, memory in bytes. */
export type Episode = {
  readonly attack: string;
  readonly mode: 'direct' | 'shared';
  readonly alone: Phase;
  readonly beside: Phase;
  readonly wholeness: Wholeness;
  readonly operations: OperationCounts;
  /** For each relay: resident memory before the attack, and its maximum. */
  readonly memory: readonly { readonly base: number; readonly peak: number }[];
  /** Relays whose processes ended, each with the last lines of its stderr. */
  readonly ended: readonly string[];
};

const MIB = 1024 * 1024;
/**
 * The memory that a relay in direct mode may use for the shares counted in bytes; for spilled payloads, the total
 * without a directory.
 */
const SPILLED_IN_MEMORY = 128 * MIB;
/** The memory of the mark of one ended command. */
const MARK_BYTES = 50;
/** The memory of an idle link, with its socket and its row. */
const LINK_BYTES = 24 * 1024;
/** Memory beyond the counted bytes: object headers, and garbage. */
const SLACK = 1.3;
/** The honest user's p99 may be this long, or P99_TIMES as long as without the attack, whichever is more. */
const P99_MS = 100;
const P99_TIMES = 5;

/** The sum of the totals of all shares, bytes. */
export function totalOfShares(): number {
  const { links, marks, spilled_bytes: _, waits: __, ...bytes } = SHARE_BOUNDS;
  const sum = Object.values(bytes).reduce((all, { total }) => all + (total ?? 0), 0);
  return sum + SPILLED_IN_MEMORY + (marks.total ?? 0) * MARK_BYTES + (links.total ?? 0) * LINK_BYTES;
}

export function p99Bound(alone: number): number {
  return Math.max(P99_MS, P99_TIMES * alone);
}

/**
 * The promises that the relay broke; empty if it kept all. `timing` false: the p99 is not judged, because the machine
 * is busy.
 */
export function faultsOf(episode: Episode, { timing }: { readonly timing: boolean }): readonly string[] {
  const { alone, beside, wholeness, operations, memory, ended } = episode;
  const faults = [
    ...ended.map((reason) => `a relay ended: ${reason}`),
    ...listed('calls did not end as they should', beside.wrong),
    ...listed("operator's reads failed", beside.readsWrong),
    ...listed('ids were not kept', wholeness.idsBroken),
    ...listed('commands lost rows', wholeness.rowsMissing),
  ];
  const bound = p99Bound(alone.p99);
  if (timing && beside.p99 > bound) faults.push(`p99 ${beside.p99.toFixed(0)} ms, at most ${bound.toFixed(0)}`);
  for (const { base, peak } of memory) {
    const most = base + SLACK * totalOfShares();
    if (peak > most) faults.push(`${mib(peak)} MiB resident, at most ${mib(most)}`);
  }
  if (Object.values(operations).every((count) => count === 0))
    faults.push('the attack did nothing, so this proves nothing');
  if (beside.calls === 0 || wholeness.ids === 0) faults.push('the honest user did nothing, so this proves nothing');
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
  'ids kept',
  'rows kept',
  'resident',
  'what the attack did',
  'verdict',
];

/** A Markdown table, with a row for each episode. */
export function tableOf(episodes: readonly Episode[], timing: { readonly timing: boolean }): string {
  const rows = episodes.map((episode) => {
    const { attack, mode, alone, beside, wholeness, operations, memory } = episode;
    return [
      attack,
      mode,
      beside.calls,
      beside.calls - beside.wrong.length,
      `${alone.p99.toFixed(0)} ms`,
      `${beside.p99.toFixed(0)} ms`,
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
