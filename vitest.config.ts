/** How the tests run: once over memory in one process, and twice over Redis. */
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';
import { INTEGRATION, NOT_SHARED, ONE_RELAY, TOPOLOGIES, type Topology } from './test/topologies.ts';

/**
 * The conditions that Node uses. With vite's own `development`, tests would load a second copy of graphql beside that
 * of the libraries.
 */
const conditions = ['module', 'node'];
const resolving = { resolve: { conditions }, ssr: { resolve: { conditions, externalConditions: conditions } } };

/** Direct mode runs all tests. The shared topologies repeat the tests that open whole relays. */
function project(topology: Topology): TestProjectInlineConfiguration {
  const files =
    topology === 'direct'
      ? { include: ['test/**/*.test.ts'] }
      : {
          include: [...(topology === 'shared-one' ? ONE_RELAY : INTEGRATION)],
          exclude: NOT_SHARED.flatMap(({ files }) => files),
        };
  // When a test advances its clock by hours, thousands of event-loop turns follow, and each waits for Redis.
  const testTimeout = topology === 'direct' ? 60_000 : 120_000;
  const test = { name: topology, ...files, provide: { topology }, testTimeout, hookTimeout: 60_000 };
  return { ...resolving, test: { ...test, pool: 'forks' } };
}

export default defineConfig({
  ...resolving,
  test: {
    projects: TOPOLOGIES.map(project),
    globalSetup: ['test/kit/redis-global.ts', 'test/browser/kit/console-global.ts'],
    // Tests start servers and measure memory, so each file has a process. There is one more than the smallest machine
    // has cores, because many tests wait.
    pool: 'forks',
    maxWorkers: 3,
  },
});
