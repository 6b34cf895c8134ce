/**
 * Measures calls that are recorded before they are answered: the relay over Redis, two relays written by hand, and a
 * queue.
 */
import { LEVELS, LINK_CONTENDERS, type LinkPath, LINKS } from '../lib/durable-links.ts';
import { DURABLE, DURABLE_CONTENDERS } from '../lib/durable-paths.ts';
import { type Column, type Goal, ratio, type Report, type Table, valueOf } from '../lib/report.ts';
import { alternate, Results, type Run } from '../lib/rounds.ts';
import { IN_FLIGHT } from '../lib/rpc.ts';
import { measureCalls } from './rpc.ts';

const COLUMNS: readonly Column[] = [
  { key: 'rate', label: 'calls/s', more: true },
  { key: 'p50', label: 'p50 ms' },
  { key: 'p99', label: 'p99 ms' },
  { key: 'cpu', label: 'relay CPU us/call' },
  { key: 'redis', label: 'Redis CPU us/call' },
  { key: 'commands', label: 'Redis commands/call' },
  { key: 'log', label: 'log bytes/call' },
];

export async function durable(run: Run): Promise<Report> {
  const title = `HTTP callers, ${IN_FLIGHT} calls in flight, Redis with its log synced once a second`;
  const table = await measureCalls(run, { suite: 'durable', title, contenders: DURABLE_CONTENDERS, columns: COLUMNS });
  const links = await measureLinks(run, COLUMNS);
  const notes = [
    'BullMQ has no relay: its caller adds a job and waits until a worker finished it; the worker runs as many jobs at once as calls are in flight. Each row has a Redis of its own, whose CPU, commands and log are what Redis itself counts. Commands include those of scripts; the calls of scripts are left out. The relays written by hand record history, state and mailbox of each call and check nothing.',
    'Near: caller and clients have links to one relay. Far: to two relays, whose CPU is added. All ends speak the protocol by hand ("bare ends").',
  ];
  const goals = [...httpGoals(table), ...linkGoals(links)];
  return { suite: 'durable', tables: [{ ...table, by: 'rate' }, ...links.map((one) => one.table)], goals, notes };
}

function httpGoals(table: Table): Goal[] {
  const to = (other: string, column: string): number | null =>
    ratio(valueOf(table, DURABLE.redis, column), valueOf(table, other, column));
  return [
    { text: "HTTP callers: calls/s to BullMQ's", measured: to(DURABLE.bullmq, 'rate'), at: 'least', bound: 2 },
    { text: 'HTTP callers: relay CPU to direct mode', measured: to(DURABLE.direct, 'cpu'), at: 'most', bound: 1.6 },
  ];
}

// Measures callers that use links over Redis, at several numbers of calls in flight.

/** The tables, one for each number of calls in flight, in the order of LEVELS. */
type LinkTables = readonly { readonly inFlight: number; readonly table: Table }[];

/** Starts every path once, and measures the paths in turn with one number of calls in flight after another. */
async function measureLinks(run: Run, columns: readonly Column[]): Promise<LinkTables> {
  await using stack = new AsyncDisposableStack();
  const wanted = LINK_CONTENDERS.filter(({ name }) => run.wanted(name));
  const failures: { readonly name: string; readonly error: unknown }[] = [];
  const ready: { readonly name: string; readonly path: LinkPath }[] = [];
  for (const { name, prepare } of wanted) {
    run.say(`durable: starting ${name}, links`);
    try {
      ready.push({ name, path: await prepare(stack) });
    } catch (error) {
      failures.push({ name, error });
    }
  }
  run.say('durable: warming up links');
  const warm = { inFlight: Math.max(...LEVELS), ...run.pace.warm };
  await alternate(ready, { rounds: 1, results: new Results() }, ({ path }) => path.drive(warm));
  const tables: { inFlight: number; table: Table }[] = [];
  for (const inFlight of LEVELS) {
    run.say(`durable: timing links with ${inFlight} in flight`);
    const results = new Results();
    for (const { name, error } of failures) results.fail(name, error);
    const { rounds, timedMs } = run.pace;
    await alternate(ready, { rounds, results }, ({ path }) => path.drive({ inFlight, ms: timedMs }));
    const title = `Link callers, ${inFlight} ${inFlight === 1 ? 'call' : 'calls'} in flight`;
    tables.push({ inFlight, table: { title, columns, rows: wanted.map((one) => results.row(one)), by: 'redis' } });
  }
  return tables;
}

/** Returns the goals for a recorded call: its cost compared with a BullMQ job, and the bytes that it may write. */
function linkGoals(tables: LinkTables): Goal[] {
  const at = (inFlight: number, name: string, column: string): number | null => {
    const found = tables.find((one) => one.inFlight === inFlight);
    return found ? valueOf(found.table, name, column) : null;
  };
  const toBullmq = (inFlight: number, name: string, column: string): number | null =>
    ratio(at(inFlight, name, column), at(inFlight, LINKS.bullmq, column));
  const most = (text: string, measured: number | null, bound: number): Goal => ({ text, measured, at: 'most', bound });
  const cpu = (name: string, text: string, bound: number): Goal =>
    most(`${text}: Redis CPU to BullMQ's`, toBullmq(64, name, 'redis'), bound);
  const commands = (name: string, text: string, bound: number): Goal =>
    most(`${text}: Redis commands a call`, at(64, name, 'commands'), bound);
  const log = (name: string, text: string): Goal => most(`${text}: log bytes a call`, at(64, name, 'log'), 4200);
  const rate = toBullmq(64, LINKS.fewNear, 'rate');
  return [
    cpu(LINKS.fewNear, '2 clients, near', 0.45),
    cpu(LINKS.fewFar, '2 clients, far', 0.45),
    cpu(LINKS.manyNear, '64 clients, near', 0.7),
    cpu(LINKS.manyFar, '64 clients, far', 0.7),
    { text: "2 clients, near: calls/s to BullMQ's", measured: rate, at: 'least', bound: 2.5 },
    commands(LINKS.fewNear, '2 clients, near', 3),
    commands(LINKS.fewFar, '2 clients, far', 3),
    commands(LINKS.ownIds, "2 clients, near, callers' ids", 6),
    commands(LINKS.manyNear, '64 clients, near', 16),
    commands(LINKS.manyFar, '64 clients, far', 16),
    log(LINKS.fewNear, '2 clients, near'),
    log(LINKS.fewFar, '2 clients, far'),
    log(LINKS.manyNear, '64 clients, near'),
    log(LINKS.manyFar, '64 clients, far'),
    most("1 in flight, 2 clients, near: Redis CPU to BullMQ's", toBullmq(1, LINKS.fewNear, 'redis'), 1),
  ];
}
