/** Tests what relays that own partitions cost in each second: nothing grows faster than their number. */
import { beforeAll, describe, expect, it } from 'vitest';
import { CountedRelays, type CountedRelay, type Traffic } from './kit/counted-relays.ts';

const SIZES = [2, 4, 8] as const;
/** Whole periods of everything that is repeated. */
const SECONDS = 20;
/** The characters that a relay reads of each other one in a second: its name and its lease, 1.6 times. */
const OF_EACH = 100;

const total = ({ calls }: Traffic): number => Object.values(calls).reduce((sum, count) => sum + count, 0);

async function gaugesOf({ core, backend }: CountedRelay): Promise<unknown> {
  const scopes = await backend.inspector.reservedScopes();
  return { nodes: await core.nodeCounts(), waits: core.nodeWaits(), scopes };
}

describe('idle relays', () => {
  const found = new Map<number, Traffic>();
  /** What relays answer while no time passes, so that nothing arrives from another relay or from the log service. */
  let alone: readonly unknown[] = [];
  beforeAll(async () => {
    for (const size of SIZES) {
      const relays = await CountedRelays.open(size);
      if (size === 2) alone = await Promise.all(relays.relays.map(gaugesOf));
      found.set(size, await relays.during(SECONDS));
      // One that calls, and one that subscribes.
      expect(relays.connections).toBe(2 * size);
      relays.stop();
    }
  });
  const ofOne = (size: number, count: (traffic: Traffic) => number): number => {
    const traffic = found.get(size);
    if (!traffic) throw new Error(`nothing was counted of ${size} relays`);
    return count(traffic) / size;
  };

  it.each([
    ['calls', total],
    ['messages', ({ published }: Traffic) => published],
    ['deliveries', ({ delivered }: Traffic) => delivered],
  ] as const)('make as many %s each, however many relays there are', (_, count) => {
    // All but one ask the owner of the revocations again: one of two relays, and nearly each of many.
    for (const size of SIZES.slice(1)) expect(ofOne(size, count)).toBeLessThan(1.5 * ofOne(2, count));
    expect(ofOne(2, count)).toBeGreaterThan(0);
  });

  it('know what their metrics show without a question to anybody', () => {
    const gauges = { nodes: { live: 2, stale: 0 }, waits: { count: 0, oldestMs: 0 }, scopes: [] };
    expect(alone).toEqual([gauges, gauges]);
  });

  it('read of each other no more than a lease', () => {
    const read = ({ read: chars }: Traffic): number => chars;
    expect((ofOne(8, read) - ofOne(4, read)) / 4).toBeLessThan(OF_EACH);
    expect((ofOne(4, read) - ofOne(2, read)) / 2).toBeLessThan(OF_EACH);
  });
});
