/** Runs the contracts over a Redis Cluster of three masters. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { connectTo, type Client } from '../../src/backends/redis/client.ts';
import { readTarget } from '../../src/backends/redis/target.ts';
import { silentLog } from '../../src/core/ports.ts';
import { startRedisCluster, type RedisCluster } from '../kit/redis-cluster.ts';
import { auditedBench, type RedisBench, type RedisBenchOptions } from './kit/redis-bench.ts';
import { commandShares } from './command-shares.ts';
import { dedupShares } from './dedup.ts';
import { redisContracts, sharesBench } from './redis-contracts.ts';

const NAME = 'Redis Cluster';
const MASTERS = 3;
const PARTITIONS = 6;

let cluster: RedisCluster;
beforeAll(async () => {
  cluster = await startRedisCluster(MASTERS);
});
afterAll(() => cluster.stop());

function connect(): Client {
  return connectTo(readTarget(cluster.address), 'commands', silentLog);
}

function bench(more: RedisBenchOptions = {}): Promise<RedisBench> {
  return auditedBench({ partitions: PARTITIONS, connect, ...more });
}

redisContracts(NAME, bench);
commandShares(NAME, (bounds) => sharesBench(bench, { bounds }), { runs: 4 });
dedupShares(NAME, (bounds) => sharesBench(bench, { bounds }));

it('all three masters took part in the tests above', async () => {
  for (const command of ['evalsha', 'hgetall', 'zadd', 'xadd']) {
    const shares = await cluster.calls(command);
    expect([command, shares.every((calls) => calls > 0)]).toEqual([command, true]);
  }
});
