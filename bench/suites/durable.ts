/**
 * Measures calls that are recorded before they are answered: the relay over Redis, two relays written by hand, and a
 * queue.
 */
import { DURABLE, DURABLE_CONTENDERS } from '../lib/durable-paths.ts';
import { ratio, valueOf, type Column, type Goal, type Report, type Table } from '../lib/report.ts';
import type { Run } from '../lib/rounds.ts';
import { IN_FLIGHT } from '../lib/rpc.ts';
import { linkGoals, measureLinks } from './durable-links.ts';
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
