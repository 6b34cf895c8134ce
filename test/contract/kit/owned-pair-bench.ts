/**
 * Opens a bench over two processes that own one partition in Redis in turn: acts go through either of them, and a node
 * that leaves ends its process, so that the other one owns the partition.
 */
import { randomUUID } from 'node:crypto';
import { inject } from 'vitest';
import type { MemoryOptions } from '../../../src/backends/memory/backend.ts';
import { openOwned, type OwnedBackend } from '../../../src/backends/owned/open.ts';
import { connectTo } from '../../../src/backends/redis/client.ts';
import { readTarget } from '../../../src/backends/redis/target.ts';
import type { Backend } from '../../../src/core/backend.ts';
import { silentLog } from '../../../src/core/ports.ts';
import type { ShareBounds } from '../../../src/core/shares/share-bounds.ts';
import { createShares } from '../../../src/core/shares/shares.ts';
import { createCrypto, systemClock, systemLoop } from '../../../src/platform/system.ts';
import { FakeClock } from '../../kit/clock.ts';
import { eventually } from '../../kit/patience.ts';
import { keyFor, type Bench } from './bench.ts';
import { together } from './owned-bench.ts';

/** A lease that no test outlives. */
const LEASE_MS = 600_000;
/** The partition of users, and that of the audit. */
const PARTITIONS = 2;

export type OwnedPair = {
  readonly bench: Bench;
  /** Resolves when each process has the mail that was sent to it before. */
  quiet(): Promise<void>;
  /** Ends the process of a node, and starts another one of the same node. */
  restart(nodeId: string): Promise<void>;
};

type PairOptions = {
  readonly nodes: readonly string[];
  readonly memory: Pick<MemoryOptions, 'history' | 'idempotencyWindowMs'>;
  readonly bounds: ShareBounds;
};

export async function ownedPairBench({ nodes, memory, bounds }: PairOptions): Promise<OwnedPair> {
  const clock = new FakeClock();
  const namespace = randomUUID();
  const { sha256 } = createCrypto('test');
  const target = readTarget(inject('redisUrl'));
  const processes = new Map<string, OwnedBackend>();
  const start = async (nodeId: string): Promise<void> => {
    const opened = await openOwned({
      connect: (purpose, findNode) => connectTo(target, purpose, silentLog, { findNode }),
      ...{ namespace, partitions: 1, groups: 1, digest: 'd', nodeId, claims: true, clock, version: 'test' },
      ...{ scopeOf: (userId) => userId, leaseMs: LEASE_MS },
      ...{ system: systemClock, loop: systemLoop, random: createCrypto('test'), log: silentLog },
      memory: { ...memory, sha256, markSecret: 'x', shares: createShares(bounds) },
    });
    processes.set(nodeId, opened);
    await eventually(() => {
      if (opened.owners.orphans > 0) throw new Error('a partition has no owner yet');
    });
  };
  for (const nodeId of nodes) await start(nodeId);
  let turn = 0;
  const ofNode = (nodeId: string): Backend => processes.get(nodeId)?.backend ?? fail();
  const bench: Bench = {
    get backend(): Backend {
      const backends = [...processes.values()].map(({ backend }) => backend);
      const first = ++turn % backends.length;
      const joined = together([...backends.slice(first), ...backends.slice(0, first)]);
      return {
        ...joined,
        nodes: {
          ...joined.nodes,
          attach: (nodeId, listener) => ofNode(nodeId).nodes.attach(nodeId, listener),
          beat: (nodeId, report) => ofNode(nodeId).nodes.beat(nodeId, report),
        },
      };
    },
    advance: (ms) => clock.advance(ms),
    now: () => clock.now(),
    setBack: (ms) => clock.stepWall(-ms),
    async close() {
      for (const { backend } of processes.values()) await backend.close();
    },
  };
  return {
    bench,
    async quiet() {
      // The answer to a change comes after all mail that was sent before it. There is no such wait to remove.
      for (const { backend } of processes.values()) await backend.waiters.remove(keyFor('none'), 'none');
    },
    async restart(nodeId) {
      const left = processes.get(nodeId) ?? fail();
      processes.delete(nodeId);
      await left.backend.close();
      for (const { owners } of processes.values())
        await eventually(() => {
          if (owners.owned.length < PARTITIONS) throw new Error('the partitions have not moved yet');
        });
      await start(nodeId);
    },
  };
}

function fail(): never {
  throw new Error('there is no such process');
}
