/** Runs the contract of the audit's store over Redis. */
import { auditContract } from './audit.ts';
import { redisBench } from './kit/redis-bench.ts';

auditContract('redis', async () => {
  const bench = await redisBench();
  const beside = await redisBench({ beside: bench });
  return {
    stores: [bench.backend.audit, beside.backend.audit],
    now: () => bench.now(),
    advance: (ms) => bench.clock.advance(ms),
    async close() {
      await beside.close();
      await bench.close();
    },
  };
});
