/** Configures how the tests run: all of them over memory, and those of the interfaces over Redis. */
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';
import { TEST_MS, WAIT_MS } from './test/kit/patience.ts';
import { LongestFirst } from './test/kit/sequencer.ts';
import { filesOf, TOPOLOGIES, type Topology } from './test/topologies.ts';

/**
 * The conditions that Node uses. With vite's own `development`, tests would load a second copy of graphql beside that
 * of the libraries.
 */
const conditions = ['module', 'node'];
// Test processes, and the programs that tests start, take compiled code from here: it saves most of the start of a program.
process.env['NODE_COMPILE_CACHE'] ??= join(import.meta.dirname, 'node_modules', '.cache', 'tests');

const setupFiles = [join(import.meta.dirname, 'test', 'kit', 'own-state.ts')];
const resolving = { resolve: { conditions }, ssr: { resolve: { conditions, externalConditions: conditions } } };

type Files = { readonly include: string[]; readonly isolate: boolean };

/** Direct mode runs all tests. The other topologies repeat those that open whole relays, as far as answers may differ. */
function projects(topology: Topology): TestProjectInlineConfiguration[] {
  const { alone, together } = filesOf(topology);
  return [
    project(topology, topology, { include: alone, isolate: true }),
    project(`${topology}-one-process`, topology, { include: together, isolate: false }),
  ];
}

function project(name: string, topology: Topology, files: Files): TestProjectInlineConfiguration {
  const bounds = { testTimeout: TEST_MS, hookTimeout: TEST_MS, expect: { poll: { timeout: WAIT_MS, interval: 20 } } };
  return { ...resolving, test: { name, ...files, setupFiles, provide: { topology }, ...bounds, pool: 'forks' } };
}

export default defineConfig({
  ...resolving,
  test: {
    projects: TOPOLOGIES.flatMap(projects),
    globalSetup: [
      'test/kit/redis-global.ts',
      'test/browser/kit/console-global.ts',
      'test/browser/kit/browser-global.ts',
    ],
    // The files of a project `…-one-process` take turns in as many processes as there are workers; each other file has
    // a process of its own. Most tests wait for other processes, for timers or for Redis most of their time, so two
    // processes a core keep the cores busy; with more, tests that measure times fail.
    pool: 'forks',
    maxWorkers: 2 * availableParallelism() + 1,
    sequence: { sequencer: LongestFirst },
    fsModuleCache: true,
    coverage: {
      include: ['src/**/*.{ts,tsx}', 'demo/**'],
      reporter: ['text-summary', 'html'],
      reportsDirectory: '.cache/coverage',
    },
  },
});
