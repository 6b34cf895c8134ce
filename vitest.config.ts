/** Configures how the tests run: once over memory, and twice over Redis. */
import { join } from 'node:path';
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';
import { INTEGRATION, NOT_SHARED, ONE_PROCESS, ONE_RELAY, TOPOLOGIES, type Topology } from './test/topologies.ts';

/**
 * The conditions that Node uses. With vite's own `development`, tests would load a second copy of graphql beside that
 * of the libraries.
 */
const conditions = ['module', 'node'];
const setupFiles = [join(import.meta.dirname, 'test', 'kit', 'own-state.ts')];
const resolving = { resolve: { conditions }, ssr: { resolve: { conditions, externalConditions: conditions } } };

type Files = { readonly include: string[]; readonly exclude?: string[] };

/** Direct mode runs all tests. The shared topologies repeat the tests that open whole relays. */
function projects(topology: Topology): TestProjectInlineConfiguration[] {
  if (topology === 'direct') {
    const each = project('direct', topology, { include: ['test/**/*.test.ts'], exclude: [...ONE_PROCESS] });
    const together = project('direct-one-process', topology, { include: [...ONE_PROCESS] });
    return [each, { ...together, test: { ...together.test, isolate: false } }];
  }
  const include = [...(topology === 'shared-one' ? ONE_RELAY : INTEGRATION)];
  return [project(topology, topology, { include, exclude: NOT_SHARED.flatMap(({ files }) => files) })];
}

function project(name: string, topology: Topology, files: Files): TestProjectInlineConfiguration {
  // When a test advances its clock by hours, thousands of event-loop turns follow, and each waits for Redis.
  const testTimeout = topology === 'direct' ? 60_000 : 120_000;
  const test = { name, ...files, setupFiles, provide: { topology }, testTimeout, hookTimeout: 60_000 };
  return { ...resolving, test: { ...test, pool: 'forks' } };
}

export default defineConfig({
  ...resolving,
  test: {
    projects: TOPOLOGIES.flatMap(projects),
    globalSetup: ['test/kit/redis-global.ts', 'test/browser/kit/console-global.ts'],
    // Tests start servers and measure memory, so each file outside `direct-one-process` has a process of its own. There
    // is one more process than the smallest machine has cores, because many tests wait.
    pool: 'forks',
    maxWorkers: 3,
  },
});
