/**
 * Tests the table of ended commands whose records were dropped: a hash table in typed arrays, of at most 60 bytes per
 * row.
 */
import { createHash } from 'node:crypto';
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { MarkTable, type PackedMark } from '../../src/backends/memory/commands-marks.ts';

function words(text: string): Uint32Array {
  const bytes = createHash('sha256').update(text).digest();
  return Uint32Array.from([0, 4, 8, 12], (at) => bytes.readUInt32LE(at));
}

function mark(name: string, end = 7, code = 3): PackedMark {
  return { key: words(name), digest: words(`${name}?`), end, code };
}

it('answers as a map does, for any keys', () => {
  const name = fc.string({ maxLength: 6 });
  const row = fc.record({ name, end: fc.nat(2 ** 30 - 1), code: fc.nat(255) });
  fc.assert(
    fc.property(
      fc.uniqueArray(row, { selector: (one) => one.name, maxLength: 400 }),
      fc.array(name),
      (rows, others) => {
        const table = new MarkTable();
        const map = new Map(rows.map((one) => [one.name, mark(one.name, one.end, one.code)]));
        for (const one of map.values()) table.add(one);
        expect(table.size).toBe(map.size);
        for (const requested of [...map.keys(), ...others])
          expect(table.find(words(requested))).toEqual(map.get(requested) ?? null);
      },
    ),
  );
});

it('distinguishes keys that share a shard and a slot', () => {
  const key = (third: number): Uint32Array => Uint32Array.of(1, third, 0, 0);
  const table = new MarkTable();
  for (let i = 0; i < 1000; i++) table.add({ key: key(i), digest: words(String(i)), end: i, code: 0 });
  for (let i = 0; i < 1000; i++) expect(table.find(key(i))?.end).toBe(i);
  expect(table.find(key(1000))).toBeNull();
});

it('packs a mark into at most 60 bytes, at every size', () => {
  const table = new MarkTable();
  let added = 0;
  for (const size of [20_000, 50_000, 100_000, 150_000, 200_000, 300_000]) {
    for (; added < size; added++) table.add(mark(String(added)));
    expect(table.bytes / table.size).toBeLessThanOrEqual(60);
  }
  expect(table.find(words('123456'))?.digest).toEqual(words('123456?'));
});

it('finds every mark of a shard beyond 65,535', () => {
  const table = new MarkTable();
  const key = (i: number): Uint32Array => Uint32Array.of(Math.imul(i, 2654435761), i, 0, 5);
  for (let i = 0; i < 70_000; i++) table.add({ key: key(i), digest: key(i), end: i, code: 0 });
  for (let i = 0; i < 70_000; i++) if (table.find(key(i))?.end !== i) throw new Error(`lost ${i}`);
  expect(table.size).toBe(70_000);
});
