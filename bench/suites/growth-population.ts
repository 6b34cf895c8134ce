/**
 * Measures requests to relays with growing numbers of connections, users or ended commands. The page, the user and the
 * call that are requested are always the same.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { ADMIN_TOKEN, askJson, type Relay, userToken } from '../lib/callboard.ts';
import { connectionsWithin } from '../lib/files.ts';
import { type Child, startChild } from '../lib/processes.ts';
import type { BenchRedis } from '../lib/redis.ts';
import { Results, type Run } from '../lib/rounds.ts';
import { ACTION, CALLS, CLIENT_IDS, type End, PAYLOAD, USER } from '../lib/rpc.ts';
import { action, ACTIONS, SUMMARY } from '../lib/summary.ts';
import { type Axis, BY_PAGE, type Curve, nameOf, rowsOf } from './growth-axis.ts';
import {
  type Backing,
  graphqlRequest,
  makePlaces,
  type Op,
  openPlace,
  type Place,
  postRequest,
  timePlaces,
  timesIn,
} from './growth-places.ts';

/** The number of rows of the measured pages, and of connections of the requested user. */
const PAGE = 50;
/** The number of links that one client process holds. */
const LINKS_PER_HOLDER = 5_000;
/** The number of connections of each user other than the requested one. */
const USER_LINKS = 10;
/** The number of connections at each size of the axis of users. */
const SPREAD = 10_000;

const LISTING = `query Listing($first: Int!, $after: String) {
  connections(first: $first, after: $after) {
    nodes { userId clientId instanceId nodeId status clientType connectedAt lastSeenAt inFlight queued }
    pageInfo { hasNextPage endCursor }
  }
}`;
const USERS = `query Users($first: Int!, $after: String) {
  users(first: $first, after: $after) {
    nodes { id connectionCount }
    pageInfo { hasNextPage endCursor }
  }
}`;

/** The numbers of links and users, not counting those of the requested user. */
type Population = { readonly links: number; readonly users: number };

/**
 * Returns the relay without the measurement that lists users, because the smallest size has too few users to fill a
 * page.
 */
function withoutUsers(place: Place): Place {
  return { ...place, ops: place.ops.filter(({ key }) => key !== USERS_PAGE.key) };
}

export async function byConnections(run: Run, backing: Backing): Promise<Axis> {
  const most = connectionsWithin(20_000);
  const wanted = backing === 'redis' ? [100, 1_000, 5_000] : [100, 1_000, 5_000, most];
  const sizes = run.quick ? wanted.slice(0, 2) : wanted;
  const results = new Results();
  run.say(`growth: opening ${sizes.map(nameOf).join(', ')} connections (${backing})`);
  await using stack = new AsyncDisposableStack();
  const places = await makePlaces(sizes, results, (size) => {
    const links = size - PAGE;
    return populate(stack, { size, backing, of: { links, users: Math.ceil(links / USER_LINKS) } });
  });
  run.say(`growth: asking them`);
  await timePlaces(run, places.map(withoutUsers), results);
  return axis({ file: `connections-${backing}`, what: 'connections', backing, sizes, results });
}

/** Measures the same number of connections, divided among a growing number of users. */
export async function byUsers(run: Run): Promise<Axis> {
  const [sizes, links] = run.quick ? [[20, 100], 1_000] : [[20, 100, 1_000, 10_000], SPREAD];
  const results = new Results();
  run.say(`growth: opening ${nameOf(links)} connections of ${sizes.map(nameOf).join(', ')} users`);
  await using stack = new AsyncDisposableStack();
  const places = await makePlaces(sizes, results, (size) =>
    populate(stack, { size, backing: 'memory', of: { links, users: size } }),
  );
  run.say(`growth: asking them`);
  await timePlaces(run, places, results);
  return axis({ file: 'users', what: `users of ${nameOf(links)} connections`, backing: 'memory', sizes, results });
}

type Found = {
  readonly file: string;
  readonly what: string;
  readonly backing: Backing;
  readonly sizes: readonly number[];
  readonly results: Results;
};

