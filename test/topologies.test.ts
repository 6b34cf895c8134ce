/** Tests that the lists of topologies name files that exist, and that each store runs what every store must pass. */
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, test } from 'vitest';
import { filesOf, NOT_SHARED, OWN_PROCESS, PATTERNS, type Topology } from './topologies.ts';

const cwd = join(import.meta.dirname, '..');
const all = (topology: Topology): readonly string[] => Object.values(filesOf(topology)).flat();

test('each pattern names a file', () => {
  const patterns = [...Object.values(PATTERNS), ...[...NOT_SHARED, ...OWN_PROCESS].map(({ files }) => files)].flat();
  expect(patterns.filter((pattern) => globSync(pattern, { cwd }).length === 0)).toEqual([]);
});

test('direct mode runs every file, once', () => {
  const files = all('direct');
  expect(files.toSorted()).toEqual(globSync('test/**/*.test.ts', { cwd }).toSorted());
  expect(new Set(files).size).toBe(files.length);
});

/** The tests of what callers are promised: they run in each store, with caller and client at different relays. */
const PROMISED = [
  ...['codes', 'evidence', 'interface*', 'semantics*'].map((name) => `test/relay/${name}.test.ts`),
  ...['callers', 'commands', 'resume'].map((name) => `test/gateway/${name}.test.ts`),
];

describe.each(['owned-two', 'shared-two'] as const)('%s', (topology) => {
  it('runs the tests of codes, evidence, interfaces, semantics and callers', () => {
    expect(all(topology)).toEqual(expect.arrayContaining(globSync(PROMISED, { cwd })));
  });
});
