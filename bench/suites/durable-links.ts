/** Measures callers that use links over Redis, at several numbers of calls in flight. */
import { LEVELS, LINK_CONTENDERS, LINKS, type LinkPath } from '../lib/durable-links.ts';
import { ratio, valueOf, type Column, type Goal, type Table } from '../lib/report.ts';
import { alternate, Results, type Run } from '../lib/rounds.ts';

/** The tables, one for each number of calls in flight, in the order of LEVELS. */
export type LinkTables = readonly { readonly inFlight: number; readonly table: Table }[];

/** Starts every path once, and measures the paths in turn with one number of calls in flight after another. */
export async function measureLinks(run: Run, columns: readonly Column[]): Promise<LinkTables> {
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
  const warm = { inFlight: Math.max(...LEVELS), ms: run.pace.warmMs };
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
export function linkGoals(tables: LinkTables): Goal[] {
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
