import { afterAll, beforeAll, expect, it } from 'vitest';
import { connectTo } from '../../src/backends/redis/client.ts';
import { readTarget } from '../../src/backends/redis/target.ts';
import type { Client } from '../../src/backends/redis/types.ts';
import { silentLog } from '../../src/core/log.ts';
import { startRedisCluster, type RedisCluster } from '../kit/redis-cluster.ts';
import { commandContract } from './commands.ts';
import { connectionContract } from './connections.ts';
import { contextContract } from './contexts.ts';
import { dedupContract } from './dedup.ts';
import { historyContract } from './history.ts';
import { inspectorContract } from './inspector.ts';
import { commandModel } from './commands-model.ts';
import { nodeContract } from './nodes.ts';
import type { HistoryBounds } from './kit/bench.ts';
import { redisBench, type RedisBench, type RedisBenchOptions } from './kit/redis-bench.ts';
import { sessionContract } from './sessions.ts';
import { siteContract } from './sites.ts';
import { waiterContract } from './waiters.ts';

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
  return redisBench({ partitions: PARTITIONS, connect, ...more });
}

function historyBench(bounds: HistoryBounds = {}): Promise<RedisBench> {
  const { streamMessages, retentionMs, streamsPerUser } = bounds;
  return bench({
    ...(streamMessages !== undefined && { streamMessages }),
    ...(retentionMs !== undefined && { retentionMs }),
    ...(streamsPerUser !== undefined && { streamsPerUser }),
  });
}

connectionContract(NAME, () => bench(), { runs: 10, order: 'bytes' });
contextContract(NAME, () => bench(), { runs: 10 });
commandContract(NAME, () => bench());
commandModel(NAME, () => bench(), 15);
waiterContract(NAME, () => bench());
nodeContract(NAME, () => bench());
inspectorContract(NAME, () => bench());
historyContract(NAME, historyBench, { runs: 8 });
dedupContract(NAME, () => bench(), { runs: 8 });
siteContract(NAME, () => bench());
sessionContract(NAME, () => bench());

it('all three masters took part in the tests above', async () => {
  for (const command of ['evalsha', 'hgetall', 'zadd', 'xadd']) {
    const shares = await cluster.calls(command);
    expect([command, shares.every((calls) => calls > 0)]).toEqual([command, true]);
  }
});
