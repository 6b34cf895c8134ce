/** Starts relays with growing amounts of content, and times the same requests at each of them in turn. */
import { z } from 'zod';
import { startRelay, type Relay } from '../lib/callboard.ts';
import type { Sample } from '../lib/numbers.ts';
import { startChild, type Child } from '../lib/processes.ts';
import { openRedis, type BenchRedis } from '../lib/redis.ts';
import { alternate, Results, type Run } from '../lib/rounds.ts';
import { HTTP_RUN } from '../loads/http.ts';
import { nameOf } from './growth-axis.ts';

export type Backing = 'memory' | 'redis';

/** One kind of timed request. `good`: returns whether an answer is the expected one. */
export type Op = { readonly key: string; readonly requests: readonly string[]; good(answer: string): boolean };

/** A relay with a known amount of content, and the requests for it. */
export type Place = {
  readonly name: string;
  readonly relay: Relay;
  readonly redis: BenchRedis | null;
  readonly ops: readonly Op[];
};

/**
 * The time of each measurement as a fraction of the usual time. It is shorter because there are many sizes and
 * operations.
 */
const PACE_FACTOR = 0.5;
/** The number of kept-alive HTTP connections of the load. */
const CONNECTIONS = 32;

type OpenOptions = {
  readonly backing: Backing;
  readonly env?: Readonly<Record<string, string>>;
  readonly execArgv?: readonly string[];
};

/** Starts a relay, with its own Redis if requested. */
export async function openPlace(
  stack: AsyncDisposableStack,
  { backing, env = {}, execArgv = [] }: OpenOptions,
): Promise<Pick<Place, 'relay' | 'redis'>> {
  if (backing === 'memory') return { relay: stack.use(await startRelay(env, { execArgv })), redis: null };
  const redis = stack.use(await openRedis());
  const shared = { CALLBOARD_REDIS_URL: redis.url, CALLBOARD_DURABILITY: 'aof_everysec', CALLBOARD_STORE: 'redis' };
  return { relay: stack.use(await startRelay({ ...shared, ...env }, { execArgv })), redis };
}

/** Creates a relay for each size, all at the same time. If a size fails, its row states the reason. */
export async function makePlaces<T>(
  sizes: readonly number[],
  results: Results,
  make: (size: number) => Promise<T>,
): Promise<T[]> {
  const made = await Promise.all(
    sizes.map(async (size) => {
      try {
        return [await make(size)];
      } catch (error) {
        results.fail(nameOf(size), error);
        return [];
      }
    }),
  );
  return made.flat();
}

/**
 * Times each operation at all relays in turn before the next operation. An operation that adds content must therefore
 * be the last.
 */
export async function timePlaces(run: Run, places: readonly Place[], results: Results): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const load = stack.use(await startChild('loads/http.ts'));
  const found = new Map<string, Sample>();
  for (const key of places[0]?.ops.map((op) => op.key) ?? []) {
    const of = new Results();
    const measure = (ms: number) => (place: Place) => timed(load, place, { key, ms: ms * PACE_FACTOR });
    await alternate(places, { rounds: 1, results: of }, (place) => checked(load, place, key));
    const warm = new Results();
    await alternate(places, { rounds: 1, results: warm }, measure(run.pace.warmMs));
    const timedOnly = new Results();
    await alternate(places, { rounds: run.pace.rounds, results: timedOnly }, measure(run.pace.timedMs));
    for (const { name } of places) {
      const failed = [of, warm, timedOnly].map((each) => each.row({ name, kind: 'own' })).find(({ values }) => !values);
      if (failed) results.fail(name, new Error(`${key}: ${failed.note}`));
      const { values } = timedOnly.row({ name, kind: 'own' });
      found.set(name, { ...found.get(name), ...values });
    }
  }
  for (const [name, sample] of found) results.add(name, sample);
}

/** Measures one operation. Throws if the answer is not the expected one. */
async function checked(load: Child, { relay, ops }: Place, key: string): Promise<Sample> {
  const op = ops.find((one) => one.key === key);
  const answer = await load.ask('once', { port: relay.port, requests: op?.requests ?? [] }, z.string());
  if (op?.good(answer) !== true) throw new Error(`was answered ${JSON.stringify(answer.slice(-140))}`);
  return {};
}

type Part = { readonly key: string; readonly ms: number };

async function timed(load: Child, { relay, redis, ops }: Place, { key, ms }: Part): Promise<Sample> {
  const { requests = [] } = ops.find((op) => op.key === key) ?? {};
  const before = { relay: await relay.cpu(), redis: await redis?.cpu() };
  const { count } = await load.ask('run', { port: relay.port, requests, connections: CONNECTIONS, ms }, HTTP_RUN);
  const used = (await relay.cpu()) - before.relay;
  const ofRedis = redis && before.redis !== undefined ? (await redis.cpu()) - before.redis : null;
  return { [key]: used / count, ...(ofRedis === null ? {} : { [`${key}.redis`]: ofRedis / count }) };
}

/** Returns the bytes of a GraphQL request. */
export function graphqlRequest(token: string, body: object): string {
  return postRequest('/graphql', token, body);
}

export function postRequest(path: string, token: string, given: object): string {
  const body = JSON.stringify(given);
  const type = `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n`;
  return `POST ${path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer ${token}\r\n${type}\r\n${body}`;
}

/** Returns how often a text contains another text. */
export function timesIn(text: string, part: string): number {
  return text.split(part).length - 1;
}
