/** Tests how the tables of hostile runs are put into the docs. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { mergeTables, readPart, replacePart } from '../../faults/lib/page.ts';

const PAGE = 'before\n\n<!-- x: begin -->\n\nold\n\n<!-- x: end -->\n\nafter\n';

test('a part of a page is replaced, and the rest stays', () => {
  expect(readPart(PAGE, 'x')).toBe('old');
  expect(replacePart(PAGE, 'x', 'new')).toBe(PAGE.replace('old', 'new'));
  expect(() => replacePart(PAGE, 'y', 'new')).toThrow('needs <!-- y: begin -->');
});

test('rows that were measured again replace the old ones, in the order of their keys', () => {
  const old = '| a | b |\n| --- | --- |\n| two | 2 |\n| gone | 0 |\n| one | 1 |';
  const now = '| a | b |\n| --- | --- |\n| three | 3 |\n| two | 22 |';
  const keyOf = ([key = '']: readonly string[]): string => key;
  expect(mergeTables(old, now, { keyOf, keys: ['one', 'two', 'three', 'four'] })).toBe(
    '| a | b |\n| --- | --- |\n| one | 1 |\n| two | 22 |\n| three | 3 |',
  );
});

test.each([
  ['docs/neighbours-measured.md', 'npm run neighbours -- --write'],
  ['docs/neighbours-measured.md', 'npm run neighbours -- --full-disk --write'],
  ['docs/input-costs.md', 'npm run fuzz -- --cost --write, direct'],
  ['docs/input-costs.md', 'npm run fuzz -- --cost --write, shared'],
])('%s has a place for the table of %s', (page, name) => {
  const text = readFileSync(new URL(`../../${page}`, import.meta.url), 'utf8');
  expect(replacePart(text, name, readPart(text, name)).length).toBeGreaterThan(0);
});
