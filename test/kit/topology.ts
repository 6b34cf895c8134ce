/** Opens relays in the topology of the test run: one in memory, or one or two over Redis. */
import { randomUUID } from 'node:crypto';
import { inject } from 'vitest';
import {
  createCallboard,
  openCallboard,
  type Callboard,
  type CallboardOptions,
  type Settings,
} from '../../src/callboard.ts';
import { createMemorySpill } from '../../src/backends/spill/memory.ts';
import type { Backend } from '../../src/core/backend.ts';
import { compilePolicy } from '../../src/core/auth/policy-file.ts';
import { defaultPolicy } from '../../src/core/auth/policy.ts';
import { RETENTION_MS, STREAM_MESSAGES } from '../../src/core/limits.ts';
import { createCrypto } from '../../src/platform/system.ts';
import { FakeClock } from './clock.ts';
import { eventually } from './patience.ts';
import { IS_DIRECT, RELAYS, STORE } from './store.ts';

export type OpenedRelays = {
  /**
   * The relay that is called. Its `core.links` are those of the relay to which clients connect. Closing it closes all
   * relays.
   */
  readonly callboard: Callboard;
  readonly url: string;
  readonly linkUrl: string;
  /** The backend, if a test may access it: it was passed in, or opened with a FakeClock. Otherwise null. */
  readonly backend: Backend | null;
};

/** Opens and starts the relays of the run's topology. With `options.backend`, opens one relay over that backend. */
export async function openRelays(options: CallboardOptions): Promise<OpenedRelays> {
  const { backend = null, clock } = options;
  if (IS_DIRECT || backend) return alone({ callboard: createCallboard(options), backend });
  const open = await opener(options);
  if (RELAYS === 1) return alone(await open(options.config));
  const { nodeId } = options.config;
  const called = await open({ ...options.config, ...(nodeId !== undefined && { nodeId: `${nodeId}-calls` }) });
  const linked = await open(options.config);
  const linkUrl = await linked.callboard.listen();
  const url = await called.callboard.listen();
  // Each of the two relays then knows that the other has started.
  if (clock instanceof FakeClock) await clock.advance(0);
  return { callboard: joined(called.callboard, linked.callboard), url, linkUrl, backend: called.backend };
}

type Opened = Pick<OpenedRelays, 'callboard' | 'backend'>;

async function alone({ callboard, backend }: Opened): Promise<OpenedRelays> {
  const url = await callboard.listen();
  return { callboard, url, linkUrl: url, backend };
}

/**
 * Returns a function that opens relays of one deployment. A FakeClock is also the clock of the store; without one,
 * Redis uses its own.
 */
async function opener(options: CallboardOptions): Promise<(config: Settings) => Promise<Opened>> {
  const { clock, policy } = options;
  if (!(clock instanceof FakeClock)) {
    const redis = {
      url: inject('redisUrl'),
      store: STORE === 'owned' ? STORE : 'redis',
      partitions: 1,
      durability: 'memory',
      namespace: randomUUID(),
    } as const;
    const rest = { strictMigration: false, legacy: { commandStream: null, pending: null } };
    return async (config) => {
      const callboard = await openCallboard({ ...options, config: { ...config, redis: { ...redis, ...rest } } });
      // The first relay claims its partitions after it has opened. A second one that opens before that would own some.
      if (STORE === 'owned') await eventually(() => callboard.core.ready(), 1);
      return { callboard, backend: null };
    };
  }
  if (STORE === 'owned') {
    const { ownedDeployment } = await import('./owned.ts');
    const owned = ownedDeployment(clock);
    const spill = options.spill ?? (options.config.spillDir ? null : createMemorySpill(clock, createCrypto('test')));
    return async (config) => {
      const judge = policy ?? (config.policy ? compilePolicy(config.policy) : defaultPolicy);
      const nodeId = config.nodeId ?? `node-${randomUUID().slice(0, 8)}`;
      const backend = await owned.open({
        nodeId,
        scopeOf: (userId) => judge.scopeOf(userId).id,
        memory: {
          idempotencyWindowMs: config.idempotencyWindowMs,
          history: {
            retentionMs: config.retentionMs ?? RETENTION_MS,
            streamMessages: config.streamMaxMessages ?? STREAM_MESSAGES,
          },
        },
      });
      return {
        callboard: createCallboard({ ...options, ...(spill && { spill }), backend, config: { ...config, nodeId } }),
        backend,
      };
    };
  }
  // This module is imported here, so that direct mode does not load the Redis client.
  const { deployment } = await import('./deployment.ts');
  const place = deployment(clock);
  const together = createMemorySpill(clock, createCrypto('test'));
  const spill = options.spill ?? (options.config.spillDir ? null : together);
  return async (config) => {
    const judge = policy ?? (config.policy ? compilePolicy(config.policy) : defaultPolicy);
    const backend = await place.open({
      retentionMs: config.retentionMs ?? RETENTION_MS,
      streamMessages: config.streamMaxMessages ?? STREAM_MESSAGES,
      scopeOf: (userId) => judge.scopeOf(userId).id,
    });
    return { callboard: createCallboard({ ...options, ...(spill && { spill }), backend, config }), backend };
  };
}

function joined(called: Callboard, linked: Callboard): Callboard {
  const core: Callboard['core'] = Object.create(called.core, { links: { value: linked.core.links } });
  const close: Callboard['close'] = async (how) => {
    await called.close(how);
    await linked.close(how);
  };
  return Object.create(called, {
    core: { value: core },
    close: { value: close },
    [Symbol.asyncDispose]: { value: close },
  });
}
