import { createActions } from './actions/actions.ts';
import type { Cancel } from './clock.ts';
import { createConnections } from './connections/connections.ts';
import { createStaleWatch } from './connections/watch.ts';
import { createContexts } from './contexts/contexts.ts';
import type { Core } from './core.ts';
import { createDedup } from './dedup/dedup.ts';
import { createActs } from './delivery/acts.ts';
import { createDeliveries } from './delivery/delivery.ts';
import { Dispatcher } from './delivery/dispatcher.ts';
import { drainLinks, endWaits } from './delivery/drain.ts';
import { createLinks } from './delivery/links.ts';
import { startLoops, type LoopParts } from './delivery/loops.ts';
import { dealWithLoss } from './delivery/lost.ts';
import { createOutbox } from './delivery/outbox.ts';
import type { Deps } from './deps.ts';
import { fail } from './errors.ts';
import { createHistories } from './history/history.ts';
import { createKeeper } from './history/keep.ts';
import { createIngest } from './ingest/ingest.ts';
import { createProjector } from './sites/projector.ts';
import { Correlator } from './rpc/correlator.ts';
import { reattachWaits } from './rpc/reattach.ts';
import { releaseWaits } from './rpc/release.ts';
import { createRpc } from './rpc/rpc.ts';
import { createSites } from './sites/sites.ts';
import { createUsers } from './users/users.ts';

/** Puts the rooms together over one backend. Nothing runs before `start`. */
export function createCore(deps: Deps): Core {
  const { backend, clock, nodeId } = deps;
  const correlator = new Correlator(deps.metrics);
  const keeper = createKeeper({ ...deps, retentionMs: backend.history.retentionMs });
  const acts = createActs(deps, keeper);
  const outbox = createOutbox(deps);
  const dispatcher = new Dispatcher(deps, outbox);
  let draining = false;
  let cancels: Cancel[] = [];
  const isDraining = (): boolean => draining;
  const drain = async (withinMs: number): Promise<void> => {
    draining = true;
    await drainLinks({ deps, dispatcher, withinMs });
  };
  const onDrain = (withinMs: number): void => {
    drain(withinMs).catch((error: unknown) => deps.log.error({ err: error }, 'draining failed'));
  };
  const reattach = (): Promise<void> => reattachWaits({ deps, correlator });
  const loops: LoopParts = {
    deps,
    dispatcher,
    acts,
    onDrain,
    isDraining,
    waiters: () => correlator.size,
    onLost: (cause) => dealWithLoss({ deps, dispatcher, acts, reattach }, cause),
    onReply: correlator.resolve.bind(correlator),
  };
  const calls = { deps, correlator, acts, keeper, isDraining };
  return {
    nodeId,
    mode: backend.capabilities.shared ? 'shared' : 'direct',
    capabilities: backend.capabilities,
    clock,
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
    links: createLinks({ deps, dispatcher, acts, outbox, isDraining }),
    async start() {
      cancels = [await startLoops(loops), createStaleWatch(deps).start()];
    },
    drain,
    get draining() {
      return draining;
    },
    async close() {
      draining = true;
      if (backend.capabilities.shared) await releaseWaits({ deps, correlator });
      else await endWaits({ deps, acts, waiting: correlator.size });
      outbox.stop();
      for (const cancel of cancels.splice(0)) cancel();
    },
    ready() {
      if (draining) fail('draining', 'This node is going away.');
      return backend.ready();
    },
  };
}
