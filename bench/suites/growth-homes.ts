/**
 * Measures calls over relays that have their own URLs. Links move to the relay that owns their user, its home; HTTP
 * requests stay at the relay where they arrive.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { freePort } from '../../test/kit/free-port.ts';
import { ADMIN_TOKEN, askJson, startRelay, userToken, type Relay } from '../lib/callboard.ts';
import type { Sample } from '../lib/numbers.ts';
import { partitionsAtRest, usersOwnedBy } from '../lib/owners.ts';
import { startChild, type Child } from '../lib/processes.ts';
import { openRedis, type BenchRedis } from '../lib/redis.ts';
import { alternate, Results, type Run } from '../lib/rounds.ts';
import { ACTION, CALLS, CLIENT_IDS, PAYLOAD } from '../lib/rpc.ts';
import { HTTP_RUN } from '../loads/http.ts';
import { nameOf, rowsOf, type Axis } from './growth-axis.ts';
import { makePlaces, postRequest } from './growth-places.ts';

/** The numbers of relays. */
const SIZES = [1, 3, 6];
const QUICK_SIZES = [1, 2];
/** The number of users. Each relay owns equally many. */
const USERS = 6;
/** The number of calls in flight: over all relays together, or for each relay in the rows of full relays. */
const IN_FLIGHT = 48;
/**
 * `most`: how long links may take to move to their homes. `look`: the interval at which this is checked. `callers`: how
 * long the links of callers may take after those of clients. Milliseconds.
 */
const HOME_MS = { most: 60_000, look: 500, callers: 6_000 } as const;
/**
 * The allowed costs of three relays as a multiple of one relay, and of six as a multiple of three. HTTP_BOUND is the
 * same for HTTP, where most calls do not arrive at the home of their user.
 */
const STEPS = [
  { from: 1, to: 3, bound: 1.3 },
  { from: 3, to: 6, bound: 1.1 },
] as const;
const HTTP_BOUND = 2.5;

type Place = {
  readonly name: string;
  readonly redis: BenchRedis;
  readonly relays: readonly Relay[];
  /** The requests that are sent to each relay, for all users, including those whom other relays own. */
  readonly requests: readonly string[];
  readonly ends: Child;
};

export async function byHomes(run: Run): Promise<Axis> {
  const sizes = run.quick ? QUICK_SIZES : SIZES;
  run.say(`growth: ${sizes.join(', ')} relays with addresses of their own`);
  await using stack = new AsyncDisposableStack();
  const results = new Results();
  const places = await makePlaces(sizes, results, (size) => opened(stack, size));
  const load = stack.use(await startChild('loads/http.ts'));
  const measure = (ms: number) => async (place: Place) => ({
    ...(await timed(place, 'links', () => overLinks(place, { inFlight: IN_FLIGHT, ms }))),
    ...(await timed(place, 'full', () => overLinks(place, { inFlight: IN_FLIGHT * place.relays.length, ms }))),
    ...(await timed(place, 'http', () => overHttp(load, place, ms))),
  });
  await alternate(places, { rounds: 1, results: new Results() }, measure(run.pace.warmMs));
  await alternate(places, { rounds: run.pace.rounds, results }, measure(run.pace.timedMs));
  return {
    ...{ file: 'homes', title: 'More relays, with homes', xLabel: 'relays', yLabel: 'CPU us/command, of all' },
    ...{ xKind: 'places', yKind: 'linear', sizes, rows: rowsOf(sizes, results) },
    curves: [
      { key: 'links', label: 'links, relays', bound: null, steps: STEPS },
      { key: 'links.redis', label: 'links, Redis', bound: null, steps: STEPS },
      { key: 'full', label: 'links, full relays', bound: null, steps: STEPS },
      { key: 'full.redis', label: 'links, full relays, Redis', bound: null, steps: STEPS },
      { key: 'http', label: 'HTTP callers, relays', bound: HTTP_BOUND },
      { key: 'http.redis', label: 'HTTP callers, Redis', bound: null },
    ],
    beside: [
      { key: 'links.rate', label: 'links, commands/s' },
      { key: 'full.rate', label: 'full relays, commands/s' },
      { key: 'http.rate', label: 'HTTP callers, commands/s' },
    ],
  };
}

