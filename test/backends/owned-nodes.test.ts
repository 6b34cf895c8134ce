/** Tests the nodes of a deployment as processes that own partitions list them. */
import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { expect, inject, it } from 'vitest';
import type { NodeReport } from '../../src/core/commands/node-store.ts';
import { systemClock } from '../../src/platform/system.ts';
import { ownedPlace } from '../kit/owned.ts';
import { eventually } from '../kit/patience.ts';

const REPORT: NodeReport = {
  ...{ listenerAlive: true, reconciliationAlive: true, activeDrainers: 0, connectionWaiters: 0, links: 0 },
  ...{ unfinishedCommands: 0, draining: false, counters: new Map(), process: null },
};

/** Reports are noted with each renewal of a lease, four times in it. */
const LEASE_MS = 8_000;

it('names a node whose report Redis has lost, until it reports again', async () => {
  const place = ownedPlace(systemClock);
  const names = [`a-${randomUUID()}`, `b-${randomUUID()}`] as const;
  const [a, b] = [
    await place.open({ nodeId: names[0], scopeOf: String, leaseMs: LEASE_MS }),
    await place.open({ nodeId: names[1], scopeOf: String, leaseMs: LEASE_MS }),
  ];
  const redis = new Redis(inject('redisUrl'));
  try {
    for (const [i, { backend }] of [a, b].entries()) {
      await backend.nodes.attach(names[i] ?? '', { deliver() {}, lost: async () => {}, linksLost() {}, revived() {} });
      await backend.nodes.beat(names[i] ?? '', REPORT);
    }
    const listed = async () => {
      const { rows, gaps } = await a.backend.nodes.list({ first: 10, after: null });
      return { rows: rows.map(({ row }) => row.nodeId), gaps: gaps.map(({ nodeId, reason }) => [nodeId, reason]) };
    };
    await eventually(async () => expect(await listed()).toEqual({ rows: [...names], gaps: [] }));
    const [key = ''] = await redis.keys(`*:report:${names[1]}.*`);
    expect(await redis.del(key)).toBe(1);
    expect(await listed()).toEqual({ rows: [names[0]], gaps: [[names[1], 'evicted']] });
    expect(await a.backend.nodes.get(names[1])).toBeNull();
    await b.backend.nodes.beat(names[1], { ...REPORT, links: 1 });
    await eventually(async () => expect(await listed()).toEqual({ rows: [...names], gaps: [] }));
  } finally {
    redis.disconnect();
    await a.backend.close();
    await b.backend.close();
  }
});
