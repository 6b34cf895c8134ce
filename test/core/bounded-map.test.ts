/** Tests the bounded map: which entries it keeps, for how long, and what steps of the wall clock change (nothing). */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BoundedMap } from '../../src/core/collections.ts';
import { FakeClock } from '../kit/clock.ts';

describe('a bounded map', () => {
  it('evicts what was set longest ago', () => {
    const map = new BoundedMap<string, number>({ most: 2 });
    map.set('a', 1);
    map.set('b', 2);
    map.get('a');
    map.set('c', 3);
    expect([map.get('a'), map.get('b'), map.get('c'), map.size]).toEqual([undefined, 2, 3, 2]);
    map.set('b', 4);
    map.set('d', 5);
    expect([map.get('b'), map.get('c'), map.get('d')]).toEqual([4, undefined, 5]);
  });

  it('evicts what was not used for longest, if it is ordered by use', () => {
    const map = new BoundedMap<string, number>({ most: 2, order: 'used' });
    map.set('a', 1);
    map.set('b', 2);
    map.get('a');
    map.set('c', 3);
    expect([map.get('a'), map.get('b'), map.get('c'), map.size]).toEqual([1, undefined, 3, 2]);
  });

  it('keeps an entry for its time, whatever the wall clock shows', async () => {
    for (const step of [-3_600_000, 3_600_000]) {
      const clock = new FakeClock();
      const map = new BoundedMap<string, number>({ most: 2, ttl: { ms: 1_000, clock } });
      map.set('a', 1);
      clock.stepWall(step);
      await clock.advance(999);
      expect(map.get('a')).toBe(1);
      await clock.advance(1);
      expect([map.get('a'), map.size]).toEqual([undefined, 0]);
    }
  });

  /** What a map of these options must contain, kept in the simplest way: a list in the order of age. */
  class Model {
    rows: { readonly key: string; value: number; setAt: number }[] = [];
    readonly #options: { readonly most: number; readonly byUse: boolean; readonly ms: number };

    constructor(options: { readonly most: number; readonly byUse: boolean; readonly ms: number }) {
      this.#options = options;
    }

    get(key: string, now: number): number | undefined {
      const row = this.rows.find((one) => one.key === key);
      if (!row) return undefined;
      const old = now - row.setAt >= this.#options.ms;
      if (old || this.#options.byUse) this.rows = this.rows.filter((one) => one !== row);
      if (!old && this.#options.byUse) this.rows.push(row);
      return old ? undefined : row.value;
    }

    set(key: string, value: number, now: number): void {
      this.delete(key);
      this.rows.push({ key, value, setAt: now });
      this.rows = this.rows.slice(-this.#options.most);
    }

    delete(key: string): void {
      this.rows = this.rows.filter((one) => one.key !== key);
    }
  }

  const key = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f');
  const act = fc.oneof(
    fc.record({ kind: fc.constant('get' as const), key }),
    fc.record({ kind: fc.constant('set' as const), key }),
    fc.record({ kind: fc.constant('delete' as const), key }),
    fc.record({ kind: fc.constant('clear' as const) }),
    fc.record({ kind: fc.constant('advance' as const), ms: fc.integer({ min: 0, max: 1_500 }) }),
    fc.record({ kind: fc.constant('step' as const), ms: fc.integer({ min: -7_200_000, max: 7_200_000 }) }),
  );

  it('contains what a list in the order of age would, after any acts and steps of the wall clock', async () => {
    const options = fc.record({ most: fc.integer({ min: 1, max: 5 }), byUse: fc.boolean(), ages: fc.boolean() });
    await fc.assert(
      fc.asyncProperty(options, fc.array(act, { maxLength: 60 }), async ({ most, byUse, ages }, acts) => {
        const clock = new FakeClock();
        clock.alsoAwaits(async () => {});
        const ttl = ages ? { ttl: { ms: 1_000, clock } } : {};
        const map = new BoundedMap<string, number>({ most, order: byUse ? 'used' : 'set', ...ttl });
        const model = new Model({ most, byUse, ms: ages ? 1_000 : Infinity });
        for (const [value, one] of acts.entries()) {
          const now = clock.monotonic();
          if (one.kind === 'get') expect(map.get(one.key)).toBe(model.get(one.key, now));
          else if (one.kind === 'set') {
            map.set(one.key, value);
            model.set(one.key, value, now);
          } else if (one.kind === 'delete') {
            map.delete(one.key);
            model.delete(one.key);
          } else if (one.kind === 'clear') {
            map.clear();
            model.rows = [];
          } else if (one.kind === 'advance') await clock.advance(one.ms);
          else clock.stepWall(one.ms);
          expect(map.size).toBe(model.rows.length);
        }
        for (const { key: held } of [...model.rows]) expect(map.get(held)).toBe(model.get(held, clock.monotonic()));
      }),
    );
  });
});
