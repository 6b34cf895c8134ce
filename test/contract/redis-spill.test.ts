/** Runs the contract of large payloads over Redis. */
import { createRedisSpill } from '../../src/backends/redis/spill.ts';
import { createCrypto } from '../../src/platform/system.ts';
import { redisBench } from './kit/redis-bench.ts';
import { spillContract, spillShares } from './spill.ts';

const { sha256 } = createCrypto('test');

spillContract('Redis', async (total, guarantee) => {
  // All bounded data is in one partition, because the suite counts its bytes.
  const bench = await redisBench(total === undefined ? {} : { partitions: 1 });
  return {
    store: createRedisSpill({ store: bench.store, sha256, clock: bench.clock, shares: spillShares(total, guarantee) }),
    now: () => bench.clock.now(),
    advance: (ms) => bench.clock.advance(ms),
    close: () => bench.close(),
  };
});
