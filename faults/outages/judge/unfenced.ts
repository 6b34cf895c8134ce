/** Judges that relays that own partitions keep their leases and partitions, unless a fault takes them away. */
import { MS, RECOVERY_MS, type Evidence, type FaultTime } from './evidence.ts';
import { find, type Judged } from './finding.ts';

/**
 * The faults that stop a single relay, or separate it from Redis, for longer than its lease. Their targets are relays.
 */
const OF_ONE: ReadonlySet<string> = new Set([
  'relay-pause',
  'relay-swap',
  'relay-clock',
  'hole',
  'half-open',
  'redis-flap',
]);
/** The corresponding faults of all relays. */
const OF_ALL: ReadonlySet<string> = new Set([
  ...['redis-kill', 'redis-cut', 'redis-pause', 'redis-failover', 'redis-kills', 'redis-break', 'relay-break'],
  ...['all-holes', 'cluster-failover', 'handover-failover'],
]);
/** The maximum error of a report's time if its relay has a wrong clock, in milliseconds. */
const CLOCK_OFF_MS = 60_000;
/** The period around a loss in which the machine may have stopped a process, in milliseconds. */
const STARVED_BEFORE_MS = 10_000;
const STARVED_AFTER_MS = 1_000;
/**
 * For how long in total the machine must not have run the process in that period, in milliseconds. In less time, a
 * lease would still be renewed in time.
 */
const STARVED_MS = 1_000;
/** The processes that all relays need to renew their leases. */
const NEEDED: readonly string[] = ['proxies', 'redis'];

/**
 * Judges each report of a relay that its lease ended or that another relay owns one of its partitions. A fault that
 * stopped or separated this relay must explain the report, or a machine that did not run the relay. The relay's own
 * work, such as a takeover, must never take so long.
 */
export function judgeUnfenced({ of, faults }: Evidence): Judged {
  const processes = of('process');
  const turns = of('turns');
  const held = faults(...OF_ONE, ...OF_ALL);
  const isDuring = ({ kind, from, to }: FaultTime, at: number): boolean => {
    const offMs = kind === 'relay-clock' ? CLOCK_OFF_MS : 0;
    return from - offMs * MS <= at && at <= to + (RECOVERY_MS + offMs) * MS;
  };
  const isFault = (relay: string, at: number): boolean =>
    held.some((fault) => (OF_ALL.has(fault.kind) || fault.target === relay) && isDuring(fault, at));
  const starvedMs = (process: string, at: number): number =>
    turns
      .filter((one) => one.of === process || NEEDED.includes(one.of))
      .filter((one) => at - STARVED_BEFORE_MS * MS <= one.at && one.at <= at + STARVED_AFTER_MS * MS)
      .reduce((sum, { stalledMs, turnMs }) => sum + Math.max(0, stalledMs - turnMs), 0);
  const isStarved = (process: string, at: number): boolean => starvedMs(process, at) >= STARVED_MS;
  const reports = of('fenced').map(({ of: relay, boot, what, at }) => {
    const cause = isFault(relay, at) ? 'fault' : isStarved(`${relay}.${boot}`, at) ? 'machine' : 'itself';
    return { text: `${relay}.${boot} (${what})`, cause };
  });
  const count = (cause: string): number => reports.filter((report) => report.cause === cause).length;
  const worst = turns.filter(({ of: name }) => !NEEDED.includes(name)).toSorted((a, b) => b.turnMs - a.turnMs)[0];
  return {
    looked: processes.length,
    findings: find(
      'a relay that lost its lease or a partition by itself',
      reports.filter(({ cause }) => cause === 'itself'),
    ),
    says: `${count('fault')} losses by faults, ${count('machine')} because the machine did not run a relay; the longest turn ${worst?.turnMs.toFixed(0) ?? '<25'} ms of CPU`,
  };
}
