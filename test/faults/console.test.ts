/** Runs the measurement of the console with few clients: it finds each of the pages that it measures. */
import { expect, it } from 'vitest';
import { measureConsole, PARTS } from '../../faults/console/measure.ts';

it('opens each page, of an administrator and of a user, and measures its tasks and elements', async () => {
  const only = PARTS.filter((part) => !['idle', 'paint', 'heap'].includes(part));
  const said: string[] = [];
  const say = (line: string): void => void said.push(line);
  const figures = await measureConsole({ connections: 20, rate: 5, minutes: 0.1, seconds: 0.5, only, say });
  const pages = said.flatMap((line) => /^ {2}(\S+): \d+ elements, longest task \d+ ms/.exec(line)?.[1] ?? []);
  expect(pages).toEqual(only);
  expect(figures.map(({ text, measured }) => [text, measured > 0])).toEqual([
    ['elements of the longest page', true],
    ['longest task while a page opens, of CPU time', true],
    ['longest task of a live page, of CPU time', true],
  ]);
});