const CURVES: readonly Curve[] = [
  { key: 'page', label: `page of ${PAGE} connections`, bound: BY_PAGE },
  { key: 'user', label: `user with ${PAGE} connections, nested`, bound: BY_PAGE },
  { key: 'rpc', label: 'RPC call', bound: BY_PAGE },
];
const USERS_PAGE: Curve = { key: 'users', label: 'page of 10 users', bound: BY_PAGE };

function axis({ file, what, backing, sizes, results }: Found): Axis {
  const own = file === 'users' ? [...CURVES, USERS_PAGE] : CURVES;
  const ofRedis = own.map(({ key, label, bound }) => ({ key: `${key}.redis`, label: `${label}, Redis`, bound }));
  return {
    file,
    title: `More ${what}${backing === 'redis' ? ', over Redis' : ''}`,
    xLabel: file === 'users' ? 'users' : 'connections',
    yLabel: 'CPU us each',
    xKind: 'log',
    yKind: 'log',
    sizes,
    curves: backing === 'redis' ? [...own, ...ofRedis] : own,
    rows: rowsOf(sizes, results),
  };
}

type Populate = { readonly size: number; readonly backing: Backing; readonly of: Population };

async function populate(stack: AsyncDisposableStack, { size, backing, of }: Populate): Promise<Place> {
  const { relay, redis } = await openPlace(stack, { backing });
  const token = await userToken(USER, 'connect', 'invoke');
  stack.use(await startChild('loads/rpc-client.ts', { options: { kind: 'bare', port: relay.port, token } }));
  const idle = Array.from({ length: PAGE - CLIENT_IDS.length }, (_, i) => client(token, `idle-${i}`));
  await connectAll(stack, relay, [...idle, ...(await population(of))]);
  return { name: nameOf(size), relay, redis, ops: await opsOf(relay, token, of) };
}

type Client = ReturnType<typeof client>;

function client(token: string, clientId: string) {
  const payload = JSON.stringify({ actions: Array.from({ length: ACTIONS }, (_, k) => action(k)) });
  return { token, clientId, instanceId: `i-${clientId}`, payload };
}

/** Returns the clients of a population. Half of the users are sorted before the requested user, and half after it. */
async function population({ links, users }: Population): Promise<Client[]> {
  const name = (i: number): string => `${i % 2 === 0 ? 't' : 'v'}-${String(i).padStart(6, '0')}`;
  const tokens = await Promise.all(Array.from({ length: users }, (_, i) => userToken(name(i), 'connect')));
  return Array.from({ length: links }, (_, i) => client(tokens[i % users] ?? '', `client-${i}`));
}

async function connectAll(stack: AsyncDisposableStack, { link }: Relay, clients: readonly Client[]): Promise<void> {
  const parts: Promise<number>[] = [];
  for (let i = 0; i < clients.length; i += LINKS_PER_HOLDER) {
    const holder = stack.use(await startChild('loads/clients.ts'));
    const own = clients.slice(i, i + LINKS_PER_HOLDER);
    parts.push(holder.ask('connect', { link, clients: own }, z.number()));
  }
  await Promise.all(parts);
}

async function opsOf(relay: Relay, token: string, { links, users }: Population): Promise<Op[]> {
  const listed = { first: PAGE, after: await cursorAt(relay, LISTING, Math.floor(links / 2)) };
  const usersListed = { first: 10, after: await cursorAt(relay, USERS, Math.floor(users / 2) - 5) };
  const call = { params: PAYLOAD, wait_for: 'completed' };
  const ofUser = { query: SUMMARY, variables: { id: USER } };
  return [
    {
      key: 'page',
      requests: [graphqlRequest(ADMIN_TOKEN, { query: LISTING, variables: listed })],
      good: (answer) => timesIn(answer, '"clientId":') === PAGE,
    },
    {
      key: 'user',
      requests: [graphqlRequest(ADMIN_TOKEN, ofUser)],
      good: (answer) => timesIn(answer, '"clientId":') === PAGE,
    },
    {
      key: 'users',
      requests: [graphqlRequest(ADMIN_TOKEN, { query: USERS, variables: usersListed })],
      good: (answer) => timesIn(answer, '"connectionCount":') > 1,
    },
    {
      key: 'rpc',
      requests: CLIENT_IDS.map((id) => postRequest(`/connections/${USER}/${id}/actions/${ACTION}`, token, call)),
      good: (answer) => answer.includes('"ok":{"text":"ppp'),
    },
  ];
}

