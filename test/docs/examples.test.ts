import { describe, expect, test } from 'vitest';
import { examplesOf, reasonNotRun } from './kit/examples.ts';
import { startRunner } from './kit/example-runner.ts';

/** Pages for users. Their examples run from top to bottom, in one relay for each page. */
const PAGES = [
  'README.md',
  ...[
    'install',
    'calls',
    'graphql',
    'rest',
    'sites',
    'security',
    'operating',
    'upgrading',
    'shared-mode',
    'faults',
  ].map((name) => `docs/${name}.md`),
];

describe.each(PAGES)('%s', (page) => {
  const examples = examplesOf(page);

  test('has examples, and says why one is not run', () => {
    expect(examples.length).toBeGreaterThan(0);
    expect(examples.filter((example) => reasonNotRun(example) === '')).toEqual([]);
  });

  const run = examples.filter((example) => reasonNotRun(example) === null);
  if (run.length === 0) return;
  test('its examples work as written', async () => {
    await using runner = await startRunner();
    for (const example of run) {
      await runner.run(example).catch((error: unknown) => {
        throw new Error(`${page}:${example.line}`, { cause: error });
      });
    }
  }, 240_000);
});
