/** Runs test/interop/libraries in direct mode and with two relays over each store in Redis, and compiles the `graphql` tags of the Relay app. */
import { join } from 'node:path';
import { transformAsync } from '@babel/core';
import { defineConfig } from 'vitest/config';
import { PLACES, TOPOLOGIES } from '../topologies.ts';
import { RECIPES } from './kit/recipes.ts';
import { TEST_MS, WAIT_MS } from '../kit/patience.ts';

const ROOT = join(import.meta.dirname, '../..');
const APP = join(RECIPES, 'app/');
const options = { eagerEsModules: true };

/** Compiles `graphql` tags in the way that relay.dev describes for any bundler. */
const relayTags = {
  name: 'relay-tags',
  enforce: 'pre' as const,
  async transform(code: string, id: string) {
    if (!id.startsWith(APP) || id.includes('__generated__')) return null;
    const done = await transformAsync(code, {
      ...{ filename: id, configFile: false, babelrc: false, sourceMaps: true },
      plugins: [[join(import.meta.dirname, 'node_modules/babel-plugin-relay'), options]],
    });
    return done?.code ? { code: done.code, map: null } : null;
  },
};

/** The conditions of the configuration for the other tests. With them, only one copy of each library is loaded. */
const conditions = ['module', 'node'];
const resolving = { resolve: { conditions }, ssr: { resolve: { conditions, externalConditions: conditions } } };

export default defineConfig({
  root: ROOT,
  test: {
    globalSetup: ['test/kit/redis-global.ts'],
    pool: 'forks',
    maxWorkers: 2,
    projects: TOPOLOGIES.filter((topology) => topology === 'direct' || PLACES[topology].relays > 1).map((topology) => ({
      root: ROOT,
      plugins: [relayTags],
      ...resolving,
      test: {
        name: topology,
        include: ['test/interop/libraries/*.interop.ts'],
        provide: { topology },
        testTimeout: TEST_MS,
        hookTimeout: TEST_MS,
        expect: { poll: { timeout: WAIT_MS } },
      },
    })),
  },
});
