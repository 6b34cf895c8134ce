/** Opens core in the topology of the test run: over memory, over Redis, or with owners. */
import { inject } from 'vitest';
import { defaultPolicy } from '../../src/core/auth/policy.ts';
import type { Backend } from '../../src/core/backend.ts';
import type { Core } from '../../src/core/core.ts';
import { RETENTION_MS, STREAM_MESSAGES } from '../../src/core/limits.ts';
import { alsoSettles, FakeClock, turns } from './clock.ts';
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
  const { nodeId = 'n1' } = options;
  const backends: Backend[] = [];
  const open = topology === 'owned-two' ? await owners(options, clock, backends) : await deployed(options, clock);
  const start = async (name: string): Promise<Core> => {
    const backend = await open(name);
    backends.unshift(backend);
    return startCore({ ...options, nodeId: name }, { backend, clock, counts, spill });
  };
  // The first process owns all partitions, so it is the one that is called.
  const ofCalls = topology === 'owned-two' ? await start(`${nodeId}-calls`) : null;
  const linked = await start(nodeId);
  const called = ofCalls ?? (topology === 'shared-one' ? linked : await start(`${nodeId}-calls`));
  const backend = (ofCalls ? backends.at(-1) : backends[0]) ?? fail();
  const settled = ofCalls ? alsoSettles(() => quiet(backends)) : () => {};
  const close = async (): Promise<void> => {
    settled();
    await called.close();
    await linked.close();
    for (const one of backends.splice(0)) await one.close();
  };
  return { core: joined(called, linked), backend, clock, counts, [Symbol.asyncDispose]: close };
}

/** Returns a function that opens the backend of one more process of a deployment, in which Redis decides. */
async function deployed(options: TestOptions, clock: FakeClock): Promise<() => Promise<Backend>> {
  // This module is imported here, so that direct mode does not load the Redis client.
  const { deployment } = await import('./deployment.ts');
  const place = deployment(clock);
  const { policy = defaultPolicy, history = {} } = options;
  const { retentionMs = RETENTION_MS, streamMessages = STREAM_MESSAGES } = history;
  return () => place.open({ retentionMs, streamMessages, scopeOf: (userId) => policy.scopeOf(userId).id });
}

/** Returns a function that opens the backend of one more process, of which the first owns all partitions. */
async function owners(
  options: TestOptions,
  clock: FakeClock,
  backends: readonly Backend[],
): Promise<(nodeId: string) => Promise<Backend>> {
  const { ownedPlace } = await import('./owned.ts');
  const place = ownedPlace(clock);
  clock.alsoAwaits(() => quiet(backends));
  const { policy = defaultPolicy, history = {} } = options;
  const scopeOf = (userId: string): string => policy.scopeOf(userId).id;
  return async (nodeId) => (await place.open({ nodeId, scopeOf, memory: { history } })).backend;
}

/** A row that is mailed to another process may lead to mail from there, and that to an answer. */
const HOPS = 3;
const NO_WAIT = { userId: 'none', clientId: 'none', commandId: 'none' } as const;

/**
 * Resolves when each process has received the mail that the others sent before: the answer to a change, here of a wait
 * that does not exist, comes after it.
 */
async function quiet(backends: readonly Backend[]): Promise<void> {
  for (let hop = 0; hop < HOPS; hop++) {
    await turns();
    await Promise.all(backends.map(({ waiters }) => waiters.remove(NO_WAIT, 'none')));
  }
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
