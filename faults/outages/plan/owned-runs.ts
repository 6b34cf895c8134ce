/**
 * Lists the fault runs of relays that own partitions before a release: one for each kind of failure, with many faults.
 */
import type { Range } from './plan.ts';
import type { ReleaseRun } from './plans.ts';

/**
 * A row with one kind of failure. Absent members have the values common to all rows; an absent `hold` has that of the
 * plan.
 */
type Row = Pick<ReleaseRun, 'plan' | 'faults' | 'gap' | 'hold'> & Partial<Pick<ReleaseRun, 'commands'>>;

/** The number of faults in each row, and the time between two faults in milliseconds, unless a row differs. */
const FAULTS = 20;
const GAP: Range = [2_000, 3_000];
/** The number of commands per fault, and the maximum number of commands per second. */
const COMMANDS_OF_FAULT = 150;
const RATE = 120;

const ROWS: readonly Row[] = [
  // The relay of an owner, a caller or a client is killed, mostly while an owner is at work or writes a snapshot.
  { plan: 'F26' },
  // All relays are killed. All of them must be back before a call can end.
  { plan: 'F27', gap: [10_000, 14_000] },
  // Relays are stopped in order and started again, one after the other.
  { plan: 'F19' },
  // An owner is stopped for longer than its lease, and then continues.
  { plan: 'F7', hold: [4_000, 6_000] },
  // Redis is killed and started again.
  { plan: 'F3' },
  // Connections break: all of them, the connections for mail, and those of one relay in other ways.
  { plan: 'F31' },
  { plan: 'F28' },
  { plan: 'F8', faults: 3 },
  // The end of the log is lost, and relays are killed in between. There are more faults, because each is one of the
  // two.
  { plan: 'F29', faults: 1.5 * FAULTS },
  // One owner is separated from Redis for longer than its lease. The next owner may get its partitions and be separated
  // too.
  { plan: 'F30', hold: [3_500, 5_000], gap: [6_000, 8_000] },
  // The clock of a relay is wrong.
  { plan: 'F32' },
  // Failovers under a sentinel and in a cluster, slots that move, and a failover that undoes a handover.
  { plan: 'sentinel', commands: 5_000 },
  { plan: 'F33' },
  { plan: 'F34' },
  { plan: 'F35' },
  // Connections break at each command of a start, under a sentinel and in a cluster.
  { plan: 'F20s', faults: 3 },
  { plan: 'F20c', faults: 3 },
  // Relays are killed and stopped while people pause calls and revoke tokens.
  { plan: 'F37' },
  // Two of three full relays are killed, and the third takes over within its memory.
  { plan: 'F36', faults: 1, gap: [40_000, 40_000] },
];
/** The number of commands with which relays become full. */
const FULL_COMMANDS = 2_000;

/** Returns the runs of all rows. The run with many kills under many commands (F26) takes an hour. */
export function ownedRuns(seed: number): readonly ReleaseRun[] {
  return ROWS.map(({ faults = FAULTS, gap = GAP, ...row }) => {
    const commands = faults === 1 ? FULL_COMMANDS : faults * COMMANDS_OF_FAULT;
    return { commands, ...row, seed, faults, gap, rate: RATE };
  });
}
