/** Measures calls that are recorded before they are answered: the relay over Redis, two minimal relays, and a queue. */
import { DURABLE, DURABLE_CONTENDERS, LEVELS, LINK_CONTENDERS, LINKS } from '../lib/durable-paths.ts';
import { type Column, type Goal, ratio, type Report, type Table, valueOf } from '../lib/report.ts';
import type { Run } from '../lib/rounds.ts';
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
  const http = await measureCalls(run, {
    ...{ suite: 'durable', contenders: DURABLE_CONTENDERS, columns: COLUMNS, by: 'rate', levels: [IN_FLIGHT] },
    title: (inFlight) => `HTTP callers, ${inFlight} calls in flight, Redis with its log synced once a second`,
  });
  const links = await measureCalls(run, {
    ...{ suite: 'durable, links', contenders: LINK_CONTENDERS, columns: COLUMNS, by: 'redis', levels: LEVELS },
    title: (inFlight) => `Link callers, ${inFlight} ${inFlight === 1 ? 'call' : 'calls'} in flight`,
  });
  const notes = [
    'BullMQ has no relay: its caller adds a job and waits until a worker finished it; the worker runs as many jobs at once as calls are in flight. Each row has a Redis of its own, whose CPU, commands and log are what Redis itself counts. Commands include those of scripts; the calls of scripts are left out. The relays written by hand record history, state and mailbox of each call and check nothing.',
    'Near: caller and clients have links to one relay. Far: to two relays, whose CPU is added. All ends speak the protocol by hand ("bare ends"). With owners: relays that own partitions of users (`STORE=owned`); the CPU of all relays of a row is added. Direct mode with a data directory records the same facts in files, synced every second.',
  ];
  return {
    suite: 'durable',
    tables: [...http, ...links],
    goals: [...http.flatMap(httpGoals), ...linkGoals(links)],
    notes,
  };
}

function most(text: string, measured: number | null, bound: number): Goal {
  return { text, measured, at: 'most', bound };
}

function least(text: string, measured: number | null, bound: number): Goal {
  return { text, measured, at: 'least', bound };
}

function httpGoals(table: Table): Goal[] {
  const to = (other: string, column: string): number | null =>
    ratio(valueOf(table, DURABLE.redis, column), valueOf(table, other, column));
  return [
    most("HTTP callers: Redis CPU to BullMQ's", to(DURABLE.bullmq, 'redis'), 0.6),
    least("HTTP callers: calls/s to BullMQ's", to(DURABLE.bullmq, 'rate'), 1.4),
    most('HTTP callers: relay CPU to direct mode', to(DURABLE.direct, 'cpu'), 1.6),
  ];
}

const PLACES = [
  { name: LINKS.fewNear, text: '2 clients, near', redis: 0.5, commands: 3 },
  { name: LINKS.manyNear, text: '64 clients, near', redis: 0.5, commands: 16 },
  { name: LINKS.fewFar, text: '2 clients, far', redis: 0.65, commands: 3 },
  { name: LINKS.manyFar, text: '64 clients, far', redis: 0.65, commands: 16 },
] as const;

/**
 * Returns the goals for a recorded call: its cost compared with that of a BullMQ job, and the bytes that it may write.
 */
function linkGoals(tables: readonly Table[]): Goal[] {
  const at = (inFlight: number, name: string, column: string): number | null => {
    const table = tables[LEVELS.indexOf(inFlight)];
    return table ? valueOf(table, name, column) : null;
  };
  const toBullmq = (inFlight: number, name: string, column: string): number | null =>
    ratio(at(inFlight, name, column), at(inFlight, DURABLE.bullmq, column));
  return [
    ...[64, 256].flatMap((inFlight) =>
      PLACES.map(({ name, text, redis }) =>
        most(`${inFlight} in flight, ${text}: Redis CPU to BullMQ's`, toBullmq(inFlight, name, 'redis'), redis),
      ),
    ),
    most("1 in flight, 2 clients, near: Redis CPU to BullMQ's", toBullmq(1, LINKS.fewNear, 'redis'), 1),
    most("1 in flight, 64 clients, near: Redis CPU to BullMQ's", toBullmq(1, LINKS.manyNear, 'redis'), 1),
    most("1 in flight, 2 clients, near: p50 to BullMQ's", toBullmq(1, LINKS.fewNear, 'p50'), 1.1),
    ...ownerGoals(tables),
    least("64 in flight, 2 clients, near: calls/s to BullMQ's", toBullmq(64, LINKS.fewNear, 'rate'), 1.8),
    ...PLACES.map(({ name, text, commands }) =>
      most(`64 in flight, ${text}: Redis commands a call`, at(64, name, 'commands'), commands),
    ),
    most("64 in flight, 2 clients, near, callers' ids: Redis commands a call", at(64, LINKS.ownIds, 'commands'), 6),
    ...PLACES.map(({ name, text }) => most(`64 in flight, ${text}: log bytes a call`, at(64, name, 'log'), 4200)),
  ];
}

/**
 * Returns the goals for relays that own partitions, compared with the store of Redis scripts and with BullMQ in the
 * same run.
 */
function ownerGoals(tables: readonly Table[]): Goal[] {
  const at = (inFlight: number, name: string, column: string): number | null => {
    const table = tables[LEVELS.indexOf(inFlight)];
    return table ? valueOf(table, name, column) : null;
  };
  const to = (level: number, column: string, own: string, other: string): number | null =>
    ratio(at(level, own, column), at(level, other, column));
  const foreign = [
    { name: LINKS.callerForeign, text: 'caller foreign', relays: 0.8, p50: 2.5 },
    { name: LINKS.clientForeign, text: 'clients foreign', relays: 0.8, p50: 2.5 },
    { name: LINKS.allForeign, text: 'all foreign', relays: 1.2, p50: 3.5 },
  ] as const;
  return [
    most("64 in flight, owner: Redis CPU to BullMQ's", to(64, 'redis', LINKS.owner, DURABLE.bullmq), 0.15),
    most('64 in flight, owner: relay CPU to direct mode', to(64, 'cpu', LINKS.owner, LINKS.direct), 1.3),
    most('1 in flight, owner: p50 ms', at(1, LINKS.owner, 'p50'), 1),
    ...foreign.flatMap(({ name, text, relays, p50 }) => [
      most(`64 in flight, ${text}: Redis CPU to BullMQ's`, to(64, 'redis', name, DURABLE.bullmq), 0.3),
      most(`64 in flight, ${text}: CPU of the relays to today's far`, to(64, 'cpu', name, LINKS.fewFar), relays),
      most(`1 in flight, ${text}: p50 to BullMQ's`, to(1, 'p50', name, DURABLE.bullmq), p50),
    ]),
  ];
}
