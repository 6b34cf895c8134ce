/** Tests the index of items by the time at which they are due. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DueIndex, DueItem } from '../../src/backends/memory/due-index.ts';

class Named extends DueItem {
  readonly name: number;

  constructor(name: number) {
    super();
    this.name = name;
  }
}

type Step = { readonly act: 'set' | 'delete' | 'pass'; readonly item: number; readonly ms: number };

const STEP: fc.Arbitrary<Step> = fc.record({
  act: fc.constantFrom('set' as const, 'set' as const, 'delete' as const, 'pass' as const),
  item: fc.integer({ min: 0, max: 9 }),
  ms: fc.integer({ min: -300, max: 1_500 }),
});

/** The expected content of an index: the due time of each item, by name. The item that was set last comes last. */
type Plain = Map<number, number>;

function dueOf(plain: Plain, now: number): number[] {
  return [...plain].filter(([, at]) => at <= now).map(([, at]) => at);
}

describe('items by the time at which they are due', () => {
  it('are found as in a sorted list, for any sequence of sets, moves and deletions', () => {
    fc.assert(
      fc.property(fc.array(STEP, { maxLength: 80 }), (steps) => {
        let now = 10_000;
        const index = new DueIndex<Named>(now);
        const items = Array.from({ length: 10 }, (_, name) => new Named(name));
        const plain: Plain = new Map();
        for (const { act, item, ms } of steps) {
          const named = items[item];
          if (!named) continue;
          if (act === 'pass') now += Math.max(0, ms);
          else if (act === 'delete') (index.delete(named), plain.delete(item));
          else {
            plain.delete(item);
            plain.set(item, now + ms);
            index.set(named, now + ms);
          }
          expect(index.size).toBe(plain.size);
          const times = dueOf(plain, now).sort((a, b) => a - b);
          expect(index.count(now)).toBe(times.length);
          const found = index.due(now, 4);
          // Items that were already due when they were set are found too, although not always in order of time.
          expect(found.length).toBe(Math.min(4, times.length));
          for (const { name, dueAt } of found) expect(plain.get(name)).toBe(dueAt);
          expect(
            index
              .due(now, 100)
              .map(({ name }) => name)
              .sort(),
          ).toEqual(
            [...plain]
              .filter(([, at]) => at <= now)
              .map(([name]) => name)
              .sort(),
          );
        }
        const soonest = index.soonest(100).map(({ name }) => name);
        expect([...soonest].sort()).toEqual([...plain.keys()].sort());
      }),
      { numRuns: 300 },
    );
  });

  it('are returned oldest first, and the soonest ones by bucket', () => {
    const index = new DueIndex<Named>(0);
    for (let i = 0; i < 1_000; i++) index.set(new Named(i), 1_000 + ((i * 7919) % 5_000));
    const due = index.due(6_000, 1_000).map(({ dueAt }) => dueAt);
    expect(due).toEqual([...due].sort((a, b) => a - b));
    expect(due.length).toBe(1_000);
    const soonest = index.soonest(50).map(({ dueAt }) => Math.floor(dueAt / 250));
    expect(soonest).toEqual([...soonest].sort((a, b) => a - b));
  });

  it('leave nothing behind when they are deleted before they are due', () => {
    const index = new DueIndex<Named>(0);
    const items = Array.from({ length: 100 }, (_, i) => new Named(i));
    for (const item of items) index.set(item, 60_000);
    for (const item of items) index.delete(item);
    for (const item of items) index.delete(item);
    expect([index.size, index.soonest(10), index.count(100_000)]).toEqual([0, [], 0]);
    for (const { dueBucket, dueBefore, dueAfter } of items)
      expect([dueBucket, dueBefore, dueAfter]).toEqual([null, null, null]);
  });
});