async function opened(stack: AsyncDisposableStack, size: number): Promise<Place> {
  const redis = stack.use(await openRedis());
  const env = { CALLBOARD_REDIS_URL: redis.url, CALLBOARD_DURABILITY: 'aof_everysec', CALLBOARD_STORE: 'owned' };
  const nodes = Array.from({ length: size }, (_, i) => `node-${i}`);
  const relays: Relay[] = [];
  for (const node of nodes) {
    const port = await freePort();
    const own = { CALLBOARD_PORT: String(port), CALLBOARD_ADVERTISE_URL: `ws://127.0.0.1:${port}/connect` };
    relays.push(stack.use(await startRelay({ ...env, ...own, CALLBOARD_NODE_ID: node })));
  }
  const owners = await partitionsAtRest(redis.url, size);
  const names = nodes.flatMap((node) => usersOwnedBy(owners, node, USERS / size));
  const users = await Promise.all(
    names.map(async (user) => ({ user, token: await userToken(user, 'connect', 'invoke') })),
  );
  const ends = stack.use(
    await startChild('loads/homes-ends.ts', { options: { urls: relays.map(({ link }) => link), users } }),
  );
  await atHome(relays, names);
  const call = { params: PAYLOAD, wait_for: 'completed' };
  const requests = users.flatMap(({ user, token }) =>
    CLIENT_IDS.map((id) => postRequest(`/connections/${user}/${id}/actions/${ACTION}`, token, call)),
  );
  return { name: nameOf(size), redis, relays, requests, ends };
}

const QUERY = '{ connections(first: 100) { nodes { userId nodeId status } } }';
const LINK = z.object({ userId: z.string(), nodeId: z.string(), status: z.string() });
const ANSWER = z.object({ data: z.object({ connections: z.object({ nodes: z.array(LINK) }) }) });

/**
 * Waits until each client has a link to the relay that owns its user. `names`: the users, in the order of their relays.
 */
async function atHome(relays: readonly Relay[], names: readonly string[]): Promise<void> {
  const homes = new Map(names.map((user, i) => [user, `node-${Math.floor((i * relays.length) / names.length)}`]));
  for (let waited = 0; waited < HOME_MS.most; waited += HOME_MS.look) {
    const asked = { token: ADMIN_TOKEN, method: 'POST', body: { query: QUERY } };
    const { data } = ANSWER.parse(await askJson(`${relays[0]?.url}/graphql`, asked));
    const links = data.connections.nodes.filter(({ status }) => status === 'CONNECTED');
    const isAll = links.length === names.length * CLIENT_IDS.length;
    if (isAll && links.every(({ userId, nodeId }) => homes.get(userId) === nodeId)) {
      await sleep(HOME_MS.callers);
      return;
    }
    await sleep(HOME_MS.look);
  }
  throw new Error('links did not go home');
}

type Done = { readonly count: number; readonly ms: number };

function overLinks({ ends }: Place, asked: { readonly inFlight: number; readonly ms: number }): Promise<Done> {
  return ends.ask('drive', asked, CALLS);
}

async function overHttp(load: Child, { relays, requests }: Place, ms: number): Promise<Done> {
  const connections = Math.ceil(IN_FLIGHT / relays.length);
  const runs = await Promise.all(
    relays.map(({ port }) => load.ask('run', { port, requests, connections, ms }, HTTP_RUN)),
  );
  return { count: runs.reduce((sum, { count }) => sum + count, 0), ms: Math.max(...runs.map((one) => one.ms)) };
}

async function timed({ relays, redis }: Place, key: string, work: () => Promise<Done>): Promise<Sample> {
  const cpu = async (): Promise<number> =>
    (await Promise.all(relays.map((relay) => relay.cpu()))).reduce((sum, each) => sum + each, 0);
  const before = { relays: await cpu(), redis: await redis.cpu() };
  const { count, ms } = await work();
  const used = { relays: (await cpu()) - before.relays, redis: (await redis.cpu()) - before.redis };
  return { [key]: used.relays / count, [`${key}.redis`]: used.redis / count, [`${key}.rate`]: (count * 1000) / ms };
}
