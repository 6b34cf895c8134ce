/** Runs the examples of the documents. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { examplesOf, reasonNotRun, ROOT } from './kit/examples.ts';
import { startRunner } from './kit/example-runner.ts';

/** The pages with fenced blocks. The examples of a page run from top to bottom, in one relay for each page. */
const PAGES = [
  ...['README.md', 'CONTRIBUTING.md', 'bench/README.md'],
  ...readdirSync(join(ROOT, 'docs')).flatMap((name) => (name.endsWith('.md') ? [`docs/${name}`] : [])),
].filter((page) => examplesOf(page).length > 0);

test('the pages with examples are found', () => {
  expect(PAGES).toEqual(
    expect.arrayContaining(['README.md', 'docs/clients.md', 'docs/graphql.md', 'docs/redis-rights.md']),
  );
});

describe.each(PAGES)('%s', (page) => {
  const examples = examplesOf(page);

  test('says why an example is not run', () => {
    expect(examples.filter((example) => reasonNotRun(example) === '')).toEqual([]);
  });

  const run = examples.filter((example) => reasonNotRun(example) === null);
  if (run.length === 0) return;
  test('its examples work as written', async () => {
    const ownRelays = run.some(({ text }) => /\bnpm start\b/.test(text));
    await using runner = await startRunner({ ownRelays });
    for (const [i, example] of run.entries()) {
      const isShown = run[i + 1]?.info === 'shows';
      await runner.run(example, { isShown }).catch((error: unknown) => {
        throw new Error(`${page}:${example.line}`, { cause: error });
      });
    }
  });
});
