/** Tests that the lists of topologies name files that exist, and that each store runs what every store must pass. */
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, test } from 'vitest';
import {
  filesOf,
  INTEGRATION,
  NOT_SHARED,
  OWN_PROCESS,
  PATTERNS,
  PLACES,
  type Store,
  type Topology,
} from './topologies.ts';

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

const TOPOLOGIES = Object.keys(PLACES) as Topology[];
const inTwo = (store: Store): Topology | undefined =>
  TOPOLOGIES.find((topology) => PLACES[topology].store === store && PLACES[topology].relays === 2);

describe.each(['owned', 'redis'] as const)('two relays over the store "%s"', (store) => {
  it('run the tests of codes, evidence, interfaces, semantics and callers', () => {
    expect(all(inTwo(store) ?? 'direct')).toEqual(expect.arrayContaining(globSync(PROMISED, { cwd })));
  });
});

test('two relays that own partitions run every test of the interfaces that may differ from direct mode', () => {
  const excluded = new Set(globSync(NOT_SHARED.map(({ files }) => files).flat(), { cwd }));
  const files = globSync([...INTEGRATION], { cwd }).filter((file) => !excluded.has(file));
  expect(all('owned-two').toSorted()).toEqual(files.toSorted());
  expect(files.length).toBeGreaterThan(excluded.size);
});

test('each other topology over Redis runs some of these tests, and no others', () => {
  const most = new Set(all('owned-two'));
  for (const topology of TOPOLOGIES.filter((one) => one !== 'direct')) {
    expect(all(topology).length).toBeGreaterThan(0);
    expect(all(topology).filter((file) => !most.has(file))).toEqual([]);
  }
});
