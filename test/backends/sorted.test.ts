/** Tests the sorted map and the list of the memory backend. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { List, type ListItem } from '../../src/backends/memory/linked-list.ts';
import { createSortedMap } from '../../src/backends/memory/sorted-map.ts';

function filled(keys: Iterable<string>) {
  const map = createSortedMap<string>();
  for (const key of keys) map.set(key, `v${key}`);
  return map;
}

function numbered(count: number): string[] {
  return Array.from({ length: count }, (_, i) => String((i * 7919) % count).padStart(6, '0'));
}

describe('a sorted map', () => {
  it('keeps its keys in order over many chunks, for any insertions and deletions', () => {
    const keys = numbered(5_000);
    const map = filled(keys);
    expect(map.size).toBe(5_000);
    expect([...map.values()]).toEqual([...keys].sort().map((key) => `v${key}`));
    const odd = keys.filter((key) => Number(key) % 2 === 1);
    for (const key of odd) expect(map.delete(key)).toBe(true);
    expect([...map.values()]).toEqual([...keys].sort().flatMap((key) => (Number(key) % 2 === 0 ? [`v${key}`] : [])));
    for (const key of odd) map.set(key, 'again');
    expect(map.size).toBe(5_000);
    expect([...map.values({ after: '004998' })]).toEqual(['again']);
    for (const key of keys) map.delete(key);
    expect([map.size, [...map.values()]]).toEqual([0, []]);
  });

  it('iterates as a sorted array does, from every starting point', () => {
    const key = fc.string({ minLength: 0, maxLength: 2, unit: fc.constantFrom('a', 'b', '!', '~', '\ud83d\ude00') });
    const act = fc.record({ put: fc.boolean(), key });
    fc.assert(
      fc.property(fc.array(act, { maxLength: 60 }), key, key, (acts, after, from) => {
        const map = createSortedMap<number>();
        const plain = new Map<string, number>();
        acts.forEach((one, i) => {
          if (one.put) (map.set(one.key, i), plain.set(one.key, i));
          else expect(map.delete(one.key)).toBe(plain.delete(one.key));
        });
        const sorted = [...plain].sort(([a], [b]) => (a < b ? -1 : 1));
        const where = (keep: (text: string) => boolean): number[] => sorted.filter(([k]) => keep(k)).map(([, v]) => v);
        expect(map.size).toBe(plain.size);
        expect([...map.values()]).toEqual(where(() => true));
        expect([...map.values({ after })]).toEqual(where((k) => k > after));
        expect([...map.values({ from })]).toEqual(where((k) => k >= from));
        expect([...map.values({ after, from })]).toEqual(where((k) => k > after && k >= from));
        for (const [k, v] of plain) expect(map.get(k)).toBe(v);
      }),
      { numRuns: 500 },
    );
  });

  it('reads no more than requested', () => {
    const map = filled(numbered(2_000));
    expect(map.values({ after: '000999' }).take(2).toArray()).toEqual(['v001000', 'v001001']);
  });

  it('shows a value that is replaced while it is being read', () => {
    const map = filled(['a', 'b']);
    const seen: string[] = [];
    for (const value of map.values()) {
      seen.push(value);
      map.set('b', 'new');
    }
    expect(seen).toEqual(['va', 'new']);
  });
});

describe('a list', () => {
  it('keeps the order of arrival, each entry once, while entries are removed anywhere', () => {
    fc.assert(
      fc.property(fc.array(fc.option(fc.nat({ max: 9 })), { maxLength: 60 }), (acts) => {
        const list = new List<number>();
        let plain: ListItem<number>[] = [];
        const gone: ListItem<number>[] = [];
        acts.forEach((act, i) => {
          if (act === null) return void plain.push(list.push(i));
          const entry = plain[act] ?? gone[act];
          if (!entry) return;
          list.remove(entry);
          gone.push(entry);
          plain = plain.filter((other) => other !== entry);
          expect(list.first).toBe(plain[0] ?? null);
        });
        const drained: number[] = [];
        for (let head = list.first; head; head = list.first) {
          drained.push(head.value);
          list.remove(head);
        }
        expect(drained).toEqual(plain.map(({ value }) => value));
      }),
      { numRuns: 500 },
    );
  });
});
