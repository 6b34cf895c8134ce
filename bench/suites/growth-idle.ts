/** Measures the cost per second of relays that own partitions while no client makes calls, by the number of relays. */
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { startRelay, userToken, type Relay } from '../lib/callboard.ts';
import { partitionsAtRest } from '../lib/owners.ts';
import { startChild } from '../lib/processes.ts';
import { openRedis, type BenchRedis } from '../lib/redis.ts';
import { Results, type Run } from '../lib/rounds.ts';
import { action } from '../lib/summary.ts';
import { BY_PAGE, nameOf, rowsOf, type Axis } from './growth-axis.ts';

/** The numbers of relays. */
const SIZES = [1, 3, 6, 12];
const QUICK_SIZES = [1, 2];
/** The number of links of each relay, and the number of users to whom their clients belong. */
const LINKS = { full: 200, quick: 20 } as const;
const USERS = 20;
/**
 * The length of one measurement in milliseconds, which is also the time in which the links are opened. It is long
 * enough that each link gets one heartbeat, and that the heartbeats are spread over it.
 */
const PART_MS = { full: 20_000, quick: 4_000 } as const;
/** The number of groups in which the links are opened. */
const PARTS = 20;
/** How long the relays and Redis take to finish what opening the links caused, in milliseconds. */
const SETTLE_MS = 5_000;
/**
 * The factor by which traffic may grow faster than the number of relays. With one relay, that relay owns all users.
 * With three, each relay passes on the heartbeats of two thirds of its links, and with many relays of nearly all.
 */
const FROM_THREE = [{ from: 3, to: 12, bound: 1.5 }];
const KB = 1024;

/** Relays with idle links, over their own Redis. */
type Deployment = { readonly redis: BenchRedis; readonly relays: readonly Relay[] };
type Memory = { readonly relays: number; readonly redis: number };

/** Measures one size after the other, so that they do not disturb each other. */
export async function byIdleRelays(run: Run): Promise<readonly Axis[]> {
  const sizes = run.quick ? QUICK_SIZES : SIZES;
  const results = new Results();
  for (const size of sizes) {
    run.say(`growth: ${size} idle ${size === 1 ? 'relay' : 'relays'}`);
    try {
      await measure(run, size, results);
    } catch (error) {
      results.fail(nameOf(size), error);
    }
  }
  const of = { xLabel: 'relays', xKind: 'places', yKind: 'linear', sizes, rows: rowsOf(sizes, results) } as const;
  const links = `${run.quick ? LINKS.quick : LINKS.full} links each`;
  return [
    {
      ...{ ...of, file: 'relays-idle', title: `More idle relays, ${links}`, yLabel: 'CPU ms/s of one relay' },
      curves: [
        { key: 'relay', label: 'relay', bound: BY_PAGE },
        { key: 'relay.redis', label: 'Redis, for one relay', bound: BY_PAGE },
      ],
      beside: [
        { key: 'link', label: 'KB of a link in the relay' },
        { key: 'link.redis', label: 'KB of a link in Redis' },
      ],
    },
    {
      ...{ ...of, file: 'relays-idle-traffic', title: `Traffic of more idle relays, ${links}` },
      yLabel: 'of one relay in a second',
      curves: [
        { key: 'commands', label: 'commands', bound: null, steps: FROM_THREE },
        { key: 'published', label: 'messages', bound: null, steps: FROM_THREE },
        { key: 'traffic', label: 'KB from and to Redis', bound: null, steps: FROM_THREE },
      ],
    },
  ];
}

async function measure({ quick, pace }: Run, size: number, results: Results): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const deployment = await started(stack, size);
  const before = await memoryOf(deployment);
  const partMs = quick ? PART_MS.quick : PART_MS.full;
  await connect(stack, deployment.relays, { links: quick ? LINKS.quick : LINKS.full, ms: partMs });
  await sleep(SETTLE_MS);
  const after = await memoryOf(deployment);
  const links = size * (quick ? LINKS.quick : LINKS.full);
  const link = {
    link: (after.relays - before.relays) / links / KB,
    'link.redis': (after.redis - before.redis) / links / KB,
  };
  for (let round = 0; round < pace.rounds; round++)
    results.add(nameOf(size), { ...link, ...(await costs(deployment, partMs)) });
}

async function started(stack: AsyncDisposableStack, size: number): Promise<Deployment> {
  const redis = stack.use(await openRedis());
  const env = { CALLBOARD_REDIS_URL: redis.url, CALLBOARD_DURABILITY: 'aof_everysec', CALLBOARD_STORE: 'owned' };
  const relays: Relay[] = [];
  for (let i = 0; i < size; i++) relays.push(stack.use(await startRelay(env, { execArgv: ['--expose-gc'] })));
  await partitionsAtRest(redis.url, size);
  return { redis, relays };
}

type Opening = { readonly links: number; readonly ms: number };

async function connect(stack: AsyncDisposableStack, relays: readonly Relay[], { links, ms }: Opening): Promise<void> {
  const holder = stack.use(await startChild('loads/clients.ts'));
  const clients = await Promise.all(relays.map((_, at) => clientsOf(at, links)));
  const count = links / PARTS;
  for (let part = 0; part < PARTS; part++) {
    const opened = relays.map(({ link }, at) => {
      const some = clients[at]?.slice(part * count, (part + 1) * count) ?? [];
      return holder.ask('connect', { link, clients: some }, z.number());
    });
    await Promise.all([...opened, sleep(ms / PARTS)]);
  }
}

async function clientsOf(relay: number, links: number) {
  const payload = JSON.stringify({ actions: [action(0)] });
  const tokens = await Promise.all(Array.from({ length: USERS }, (_, i) => userToken(`u${relay}-${i}`, 'connect')));
  return Array.from({ length: links }, (_, i) => {
    return { token: tokens[i % USERS] ?? '', clientId: `c${i}`, instanceId: `i${i}`, payload };
  });
}

/** Returns the memory of the relays (in their heaps and outside of them) and of the data in Redis, in bytes. */
async function memoryOf({ redis, relays }: Deployment): Promise<Memory> {
  let heaps = 0;
  for (const relay of relays) {
    const { heap, external } = await relay.memory();
    heaps += heap + external;
  }
  return { relays: heaps, redis: (await redis.usage()).data };
}

/** Measures the cost of one relay per second, and the cost of Redis for one relay. */
async function costs({ redis, relays }: Deployment, ms: number) {
  const cpu = async (): Promise<number> =>
    (await Promise.all(relays.map((relay) => relay.cpu()))).reduce((sum, each) => sum + each, 0);
  const before = { cpu: await cpu(), redis: await redis.usage(), at: performance.now() };
  await sleep(ms);
  const after = { cpu: await cpu(), redis: await redis.usage() };
  const each = ((performance.now() - before.at) / 1000) * relays.length;
  const of = (key: keyof typeof after.redis): number => (after.redis[key] - before.redis[key]) / each;
  return {
    relay: (after.cpu - before.cpu) / 1000 / each,
    'relay.redis': of('cpu') / 1000,
    commands: of('commands'),
    published: of('published'),
    traffic: of('traffic') / KB,
  };
}
