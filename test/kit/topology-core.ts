/** Opens core in the topology of the test run: memory, or Redis. */
import { inject } from 'vitest';
import { defaultPolicy } from '../../src/core/auth/policy.ts';
import type { Backend } from '../../src/core/backend.ts';
import type { Core } from '../../src/core/core.ts';
import { RETENTION_MS, STREAM_MESSAGES } from '../../src/core/limits.ts';
import { FakeClock } from './clock.ts';
import { spillOf, startCore, testCore, type TestCore, type TestOptions } from './core.ts';

export type OpenedCore = AsyncDisposable &
  Omit<TestCore, 'backend'> & {
    /** The backend. With two cores, it is that of the core that is called. */
    readonly backend: Backend;
  };

/**
 * Starts the core of the run's topology with a FakeClock: one core over memory, one over Redis, or two over Redis. With
 * two cores, calls go to one of them, and `links` belong to the other. Disposal closes all cores.
 */
export async function openCore(options: Omit<TestOptions, 'wrap'> = {}): Promise<OpenedCore> {
  const topology = inject('topology');
  if (topology === 'direct') return testCore(options);
  const clock = new FakeClock();
  const counts = new Map<string, number>();
  const spill = spillOf(options, clock);
  // This module is imported here, so that direct mode does not load the Redis client.
  const { deployment } = await import('./deployment.ts');
  const place = deployment(clock);
  const { nodeId = 'n1', policy = defaultPolicy, history = {} } = options;
  const { retentionMs = RETENTION_MS, streamMessages = STREAM_MESSAGES } = history;
  const scopeOf = (userId: string): string => policy.scopeOf(userId).id;
  const backends: Backend[] = [];
  const start = async (name: string): Promise<Core> => {
    const backend = await place.open({ retentionMs, streamMessages, scopeOf });
    backends.unshift(backend);
    return startCore({ ...options, nodeId: name }, { backend, clock, counts, spill });
  };
  const linked = await start(nodeId);
  const called = topology === 'shared-one' ? linked : await start(`${nodeId}-calls`);
  const close = async (): Promise<void> => {
    await called.close();
    await linked.close();
    for (const backend of backends) await backend.close();
  };
  const [backend = fail()] = backends;
  return { core: joined(called, linked), backend, clock, counts, [Symbol.asyncDispose]: close };
}

function joined(called: Core, linked: Core): Core {
  return {
    ...called,
    links: linked.links,
    drain: async (withinMs) => void (await Promise.all([called, linked].map((core) => core.drain(withinMs)))),
    get draining() {
      return called.draining;
    },
  };
}

function fail(): never {
  throw new Error('nothing was opened');
}
