/** Measures what counting adds to the cost of one call. It runs inside this process, because it compares no peers. */
import { createMetrics, type Meter } from '../../src/platform/metrics.ts';
import { FINE } from '../../src/core/metrics/reading.ts';
import type { Sample } from '../lib/numbers.ts';
import { valueOf, type Report, type Table } from '../lib/report.ts';
import { alternate, Results, type Run } from '../lib/rounds.ts';

type Way = {
  readonly name: string;
  readonly kind: 'own';
  readonly exemplars: boolean;
  readonly work: (meter: Meter, i: number) => void;
};

const COMMAND = {
  commandId: '01890a5d-ac96-774b-bcce-b302099a8057',
  traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
  traceFlags: null,
  callSpan: null,
};
const ROW = {
  counters: 'the counters of one call',
  durations: 'the durations of one call',
  exemplars: 'the durations of one call, with exemplars',
  all: 'all of one call, with its part of a time slot',
} as const;
/** The goal: the CPU time that counting may add to one call, in microseconds. */
const GOAL_US = 0.3;
/** The number of calls between two readings of the clock. */
const BATCH = 10_000;
/** The number of calls in one time slot of 5 s, at 200 calls per second. */
const CALLS_IN_SLOT = 1000;

const WAYS: readonly Way[] = [
  { name: ROW.counters, kind: 'own', exemplars: false, work: countCall },
  { name: ROW.durations, kind: 'own', exemplars: false, work: measureCall },
  { name: ROW.exemplars, kind: 'own', exemplars: true, work: measureCall },
  { name: ROW.all, kind: 'own', exemplars: false, work: closeAfterCalls },
];

/** Counts everything that the relay counts for a call that its client acknowledges and completes. */
function countCall(meter: Meter): void {
  meter.count('commands_admitted');
  meter.count('commands_dispatched');
  meter.count('commands_acknowledged');
  meter.count('commands_ended', 'completed');
}

function measureCall(meter: Meter, i: number): void {
  meter.observe('dispatch_seconds', i & 7, undefined, COMMAND);
  meter.observe('ack_seconds', i & 31, undefined, COMMAND);
  meter.observe('command_seconds', i & 4095, 'completed', COMMAND);
}

let slot = 0;

function closeAfterCalls(meter: Meter, i: number): void {
  countCall(meter);
  measureCall(meter, i);
  if (i % CALLS_IN_SLOT === 0) meter.closeSlot(++slot * FINE.slotMs);
}

export async function metrics({ pace, say, wanted }: Run): Promise<Report> {
  const results = new Results();
  const ways = WAYS.filter(({ name }) => wanted(name));
  say('metrics: counting and measuring');
  for (const way of ways) await measure(way, pace.warmMs / 4);
  await alternate(ways, { rounds: pace.rounds, results }, (way) => measure(way, pace.timedMs));
  const table: Table = {
    title: 'What one call costs',
    columns: [{ key: 'cpu', label: 'CPU us/call' }],
    rows: WAYS.map((way) => results.row(way)),
    by: 'cpu',
  };
  const cost = (name: string): number | null => valueOf(table, name, 'cpu');
  return {
    suite: 'metrics',
    tables: [table],
    goals: [ROW.all, ROW.exemplars].map((name) => ({
      text: `${name}, CPU us`,
      measured: cost(name),
      at: 'most' as const,
      bound: GOAL_US,
    })),
    notes: [
      `The row "${ROW.all}" counts and measures calls and closes a slot after each ${CALLS_IN_SLOT} of them, as a node with 200 calls a second does.`,
    ],
  };
}

async function measure({ exemplars, work }: Way, forMs: number): Promise<Sample> {
  const meter = createMetrics();
  if (exemplars) await meter.expose('openmetrics');
  const before = process.cpuUsage();
  const end = performance.now() + forMs;
  let calls = 0;
  while (performance.now() < end) for (const last = calls + BATCH; calls < last; calls++) work(meter, calls);
  const { user, system } = process.cpuUsage(before);
  meter.close();
  return { cpu: (user + system) / calls };
}
