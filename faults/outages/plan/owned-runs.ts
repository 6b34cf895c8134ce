/** Lists the fault runs of relays that own partitions before a release: each row of their failures, many times. */
import type { Range } from './plan.ts';
import type { ReleaseRun } from './plans.ts';

/** A row of the failures. Absent members are those of all rows, and `hold` is that of the plan. */
type Row = Pick<ReleaseRun, 'plan' | 'faults' | 'gap' | 'hold'> & Partial<Pick<ReleaseRun, 'commands'>>;

/** Each row has this many faults, unless a row says otherwise, one soon after the other. */
const FAULTS = 20;
const GAP: Range = [2_000, 3_000];
/** The commands for each fault, and the highest number of commands per second. */
const COMMANDS_OF_FAULT = 150;
const RATE = 120;

const ROWS: readonly Row[] = [
  // An owner, a caller's or a client's relay killed, most of them while an owner works, or writes a snapshot.
  { plan: 'F26' },
  // All relays killed. Each time all of them must be back before a call can end.
  { plan: 'F27', gap: [10_000, 14_000] },
  // Relays stopped in order and started again, one after the other.
  { plan: 'F19' },
  // An owner stopped for longer than its lease, and resumed.
  { plan: 'F7', hold: [4_000, 6_000] },
  // Redis killed and started again.
  { plan: 'F3' },
  // All connections cut; the connections for mail; those of one relay, in other ways.
  { plan: 'F31' },
  { plan: 'F28' },
  { plan: 'F8', faults: 3 },
  // The tail of the log lost, and relays killed in between: more, because either fault is drawn.
  { plan: 'F29', faults: 1.5 * FAULTS },
  // An owner cut from Redis alone, for longer than its lease. The next one may own what it did, and be cut itself.
  { plan: 'F30', hold: [3_500, 5_000], gap: [6_000, 8_000] },
  // The clock of a relay wrong.
  { plan: 'F32' },
  // Failovers under a sentinel and in a cluster, slots that move, and a failover that takes a handover back.
  { plan: 'sentinel', commands: 5_000 },
  { plan: 'F33' },
  { plan: 'F34' },
  { plan: 'F35' },
  // Breaks of each connection at each command of a start, under a sentinel and in a cluster.
  { plan: 'F20s', faults: 3 },
  { plan: 'F20c', faults: 3 },
  // Relays killed and stopped while people pause calls and revoke tokens.
  { plan: 'F37' },
  // Two of three full relays killed: the third takes over within its memory.
  { plan: 'F36', faults: 1, gap: [40_000, 40_000] },
];
/** The number of commands that make relays full. */
const FULL_COMMANDS = 2_000;

/** Returns the runs of all rows. Many kills under many commands (F26) are a run of their own, because it takes an hour. */
export function ownedRuns(seed: number): readonly ReleaseRun[] {
  return ROWS.map(({ faults = FAULTS, gap = GAP, ...row }) => {
    const commands = faults === 1 ? FULL_COMMANDS : faults * COMMANDS_OF_FAULT;
    return { commands, ...row, seed, faults, gap, rate: RATE };
  });
}
