/** Tests what relays that own partitions cost in each second: nothing grows faster than their number. */
import { beforeAll, describe, expect, it } from 'vitest';
import { CountedRelays, type Traffic } from './kit/counted-relays.ts';

const SIZES = [2, 4, 8] as const;
/** Whole periods of everything that is repeated. */
const SECONDS = 20;
/** The characters that a relay reads of each other one in a second: its name and its lease, 1.6 times. */
const OF_EACH = 100;

const total = ({ calls }: Traffic): number => Object.values(calls).reduce((sum, count) => sum + count, 0);

describe('idle relays', () => {
  const found = new Map<number, Traffic>();
  beforeAll(async () => {
    for (const size of SIZES) {
      const relays = await CountedRelays.open(size);
      found.set(size, await relays.during(SECONDS));
      // One that calls, and one that subscribes.
      expect(relays.connections).toBe(2 * size);
      relays.stop();
    }
  }, 300_000);
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
    for (const size of SIZES.slice(1)) expect(ofOne(size, count)).toBeLessThan(1.1 * ofOne(2, count));
    expect(ofOne(2, count)).toBeGreaterThan(0);
  });

  it('read of each other no more than a lease', () => {
    const read = ({ read: chars }: Traffic): number => chars;
    expect((ofOne(8, read) - ofOne(4, read)) / 4).toBeLessThan(OF_EACH);
    expect((ofOne(4, read) - ofOne(2, read)) / 2).toBeLessThan(OF_EACH);
  });
});
