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
import { defaultPolicy } from '../../src/core/auth/policy.ts';
import { compilePolicy } from '../../src/core/auth/rules.ts';
import { RETENTION_MS, STREAM_MESSAGES } from '../../src/core/limits.ts';
import { createCrypto } from '../../src/platform/crypto.ts';
import { FakeClock } from './clock.ts';
import type { Topology } from '../topologies.ts';

declare module 'vitest' {
  interface ProvidedContext {
    topology: Topology;
  }
}

/** How many of so many random runs a property gets: Redis is asked some thousand times slower than memory. */
export function numRuns(ofMemory: number): number {
  return inject('topology') === 'direct' ? ofMemory : Math.ceil(ofMemory / 10);
}

export type House = {
  /** What is called. Its `core.links` are those of the relay that clients connect to; closing it closes all. */
  readonly callboard: Callboard;
  readonly url: string;
  readonly linkUrl: string;
  /** What a test may reach into: given, or opened at the time of a clock that stands still; else null. */
  readonly backend: Backend | null;
};

/** Opens and starts what the run's topology asks for. Whoever brings a backend gets one relay over it. */
export async function openHouse(options: CallboardOptions): Promise<House> {
  const topology = options.backend ? 'direct' : inject('topology');
  if (topology === 'direct') return alone({ callboard: createCallboard(options), backend: options.backend ?? null });
  const open = await opener(options);
  if (topology === 'shared-one') return alone(await open(options.config));
  const { nodeId } = options.config;
  const called = await open({ ...options.config, ...(nodeId !== undefined && { nodeId: `${nodeId}-calls` }) });
  const linked = await open(options.config);
  const linkUrl = await linked.callboard.listen();
  const url = await called.callboard.listen();
  return { callboard: joined(called.callboard, linked.callboard), url, linkUrl, backend: called.backend };
}

type Opened = Pick<House, 'callboard' | 'backend'>;

async function alone({ callboard, backend }: Opened): Promise<House> {
  const url = await callboard.listen();
  return { callboard, url, linkUrl: url, backend };
}

/** Opens relays of one deployment. A clock that stands still is the store's too; otherwise time is that of Redis. */
async function opener(options: CallboardOptions): Promise<(config: Settings) => Promise<Opened>> {
  const { clock, policy } = options;
  if (!(clock instanceof FakeClock)) {
    const redis = { url: inject('redisUrl'), partitions: 1, durability: 'memory', namespace: randomUUID() } as const;
    const rest = { strictMigration: false, legacy: { commandStream: null, pending: null } };
    return async (config) => {
      const callboard = await openCallboard({ ...options, config: { ...config, redis: { ...redis, ...rest } } });
      return { callboard, backend: null };
    };
  }
  // Direct mode loads no Redis client.
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
