import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';
import { INTEGRATION, NOT_SHARED, ONE_RELAY, TOPOLOGIES, type Topology } from './test/topologies.ts';

/** As Node resolves them: with vite's own `development`, tests would load a second copy of graphql beside the one of its libraries. */
const conditions = ['module', 'node'];
const resolving = { resolve: { conditions }, ssr: { resolve: { conditions, externalConditions: conditions } } };

/** Direct mode runs everything; the shared topologies run once more what opens whole relays. */
function project(topology: Topology): TestProjectInlineConfiguration {
  const files =
    topology === 'direct'
      ? { include: ['test/**/*.test.ts'] }
      : {
          include: [...(topology === 'shared-one' ? ONE_RELAY : INTEGRATION)],
          exclude: NOT_SHARED.flatMap(({ files }) => files),
        };
  // Hours of a clock that stands still are thousands of turns, each of which waits for Redis.
  const testTimeout = topology === 'direct' ? 20_000 : 120_000;
  const test = { name: topology, ...files, provide: { topology }, testTimeout, hookTimeout: 60_000 };
  return { ...resolving, test: { ...test, pool: 'forks' } };
}

export default defineConfig({
  ...resolving,
  test: {
    projects: TOPOLOGIES.map(project),
    globalSetup: ['test/kit/redis-global.ts'],
    // Tests start servers and measure memory: processes. One more of them than the smallest machine has cores, since many wait for others.
    pool: 'forks',
    maxWorkers: 3,
  },
});
