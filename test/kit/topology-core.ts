/** Opens core in the topology of the test run: over memory, over Redis, or with owners. */
import { defaultPolicy } from '../../src/core/auth/policy.ts';
import type { Backend } from '../../src/core/backend.ts';
import type { Core } from '../../src/core/core.ts';
import { RETENTION_MS, STREAM_MESSAGES } from '../../src/core/limits.ts';
import { FakeClock } from './clock.ts';
import { spillOf, startCore, testCore, type TestCore, type TestOptions } from './core.ts';
import { IS_DIRECT, RELAYS, STORE } from './store.ts';

export type OpenedCore = AsyncDisposable &
  Omit<TestCore, 'backend'> & {
    /** The backend. With two cores, it is that of the core that is called. */
    readonly backend: Backend;
  };

/**
 * Starts the core of the run's topology with a FakeClock: one core over memory, or one or two over Redis. With two cores,
 * calls go to `<nodeId>-calls`, which starts first and so owns all partitions, and `links` belong to the other, `nodeId`.
 * Disposal closes all cores.
 */
export async function openCore(options: Omit<TestOptions, 'wrap'> = {}): Promise<OpenedCore> {
  if (IS_DIRECT) return testCore(options);
  const clock = new FakeClock();
  const counts = new Map<string, number>();
  const spill = spillOf(options, clock);
  const { nodeId = 'n1' } = options;
  const backends: Backend[] = [];
  const open = await (STORE === 'owned' ? owners(options, clock) : deployed(options, clock));
  const start = async (name: string): Promise<Core> => {
    const backend = await open(name);
    backends.push(backend);
    return startCore({ ...options, nodeId: name }, { backend, clock, counts, spill });
  };
  const called = RELAYS === 1 ? null : await start(`${nodeId}-calls`);
  const linked = await start(nodeId);
  // Each of the cores then knows that the other has started.
  if (called) await clock.advance(0);
  const close = async (): Promise<void> => {
    await called?.close();
    await linked.close();
    for (const one of backends.toReversed()) await one.close();
  };
  const [backend = fail()] = backends;
  const core = called ? joined(called, linked) : linked;
  return { core, backend, clock, counts, [Symbol.asyncDispose]: close };
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
async function owners(options: TestOptions, clock: FakeClock): Promise<(nodeId: string) => Promise<Backend>> {
  const { ownedDeployment } = await import('./owned.ts');
  const place = ownedDeployment(clock);
  const { policy = defaultPolicy, history = {} } = options;
  const scopeOf = (userId: string): string => policy.scopeOf(userId).id;
  return (nodeId) => place.open({ nodeId, scopeOf, memory: { history } });
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
