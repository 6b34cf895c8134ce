/** Opens two cores of one deployment with a FakeClock, over memory or over Redis. */
import type { Backend } from '../../src/core/backend.ts';
import { createMemoryBackend } from '../../src/backends/memory/backend.ts';
import { defaultPolicy } from '../../src/core/auth/policy.ts';
import type { Core } from '../../src/core/core.ts';
import { RETENTION_MS, STREAM_MESSAGES } from '../../src/core/limits.ts';
import { silentLog } from '../../src/core/ports.ts';
import { createShares } from '../../src/core/shares/shares.ts';
import { createCrypto } from '../../src/platform/system.ts';
import { FakeClock } from './clock.ts';
import { spillOf, startCore } from './core.ts';
import { deployment } from './deployment.ts';

export type Node = { readonly core: Core; readonly backend: Backend };
export type TwoNodes = AsyncDisposable & { readonly clock: FakeClock; readonly nodes: readonly [Node, Node] };

export const STORES: Readonly<Record<string, () => Promise<TwoNodes>>> = {
  memory: async () => {
    const clock = new FakeClock();
    const { sha256 } = createCrypto('test');
    const backend = createMemoryBackend({
      markSecret: 'x',
      clock,
      log: silentLog,
      sha256,
      shares: createShares(),
      history: {},
    });
    return start(clock, async () => backend);
  },
  Redis: async () => {
    const clock = new FakeClock();
    const place = deployment(clock);
    const scopeOf = (userId: string): string => defaultPolicy.scopeOf(userId).id;
    return start(clock, () => place.open({ retentionMs: RETENTION_MS, streamMessages: STREAM_MESSAGES, scopeOf }));
  },
};

async function start(clock: FakeClock, open: () => Promise<Backend>): Promise<TwoNodes> {
  const node = async (nodeId: string): Promise<Node> => {
    const backend = await open();
    const core = await startCore({ nodeId }, { backend, clock, counts: new Map(), spill: spillOf({}, clock) });
    return { core, backend };
  };
  const nodes = [await node('n1'), await node('n2')] as const;
  return {
    clock,
    nodes,
    async [Symbol.asyncDispose]() {
      for (const { core } of nodes) await core.close();
      for (const backend of new Set(nodes.map((one) => one.backend))) await backend.close();
    },
  };
}

/** Registers a node that sends a single heartbeat and never reads its mailbox, like a node that crashed. */
export async function deadNode(backend: Backend, nodeId: string): Promise<void> {
  await backend.nodes.attach(nodeId, {
    deliver: () => {},
    lost: () => Promise.resolve(),
    linksLost: () => {},
    revived: () => {},
  });
  await backend.nodes.beat(nodeId, {
    listenerAlive: true,
    reconciliationAlive: true,
    activeDrainers: 0,
    connectionWaiters: 0,
    links: 0,
    unfinishedCommands: 0,
    draining: false,
    counters: new Map(),
    process: null,
  });
}
