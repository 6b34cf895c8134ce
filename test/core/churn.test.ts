/** Tests the map whose entries are added and removed with every command. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ChurnMap } from '../../src/core/collections.ts';

type Step =
  | { readonly act: 'set' | 'delete'; readonly key: number }
  | { readonly act: 'open' | 'read' | 'close'; readonly reader: number };

const KEY = fc.integer({ min: 0, max: 12 });
const READER = fc.integer({ min: 0, max: 2 });
const STEP: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ act: fc.constantFrom('set' as const, 'delete' as const), key: KEY }) },
  {
    weight: 1,
    arbitrary: fc.record({ act: fc.constantFrom('open' as const, 'read' as const, 'close' as const), reader: READER }),
  },
);

type Reader = { readonly own: Iterator<[number, number]>; readonly plain: Iterator<[number, number]> };

describe('a churn map', () => {
  it('behaves like a Map, with iterators that stay open while entries are added and removed', () => {
    fc.assert(
      fc.property(fc.array(STEP, { minLength: 400, maxLength: 1_500 }), (steps) => {
        const own = new ChurnMap<number, number>();
        const plain = new Map<number, number>();
        const readers = new Map<number, Reader>();
        steps.forEach((step, i) => {
          if ('key' in step) {
            if (step.act === 'set') (own.set(step.key, i), plain.set(step.key, i));
            else expect(own.delete(step.key)).toBe(plain.delete(step.key));
          } else if (step.act === 'open') {
            readers.get(step.reader)?.own.return?.();
            readers.set(step.reader, { own: own[Symbol.iterator](), plain: plain[Symbol.iterator]() });
          } else if (step.act === 'close') {
            readers.get(step.reader)?.own.return?.();
            readers.delete(step.reader);
          } else {
            const reader = readers.get(step.reader);
            if (reader) expect(reader.own.next()).toEqual(reader.plain.next());
          }
          expect(own.size).toBe(plain.size);
        });
        expect([...own]).toEqual([...plain]);
        expect([...own.keys()]).toEqual([...plain.keys()]);
        expect([...own.values()]).toEqual([...plain.values()]);
        expect(own.first()).toEqual([...plain][0]);
        for (let key = 0; key <= 13; key++) {
          expect(own.has(key)).toBe(plain.has(key));
          expect(own.get(key)).toBe(plain.get(key));
        }
      }),
      { numRuns: 60 },
    );
  });

  it('keeps its order over many renewals', () => {
    const map = new ChurnMap<number, string>();
    for (let i = 0; i < 10_000; i++) {
      map.set(i, `v${i}`);
      if (i >= 10) expect(map.delete(i - 10)).toBe(true);
    }
    expect([...map.keys()]).toEqual([9990, 9991, 9992, 9993, 9994, 9995, 9996, 9997, 9998, 9999]);
    expect(map.first()).toEqual([9990, 'v9990']);
    expect(map.delete(1)).toBe(false);
  });

  it('shows an open iterator entries that are added after more deletes than a renewal needs', () => {
    const map = new ChurnMap<number, number>();
    map.set(-1, 0);
    const reader = map.keys();
    expect(reader.next().value).toBe(-1);
    for (let i = 0; i < 1_000; i++) (map.set(i, i), map.delete(i));
    map.set(1_000, 0);
    expect([...reader]).toEqual([1_000]);
  });
});
