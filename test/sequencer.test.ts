/** Tests that the files which begin first are there. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { LONGEST } from './kit/sequencer.ts';

test('each of the longest files exists, and is listed once', () => {
  const missing = LONGEST.filter((name) => !existsSync(join(import.meta.dirname, `${name}.test.ts`)));
  expect(missing).toEqual([]);
  expect(new Set(LONGEST).size).toBe(LONGEST.length);
});
