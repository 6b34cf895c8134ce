/** Runs contracts of the stores over partitions whose logs are in a Redis Cluster: as their owner, and as another process. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startRedisCluster, type RedisCluster } from '../kit/redis-cluster.ts';
import { connectionContract } from './connections.ts';
import { ownedRedisBench } from './kit/owned-redis-bench.ts';
import { sessionContract } from './sessions.ts';

let cluster: RedisCluster;
beforeAll(async () => {
  cluster = await startRedisCluster(3);
});
afterAll(() => cluster.stop());

for (const role of ['owner', 'foreign'] as const) {
  const name =
    role === 'owner' ? 'partitions of this process in a cluster' : 'partitions of another process in a cluster';
  const open = () => ownedRedisBench(role, { url: cluster.address });
  connectionContract(name, open, { runs: 3 });
  sessionContract(name, open);
}

it('all three masters took part in the tests above', async () => {
  for (const command of ['evalsha', 'xadd', 'spublish']) {
    const shares = await cluster.calls(command);
    expect([command, shares.every((calls) => calls > 0)]).toEqual([command, true]);
  }
  // Each of these would go to all nodes.
  expect(await cluster.calls('publish')).toEqual([0, 0, 0]);
});
