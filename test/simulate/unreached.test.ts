/** Tests the list of what no simulation can reach: it names lines that are there, and a long run compares it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { unreachableIn } from '../../faults/simulate/unreachable.ts';
import { faultsOfList } from '../../faults/simulate/unreached.ts';
import { STORES, isStore } from '../../faults/simulate/workloads.ts';

const SRC = join(import.meta.dirname, '..', '..', 'src');
const FILE = 'backends/owned/fence.ts';

describe('the list of what no run can reach', () => {
  it.each(Object.keys(STORES))('names lines of the files of the store, once each: %s', (store) => {
    if (!isStore(store)) throw new Error(`there is no store ${store}`);
    const listed = unreachableIn(store);
    expect(listed.length).toBeGreaterThan(10);
    expect(new Set(listed.map(({ file, text }) => `${file} ${text}`)).size).toBe(listed.length);
    for (const { file, text } of listed) {
      expect(STORES[store].files).toContain(file);
      const lines = readFileSync(join(SRC, file), 'utf8').split('\n');
      expect(lines.map((line) => line.trim())).toContain(text);
    }
  });

  it('is wrong if it lacks a place, or names one that was reached', () => {
    const place = { file: FILE, line: 3, text: 'return null;' };
    const listed = { file: FILE, text: 'return null;', why: 'a reason', isRare: false };
    expect(faultsOfList([place], [listed])).toEqual([]);
    expect(faultsOfList([place], [])).toEqual([`no run has reached ${FILE}:3  return null;`]);
    expect(faultsOfList([], [listed])).toEqual([`listed as out of reach, and reached or gone: ${FILE}  return null;`]);
    expect(faultsOfList([], [{ ...listed, isRare: true }])).toEqual([]);
  });
});
