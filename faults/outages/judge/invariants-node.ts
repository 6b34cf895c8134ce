/**
 * Judges each relay: its limits, its memory, and that it holds nothing after all clients and callers have disconnected.
 */
import type { Evidence } from './evidence.ts';
import type { Logged } from '../log/events.ts';
import { find, type Judged } from './finding.ts';

/** The maximum number of commands in flight over one link. */
const WINDOW = 32;
const MIB = 1024 * 1024;
/** The maximum resident memory of a relay that keeps no records, in bytes. */
const RSS_MAX = 512 * MIB;
/**
 * The maximum resident memory of a relay that keeps records, in bytes: half of the memory in deploy/kubernetes. With
 * the default limits, its records take 230 to 300 MB, and V8 needs as much again during a collection.
 */
const RSS_MAX_WITH_RECORDS = 1024 * MIB;
/** The maximum growth of the memory that a relay holds after garbage collections, in bytes per minute. */
const SLOPE_MAX_PER_MINUTE = MIB;
/** The growth in bytes that may be noise of the garbage collector, as in `npm run soak`. */
const NOISE = 3 * MIB;
/**
 * The maximum memory for one command in a relay without Redis, in bytes. The memory benchmark finds 1 KB for an ended
 * command with its two rows; the double allows for rows of links, marks, and space between objects.
 */
const KEPT_BYTES = 2 * 1024;
/** One minute in nanoseconds, the unit of the logs. */
const MINUTE = 60e9;

type Memory = Extract<Logged, { event: 'memory' }>;

export function judgeCaps({ of, events }: Evidence): Judged {
  const caps = of('cap');
  const over = caps.filter(({ value, max }) => value > max);
  const most = mostAtOnce(events);
  const wide = [...most].filter(([, count]) => count > WINDOW);
  return {
    looked: caps.length + most.size,
    findings: [
      ...find(
        'a bound that was passed',
        over.map(({ name, value, max }) => ({ text: `${name}: ${value} of ${max}` })),
      ),
      ...find(
        'more in flight than the window holds',
        wide.map(([of, count]) => ({ text: `${of}: ${count}` })),
      ),
    ],
  };
}

/** Returns the maximum number of handlers that ran at the same time, by instance. */
function mostAtOnce(events: readonly Logged[]): ReadonlyMap<string, number> {
  const now = new Map<string, number>();
  const most = new Map<string, number>();
  for (const event of events) {
    if (event.event !== 'run-begin' && event.event !== 'run-end') continue;
    const name = `${event.user}/${event.client}/${event.instance}`;
    const count = (now.get(name) ?? 0) + (event.event === 'run-begin' ? 1 : -1);
    now.set(name, count);
    most.set(name, Math.max(most.get(name) ?? 0, count));
  }
  return most;
}

function isLarge({ resident, keepsRecords }: Memory): boolean {
  return resident > (keepsRecords ? RSS_MAX_WITH_RECORDS : RSS_MAX);
}

export function judgeMemory({ of }: Evidence): Judged {
  const samples = Map.groupBy(of('memory'), (sample) => sample.of);
  const calls = of('attempt').map(({ at }) => at);
  const large = [...samples].filter(([, list]) => list.some(isLarge));
  // Growth is judged only under load. Later, the checker reads every record, which takes memory for a while.
  const quietAt = of('phase').findLast(({ phase }) => phase === 'quiet')?.at ?? Infinity;
  const growing = [...samples].filter(([, list]) =>
    grows(
      list.filter(({ at }) => at <= quietAt),
      calls,
    ),
  );
  return {
    looked: of('memory').length,
    findings: [
      ...find(
        'more memory than allowed',
        large.map(([name]) => ({ text: name })),
      ),
      ...find(
        'memory that grows',
        growing.map(([name]) => ({ text: name })),
      ),
      ...find(
        'a key without an expiry',
        of('leftover').map(({ key }) => ({ text: key })),
      ),
    ],
  };
}

/**
 * Returns whether memory grows: the slope (least squares) over the last third of the samples, if that third lasts at
 * least a minute. At first a relay's memory grows while its caches fill. A relay that keeps records itself may also
 * grow by the records of the calls made in that time (`calls`: the times of all calls, in order).
 */
function grows(samples: readonly Memory[], calls: readonly number[]): boolean {
  const first = samples[0];
  const last = samples.at(-1);
  if (!first || !last) return false;
  const from = last.at - (last.at - first.at) / 3;
  if (last.at - from < MINUTE) return false;
  const rest = samples.filter(({ at }) => at >= from);
  let made = 0;
  const besidesRecords = ({ at, live, keepsRecords }: Memory): number => {
    while ((calls[made] ?? Infinity) <= at) made++;
    return keepsRecords ? live - made * KEPT_BYTES : live;
  };
  const perMinute = slope(rest.map((sample) => [(sample.at - from) / MINUTE, besidesRecords(sample)]));
  return perMinute >= SLOPE_MAX_PER_MINUTE && perMinute * ((last.at - from) / MINUTE) >= NOISE;
}

function slope(points: readonly (readonly [number, number])[]): number {
  const mean = (pick: 0 | 1): number => points.reduce((sum, point) => sum + point[pick], 0) / points.length;
  const [mx, my] = [mean(0), mean(1)];
  const xy = points.reduce((sum, [x, y]) => sum + (x - mx) * (y - my), 0);
  const xx = points.reduce((sum, [x]) => sum + (x - mx) ** 2, 0);
  return xx === 0 ? 0 : xy / xx;
}

export function judgeIdle({ of }: Evidence): Judged {
  const idle = of('idle');
  const named = (rows: typeof idle) => rows.map((row) => ({ text: row.of }));
  return {
    looked: idle.length,
    findings: [
      ...find('a relay that is not among the nodes', named(idle.filter(({ waiters }) => waiters < 0))),
      ...find('waiters left', named(idle.filter(({ waiters }) => waiters > 0))),
      ...find('commands left on a node', named(idle.filter(({ unfinished }) => unfinished > 0))),
      ...find('sockets left', named(idle.filter(({ sockets, baseline }) => sockets > baseline))),
    ],
  };
}

/**
 * Judges that each process of a relay ended only because the run killed it, or with exit code 0 after the run asked it
 * to stop.
 */
export function judgeProcesses({ of }: Evidence): Judged {
  const processes = of('process');
  const named = (found: typeof processes) =>
    found.map(({ of: name, code, signal }) => ({ text: `${name} (${signal ?? `exit code ${code}`})` }));
  return {
    looked: processes.length,
    findings: [
      ...find('a relay ended by itself', named(processes.filter(({ by }) => by === 'itself'))),
      ...find(
        'a relay that was asked to stop did not end with exit code 0',
        named(processes.filter(({ by, code }) => by === 'stop' && code !== 0)),
      ),
    ],
  };
}
