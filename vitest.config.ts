import { defineConfig } from 'vitest/config';

/** As Node resolves them: with vite's own `development`, tests would load a second copy of graphql beside the one of its libraries. */
const conditions = ['module', 'node'];

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: conditions } },
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/kit/redis-global.ts'],
    testTimeout: 20_000,
    hookTimeout: 60_000,
    // Tests start servers and measure memory: processes, and no more of them than the smallest machine has cores.
    pool: 'forks',
    maxWorkers: 2,
  },
});
