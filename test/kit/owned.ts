/** Opens backends of one deployment whose processes own partitions, over the Redis of the run. */
import { randomUUID } from 'node:crypto';
import { inject } from 'vitest';
import { openOwned, type OwnedBackend, type OwnedOptions } from '../../src/backends/owned/open.ts';
import { connectTo } from '../../src/backends/redis/client.ts';
import { readTarget } from '../../src/backends/redis/target.ts';
import { silentLog, type Clock } from '../../src/core/ports.ts';
import { createShares } from '../../src/core/shares/shares.ts';
import { createCrypto, systemClock, systemLoop } from '../../src/platform/system.ts';
import { eventually } from './patience.ts';

/** A lease that no test outlives. */
const LEASE_MS = 120_000;

export type OwnedPlace = {
  open(of: OwnedProcessOptions): Promise<OwnedBackend>;
};

type OwnedProcessOptions = Pick<OwnedOptions, 'nodeId' | 'scopeOf' | 'address' | 'leaseMs'> & {
  readonly memory?: Partial<OwnedOptions['memory']>;
  /** Absent: the Redis of the run. */
  readonly redisUrl?: string;
};

/** The first backend that is opened owns all partitions, until it is closed: they move to another then. */
export function ownedPlace(clock: Clock, partitions = 3): OwnedPlace {
  const namespace = randomUUID();
  const { sha256 } = createCrypto('test');
  return {
    async open({ nodeId, scopeOf, memory = {}, redisUrl = inject('redisUrl'), address, leaseMs = LEASE_MS }) {
      const target = readTarget(redisUrl);
      const opened = await openOwned({
        connect: (purpose, findNode) => connectTo(target, purpose, silentLog, { findNode }),
        ...{ namespace, partitions, groups: 2, digest: 'd', nodeId, claims: true, clock, version: 'test', scopeOf },
        ...{ leaseMs, address, system: systemClock, loop: systemLoop, random: createCrypto('test'), log: silentLog },
        memory: { sha256, markSecret: 'x', shares: createShares(), ...memory },
      });
      await eventually(() => {
        if (opened.owners.orphans > 0) throw new Error('some partitions have no owner yet');
      });
      return opened;
    },
  };
}