const PAGE_INFO = z.object({ pageInfo: z.object({ endCursor: z.string() }) });
const LISTED = z.object({ data: z.record(z.string(), PAGE_INFO) });
/** The page size that is used to reach the middle of a listing: the largest that the relay allows. */
const FAR = 1000;

/** Returns the cursor after this many rows of a listing. */
async function cursorAt(relay: Relay, query: string, rows: number): Promise<string | null> {
  let after: string | null = null;
  for (let left = rows; left > 0; left -= FAR) {
    const body = { query, variables: { first: Math.min(left, FAR), after } };
    const answer = LISTED.parse(await askJson(`${relay.url}/graphql`, { token: ADMIN_TOKEN, method: 'POST', body }));
    after = Object.values(answer.data)[0]?.pageInfo.endCursor ?? null;
  }
  return after;
}

// Measures the memory of ended commands in Redis as their number grows.

/**
 * The measured total numbers of ended commands. Both clients' streams are full before the first one, so that each
 * further command adds the same amount.
 */
const SIZES = [10_000, 20_000, 40_000];
const QUICK_SIZES = [1_000, 2_000];
/** The number of calls in flight: the maximum for two clients. */
const IN_FLIGHT = 64;
/**
 * The time for one batch of calls, in milliseconds. It must be shorter than the timeout for an answer of a benchmark's
 * process.
 */
const PART_MS = 60_000;
/** How long Redis takes to free unlinked keys, and the relay to remove expired data, in milliseconds. */
const SETTLE_MS = 1_500;
const MEGABYTE = 1e6;

export async function byEnded(run: Run): Promise<Axis> {
  const sizes = run.quick ? QUICK_SIZES : SIZES;
  run.say(`growth: ${sizes.map(nameOf).join(', ')} ended commands in Redis`);
  await using stack = new AsyncDisposableStack();
  const { relay, redis } = await openPlace(stack, { backing: 'redis' });
  if (!redis) throw new Error('no Redis was opened');
  const end: End = { kind: 'bare', port: relay.port, token: await userToken(USER, 'connect', 'invoke') };
  stack.use(await startChild('loads/rpc-client.ts', { options: end }));
  const caller = stack.use(await startChild('loads/rpc-caller.ts', { options: end }));
  const results = new Results();
  let ended = 0;
  // Calls before the first measurement create everything that does not depend on the number of commands, such as
  // scripts and connections.
  ended += await callUntil(caller, { ended, size: (sizes[0] ?? 0) / 2 });
  for (const size of sizes) {
    const before = { ended, ...(await settled(redis)) };
    ended += await callUntil(caller, { ended, size });
    const after = await settled(redis);
    const added = ended - before.ended;
    results.add(nameOf(size), {
      data: (after.data - before.data) / added,
      total: ((after.data / ended) * 1e6) / MEGABYTE,
    });
  }
  return {
    file: 'ended',
    title: 'More ended commands, over Redis',
    xLabel: 'ended commands',
    yLabel: 'Redis memory',
    sizes,
    xKind: 'log',
    yKind: 'linear',
    curves: [{ key: 'data', label: 'MB per million more', bound: BY_PAGE }],
    rows: rowsOf(sizes, results),
    beside: [{ key: 'total', label: 'MB per million, of all so far' }],
  };
}

async function settled(redis: BenchRedis): Promise<{ readonly data: number }> {
  await sleep(SETTLE_MS);
  return redis.usage();
}

/** Makes calls until this many commands have ended in total. Returns how many of them ended during this call. */
async function callUntil(caller: Child, { ended, size }: { ended: number; size: number }): Promise<number> {
  let more = 0;
  while (ended + more < size) {
    const load = { inFlight: IN_FLIGHT, ms: PART_MS, count: size - ended - more };
    more += (await caller.ask('drive', load, CALLS)).count;
  }
  return more;
}
