/** Reads and changes a Redis namespace directly, for tests of the backend. */
import { Cluster } from 'ioredis';
import { inject } from 'vitest';
import { connectCommands } from '../../kit/redis.ts';
import type { Store } from '../../../src/backends/redis/store.ts';
import type { RedisBench } from '../../contract/kit/redis-bench.ts';

/** Runs one command against a key. */
export async function runRaw(
  { store }: RedisBench,
  command: readonly [string, ...(string | number)[]],
): Promise<unknown> {
  return (await store.read([command]))[0];
}

/** Sets the end of a node's lease in every partition. */
export async function setLeaseEnd(bench: RedisBench, nodeId: string, ends: number): Promise<void> {
  for (let p = 0; p < bench.store.partitions; p++)
    await runRaw(bench, ['ZADD', bench.store.key(p, 'nodes'), ends, nodeId]);
}

/** Returns the number of round trips to Redis that `run` makes. */
export async function countRoundTrips(store: Store, run: () => unknown): Promise<number> {
  const before = store.roundTrips;
  await run();
  return store.roundTrips - before;
}

/** Returns the kind of every key of the bench's namespace, and the time that remains until Redis removes the key. */
export async function keysOf({ store }: RedisBench): Promise<{ readonly kind: string; readonly ttl: number }[]> {
  const client = connectCommands(inject('redisUrl'));
  await client.connect();
  const found: { kind: string; ttl: number }[] = [];
  for (const server of client instanceof Cluster ? client.nodes('master') : [client]) {
    for await (const names of server.scanStream({ match: `{cb:${store.namespace}:*`, count: 1000 })) {
      for (const name of names as string[])
        found.push({ kind: name.split('}:')[1]?.split(':')[0] ?? '', ttl: await client.pttl(name) });
    }
  }
  client.disconnect();
  return found;
}
