import { createActions } from './actions/actions.ts';
import { createConnections } from './connections/connections.ts';
import { createContexts } from './contexts/contexts.ts';
import type { Core } from './core.ts';
import { createDedup } from './dedup/dedup.ts';
import { createActs } from './delivery/acts.ts';
import { createDeliveries } from './delivery/delivery.ts';
import { Dispatcher } from './delivery/dispatcher.ts';
import { createLinks } from './delivery/links.ts';
import { createStoreRetryQueue } from './delivery/store-retry-queue.ts';
import type { Deps } from './deps.ts';
import { createHistories } from './history/history.ts';
import { createPayloadStorage } from './history/payload-storage.ts';
import { createIngest } from './ingest/ingest.ts';
import { createLifecycle } from './lifecycle.ts';
import { READ_TURNS } from './limits-queries.ts';
import { ReadTurns } from './shares/read-turns.ts';
import { createProjector } from './sites/projector.ts';
import { Correlator } from './rpc/correlator.ts';
import { createRpc } from './rpc/rpc.ts';
import { createSites } from './sites/sites.ts';
import { createUsers } from './users/users.ts';

/** Builds core over one backend. Nothing runs before `start`. */
export function createCore(given: Omit<Deps, 'readTurns'>): Core {
  const deps: Deps = { ...given, readTurns: new ReadTurns(READ_TURNS) };
  const { backend, clock, nodeId } = deps;
  const correlator = new Correlator(deps.metrics);
  const keeper = createPayloadStorage({ ...deps, retentionMs: backend.history.retentionMs });
  const acts = createActs(deps, keeper);
  const outbox = createStoreRetryQueue(deps);
  const dispatcher = new Dispatcher(deps, outbox);
  const { isDraining, ...life } = createLifecycle({ deps, correlator, dispatcher, acts, outbox });
  const calls = { deps, correlator, acts, keeper, isDraining };
  return {
    nodeId,
    idempotencyWindowMs: backend.commands.windowMs,
    mode: backend.capabilities.shared ? 'shared' : 'direct',
    capabilities: backend.capabilities,
    clock,
    shares: deps.shares,
    users: createUsers(deps),
    connections: createConnections(deps),
    actions: createActions(deps),
    contexts: createContexts(deps),
    history: createHistories(deps),
    dedup: createDedup(deps),
    ingest: createIngest({ deps, keeper, projector: createProjector(deps) }),
    rpc: createRpc(calls),
    sites: createSites(calls),
    delivery: createDeliveries(deps, dispatcher),
    links: createLinks({ deps, dispatcher, acts, retryQueue: outbox, isDraining }),
    ...life,
    get draining() {
      return isDraining();
    },
  };
}
