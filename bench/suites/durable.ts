/** Calls that are recorded before they are answered: the relay over Redis, two relays written by hand, and a queue. */
import { DURABLE, DURABLE_CONTENDERS } from '../lib/durable-paths.ts';
import { ratio, valueOf, type Column, type Goal, type Report, type Table } from '../lib/report.ts';
import type { Run } from '../lib/rounds.ts';
import { IN_FLIGHT } from '../lib/rpc.ts';
import { measureCalls } from './rpc.ts';

const COLUMNS: readonly Column[] = [
  { key: 'rate', label: 'calls/s', more: true },
  { key: 'p50', label: 'p50 ms' },
  { key: 'p99', label: 'p99 ms' },
  { key: 'cpu', label: 'relay CPU us/call' },
  { key: 'redis', label: 'Redis CPU us/call' },
];

export async function durable(run: Run): Promise<Report> {
  const title = `${IN_FLIGHT} calls in flight, Redis with its log synced once a second`;
  const table = await measureCalls(run, { suite: 'durable', title, contenders: DURABLE_CONTENDERS, columns: COLUMNS });
  const notes = [
    'HTTP callers, clients on links; BullMQ has no relay: its caller adds a job and waits until a worker finished it. Each has a Redis of its own, whose CPU is what Redis itself says. The relays written by hand record history, state and mailbox of each call and check nothing.',
  ];
  return { suite: 'durable', tables: [{ ...table, by: 'rate' }], goals: goalsOf(table), notes };
}

function goalsOf(table: Table): Goal[] {
  const at = (name: string, column: string): number | null => valueOf(table, name, column);
  const rate = (other: string): number | null => ratio(at(DURABLE.redis, 'rate'), at(other, 'rate'));
  return [
    { text: 'calls/s to direct mode', measured: rate(DURABLE.direct), at: 'least', bound: 0.8 },
    { text: 'Redis CPU us/call', measured: at(DURABLE.redis, 'redis'), at: 'most', bound: 40 },
    { text: 'calls/s to awaits one by one', measured: rate(DURABLE.naive), at: 'least', bound: 2.5 },
    { text: 'calls/s to BullMQ', measured: rate(DURABLE.bullmq), at: 'least', bound: 3.5 },
  ];
}
