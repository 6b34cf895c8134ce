/** Measures calls with a growing number of relays over one Redis, and with a growing number of Redis masters. */
import { Redis } from 'ioredis';
import { startRedisCluster } from '../../test/kit/redis-cluster.ts';
import { startRelay, userToken, type Relay } from '../lib/callboard.ts';
import type { Sample } from '../lib/numbers.ts';
import { partitionsAtRest } from '../lib/owners.ts';
import { startChild, type Child } from '../lib/processes.ts';
import { openRedis } from '../lib/redis.ts';
import { alternate, Results, type Run } from '../lib/rounds.ts';
import { ACTION, CLIENT_IDS, PAYLOAD, type End } from '../lib/rpc.ts';
import { HTTP_RUN } from '../loads/http.ts';
import { BY_PAGE, nameOf, rowsOf, type Axis, type Curve } from './growth-axis.ts';
import { makePlaces, postRequest } from './growth-places.ts';

/** The number of calls in flight, over all relays together. */
const IN_FLIGHT = 48;
/** The time of each measurement as a fraction of the usual time. */
const PACE_FACTOR = 0.6;
/** The number of users who own the called clients. Their keys are distributed over the partitions. */
const USERS = 6;
/** The value of CALLBOARD_PARTITIONS. It divides evenly among one and among three masters. */
const PARTITIONS = 6;
/** The allowed CPU time of all relays together per call, as a multiple of that with one relay or one master. */
const BOUNDS = { relays: 1.5, masters: 1.3 } as const;
/**
 * The allowed cost of six relays as a multiple of three. With so many relays, most calls are for users whom another
 * relay owns.
 */
const SIX_TO_THREE = {
  relays: [{ from: 3, to: 6, bound: 1.45 }],
  redis: [{ from: 3, to: 6, bound: 1.25 }],
} as const;
/** The numbers of relays. */
const SIZES = { redis: [1, 2, 3], owned: [1, 2, 3, 6] } as const;

/** Returns the CPU time of all Redis processes so far, in microseconds. */
type Cpu = () => Promise<number>;
/** The relay at which calls arrive. `near`: the relay of the called clients. `far`: the next relay. */
type Way = 'near' | 'far';

type Group = {
  readonly name: string;
  readonly relays: readonly Relay[];
  readonly calls: Readonly<Record<Way, readonly (readonly string[])[]>>;
  readonly redis: Cpu;
};

/** The kind of store over Redis: Redis scripts (`redis`), or relays that own partitions (`owned`). */
export type Store = 'redis' | 'owned';
/** What file names and titles contain for each kind of store. */
const MARKS = { redis: { file: '', title: '' }, owned: { file: '-owned', title: ', owners' } } as const;

export async function byRelays(run: Run, store: Store): Promise<Axis> {
  const sizes = run.quick ? [1, 2] : SIZES[store];
  run.say(`growth: ${sizes.join(', ')} relays on one Redis, ${store}`);
  await using stack = new AsyncDisposableStack();
  const results = new Results();
  const groups = await makePlaces(sizes, results, async (size) => {
    const redis = stack.use(await openRedis());
    const env = { CALLBOARD_REDIS_URL: redis.url, CALLBOARD_DURABILITY: 'aof_everysec', CALLBOARD_STORE: store };
    const made = await group(stack, { name: nameOf(size), relays: size, env, redis: redis.cpu });
    if (store === 'owned') await partitionsAtRest(redis.url, size);
    return made;
  });
  await timeAll(run, groups, { results, ways: ['near', 'far'] });
  const { file, title } = MARKS[store];
  const of = { file: `relays${file}`, title: `More relays on one Redis${title}`, xLabel: 'relays' };
  return axis({ ...of, sizes, results, isSeveral: true });
}

export async function byMasters(run: Run, store: Store): Promise<Axis> {
  const sizes = [1, 3];
  run.say(`growth: one relay over ${sizes.join(' and ')} masters, ${store}`);
  await using stack = new AsyncDisposableStack();
  const results = new Results();
  const groups = await makePlaces(sizes, results, async (size) => {
    const cluster = await startRedisCluster(size);
    stack.defer(() => cluster.stop());
    const hands = cluster.urls.map((url) => new Redis(url));
    stack.defer(() => hands.forEach((hand) => hand.disconnect()));
    const divided = { CALLBOARD_PARTITIONS: String(PARTITIONS), CALLBOARD_STORE: store };
    const env = { CALLBOARD_REDIS_URL: cluster.address, ...divided };
    const redis: Cpu = async () => (await Promise.all(hands.map(cpuOf))).reduce((sum, each) => sum + each, 0);
    const own = { name: nameOf(size), relays: 1, env: { ...env, CALLBOARD_DURABILITY: 'memory' }, redis };
    return group(stack, own);
  });
  await timeAll(run, groups, { results, ways: ['near'] });
  const { file, title } = MARKS[store];
  const of = { file: `masters${file}`, title: `More masters, ${PARTITIONS} partitions${title}`, xLabel: 'masters' };
  return axis({ ...of, sizes, results, isSeveral: false });
}

