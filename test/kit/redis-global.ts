/** Starts the Redis that all tests of a run share. */
import type { TestProject } from 'vitest/node';
import { startRedis } from './redis.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The address of the Redis that all tests of a run share. Each test uses its own namespace. */
    redisUrl: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const given = process.env.CALLBOARD_TEST_REDIS_URL;
  if (given !== undefined) {
    project.provide('redisUrl', given);
    return async () => {};
  }
  const server = await startRedis();
  project.provide('redisUrl', server.url);
  return () => server.stop();
}
