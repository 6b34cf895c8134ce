import { createRedisSpill } from '../../src/backends/redis/spill.ts';
import { createCrypto } from '../../src/platform/crypto.ts';
import { redisBench } from './redis-kit.ts';
import { spillContract } from './spill.ts';

const { sha256 } = createCrypto('test');

spillContract('Redis', async (maxBytes) => {
  // What is bounded lies in one partition, as the suite counts its bytes.
  const bench = await redisBench(maxBytes === undefined ? {} : { partitions: 1 });
  return {
    store: createRedisSpill({ store: bench.store, sha256, ...(maxBytes !== undefined && { maxBytes }) }),
    now: () => bench.clock.now(),
    advance: (ms) => bench.clock.advance(ms),
    close: () => bench.close(),
  };
});