type Found = Pick<Axis, 'file' | 'title' | 'xLabel' | 'sizes'> & {
  readonly results: Results;
  /** Whether there are several relays, so that the sizes are numbers of relays. */
  readonly isSeveral: boolean;
};

/** Creates the axis. Calls between relays are columns of its table, because they are what this suite measures. */
function axis({ results, isSeveral: several, ...of }: Found): Axis {
  const near: readonly Curve[] = [
    {
      ...{ key: 'near', label: 'client of the same relay, relays', steps: several ? SIX_TO_THREE.relays : [] },
      bound: several ? BOUNDS.relays : BOUNDS.masters,
    },
    {
      ...{ key: 'near.redis', label: 'client of the same relay, Redis', bound: BY_PAGE },
      steps: several ? SIX_TO_THREE.redis : [],
    },
  ];
  const far: readonly Curve[] = [
    { key: 'far', label: 'client of the next relay, relays', bound: null },
    { key: 'far.redis', label: 'client of the next relay, Redis', bound: null },
  ];
  const beside = [
    { key: 'near.rate', label: 'same relay, commands/s' },
    { key: 'far.rate', label: 'next relay, commands/s' },
  ];
  return {
    ...of,
    yLabel: 'CPU us/command, of all',
    xKind: 'places',
    yKind: 'linear',
    curves: several ? [...near, ...far] : near,
    rows: rowsOf(of.sizes, results),
    beside: several ? beside : beside.slice(0, 1),
  };
}

type Grouping = {
  readonly name: string;
  readonly relays: number;
  readonly env: Readonly<Record<string, string>>;
  readonly redis: Cpu;
};

async function group(stack: AsyncDisposableStack, { name, relays: count, env, redis }: Grouping): Promise<Group> {
  const relays: Relay[] = [];
  for (let i = 0; i < count; i++) relays.push(stack.use(await startRelay(env)));
  const requests = relays.map((): string[] => []);
  const ends: End[] = [];
  for (let i = 0; i < USERS; i++) {
    const user = `u${i}`;
    const token = await userToken(user, 'connect', 'invoke');
    const at = i % count;
    ends.push({ kind: 'bare', port: relays[at]?.port ?? 0, token });
    const call = { params: PAYLOAD, wait_for: 'completed' };
    for (const id of CLIENT_IDS)
      requests[at]?.push(postRequest(`/connections/${user}/${id}/actions/${ACTION}`, token, call));
  }
  stack.use(await startChild('loads/growth-ends.ts', { options: ends }));
  const next = requests.map((_, i) => requests[(i + 1) % count] ?? []);
  return { name, relays, calls: { near: requests, far: next }, redis };
}

type Timing = { readonly results: Results; readonly ways: readonly Way[] };

async function timeAll(run: Run, groups: readonly Group[], { results, ways }: Timing): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const load = stack.use(await startChild('loads/http.ts'));
  const measure = (ms: number) => async (one: Group) => {
    let sample: Sample = {};
    for (const way of ways) sample = { ...sample, ...(await timed(load, one, { way, ms: ms * PACE_FACTOR })) };
    return sample;
  };
  await alternate(groups, { rounds: 1, results: new Results() }, measure(run.pace.warmMs));
  await alternate(groups, { rounds: run.pace.rounds, results }, measure(run.pace.timedMs));
}

type Part = { readonly way: Way; readonly ms: number };

/** Measures calls at all relays at the same time, with the same total number of calls in flight. */
async function timed(load: Child, { relays, calls, redis }: Group, { way, ms }: Part): Promise<Sample> {
  const cpu = async (): Promise<number> => (await Promise.all(relays.map((relay) => relay.cpu()))).reduce(sum, 0);
  const before = { relays: await cpu(), redis: await redis() };
  const connections = Math.ceil(IN_FLIGHT / relays.length);
  const runs = await Promise.all(
    relays.map(({ port }, i) => load.ask('run', { port, requests: calls[way][i], connections, ms }, HTTP_RUN)),
  );
  const count = runs.map((each) => each.count).reduce(sum, 0);
  const rate = runs.map((each) => (each.count * 1000) / each.ms).reduce(sum, 0);
  const used = { relays: (await cpu()) - before.relays, redis: (await redis()) - before.redis };
  return { [way]: used.relays / count, [`${way}.redis`]: used.redis / count, [`${way}.rate`]: rate };
}

function sum(a: number, b: number): number {
  return a + b;
}

async function cpuOf(hand: Redis): Promise<number> {
  const info = await hand.info('cpu');
  const field = (name: string): number => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info)?.[1] ?? NaN);
  return (field('used_cpu_user') + field('used_cpu_sys')) * 1e6;
}
