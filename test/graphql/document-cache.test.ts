/** Tests the cache of documents: what it keeps, and its bounds. */
import { expect, test } from 'vitest';
import { createDocumentCache } from '../../src/graphql/execution/document-cache.ts';

const numbers = (count: number): readonly string[] => Array.from({ length: count }, (_, i) => String(i));

test('keeps at least the half that was used last, and never more than its bound', () => {
  const cache = createDocumentCache<number>({ most: 10, longest: 5 });
  for (const key of numbers(100)) {
    cache.set(key, Number(key));
    cache.get('0');
  }
  // The keys are read from the last one on, because each look-up counts as a use.
  for (const key of ['0', '99', '98', '97', '96']) expect(cache.get(key)).toBe(Number(key));
  const held = numbers(96).filter((key) => cache.get(key) !== undefined);
  expect(held.length).toBeLessThanOrEqual(10);
});

test('returns the value that was stored last, and stores no long keys', () => {
  const cache = createDocumentCache<number>({ most: 10, longest: 5 });
  cache.set('a', 1);
  cache.set('a', 2);
  cache.set('a'.repeat(6), 3);
  expect([cache.get('a'), cache.get('b'), cache.get('a'.repeat(6))]).toEqual([2, undefined, undefined]);
});
