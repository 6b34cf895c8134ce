/** Measures the memory that ended commands take in Redis, for growing numbers of commands. */
import { setTimeout as sleep } from 'node:timers/promises';
import { userToken } from '../lib/callboard.ts';
import { startChild, type Child } from '../lib/processes.ts';
import type { BenchRedis } from '../lib/redis.ts';
import { Results, type Run } from '../lib/rounds.ts';
import { CALLS, USER, type End } from '../lib/rpc.ts';
import { BY_PAGE, nameOf, rowsOf, type Axis } from './growth-axis.ts';
import { openPlace } from './growth-places.ts';

/**
 * The total numbers of ended commands that are measured. Both clients' streams are full before the first of them, so
 * that each further command adds the same amount.
 */
const SIZES = [10_000, 20_000, 40_000];
const QUICK_SIZES = [1_000, 2_000];
/** The number of unfinished calls at any time: as many as two clients may have. */
const IN_FLIGHT = 64;
/**
 * The time for one batch of calls, in milliseconds. It must be shorter than the time within which a benchmark process
 * must answer.
 */
const PART_MS = 60_000;
/** The time for Redis to free unlinked keys, and for the relay to remove what has expired, in milliseconds. */
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
  // Calls before the first measurement create what does not depend on the number of commands, such as scripts and
  // connections.
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

/**
 * Makes calls until this many commands have ended in total. Returns how many more commands have ended than before the
 * call.
 */
async function callUntil(caller: Child, { ended, size }: { ended: number; size: number }): Promise<number> {
  let more = 0;
  while (ended + more < size) {
    const load = { inFlight: IN_FLIGHT, ms: PART_MS, calls: size - ended - more };
    more += (await caller.ask('drive', load, CALLS)).count;
  }
  return more;
}
