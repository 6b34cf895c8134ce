/** Opens a bench over partitions whose logs are in Redis: that of their owner, or of another process. */
import { randomUUID } from 'node:crypto';
import { inject } from 'vitest';
import { openOwned, type OwnedBackend } from '../../../src/backends/owned/open.ts';
import { connectTo } from '../../../src/backends/redis/client.ts';
import { readTarget } from '../../../src/backends/redis/target.ts';
import type { MemoryOptions } from '../../../src/backends/memory/backend.ts';
import { silentLog } from '../../../src/core/ports.ts';
import { createCrypto, systemClock, systemLoop } from '../../../src/platform/system.ts';
import { FakeClock } from '../../kit/clock.ts';
import { eventually } from '../../kit/patience.ts';
import type { Bench } from './bench.ts';
import type { Role } from './owned-bench.ts';

/** A lease that no test outlives. */
const LEASE_MS = 120_000;

type BenchOptions = {
  readonly memory?: Partial<MemoryOptions>;
  readonly partitions?: number;
  /** The address of Redis; absent: that of the run. */
  readonly url?: string;
};

/** Opens a process that owns all partitions, or one that owns none beside one that owns all, and returns its bench. */
export async function ownedRedisBench(
  role: Role,
  { memory, partitions = 3, url = inject('redisUrl') }: BenchOptions = {},
): Promise<Bench> {
  const clock = new FakeClock();
  const namespace = randomUUID();
  const { sha256 } = createCrypto('test');
  const target = readTarget(url);
  const open = (nodeId: string, claims: boolean): Promise<OwnedBackend> =>
    openOwned({
      connect: (purpose, findNode) => connectTo(target, purpose, silentLog, { findNode }),
      ...{ namespace, partitions, groups: 2, digest: 'd', nodeId, claims, clock, version: 'test' },
      ...{ scopeOf: (userId) => userId, leaseMs: LEASE_MS },
      ...{ system: systemClock, loop: systemLoop, random: createCrypto('test'), log: silentLog },
      memory: { sha256, markSecret: 'x', ...memory },
    });
  const owner = await open('b', true);
  await eventually(() => {
    if (owner.owners.orphans > 0) throw new Error('some partitions have no owner yet');
  });
  const tested = role === 'owner' ? owner : await open('a', false);
  return {
    backend: tested.backend,
    advance: (ms) => clock.advance(ms),
    now: () => clock.now(),
    setBack: (ms) => clock.stepWall(-ms),
    async close() {
      if (tested !== owner) await tested.backend.close();
      await owner.backend.close();
    },
  };
}
