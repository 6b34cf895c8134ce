/**
 * Starts core, drains it and closes it. Each step handles the parts of core in the order in which they depend on each
 * other.
 */
import type { Cancel } from './clock.ts';
import type { Core } from './core.ts';
import type { DeliveryActs } from './delivery/acts.ts';
import type { Dispatcher } from './delivery/dispatcher.ts';
import { drainLinks, endWaits } from './delivery/drain.ts';
import { startLoops, type LoopParts } from './delivery/loops.ts';
import { handleNodeLoss } from './delivery/node-loss.ts';
import type { NodeQuestions } from './delivery/node-questions.ts';
import type { StoreRetryQueue } from './delivery/store-retry-queue.ts';
import type { Deps } from './deps.ts';
import { fail } from './errors.ts';
import type { Series } from './metrics/series.ts';
import type { Correlator } from './rpc/correlator.ts';
import { reattachWaits } from './rpc/reattach.ts';
import { releaseWaits } from './rpc/release.ts';

export type LifecycleParts = {
  readonly deps: Deps;
  readonly correlator: Correlator;
  readonly dispatcher: Dispatcher;
  readonly acts: DeliveryActs;
  readonly outbox: StoreRetryQueue;
  readonly questions: NodeQuestions;
  readonly series: Pick<Series, 'start'>;
};

/** Starts, drains and closes a node. Nothing runs before `start`. */
export type Lifecycle = Pick<Core, 'start' | 'drain' | 'close' | 'ready'> & { readonly isDraining: () => boolean };

export function createLifecycle(parts: LifecycleParts): Lifecycle {
  const { deps, correlator, dispatcher, acts, outbox, series } = parts;
  const { backend } = deps;
  let draining = false;
  let cancels: Cancel[] = [];
  const isDraining = (): boolean => draining;
  const drain = async (withinMs: number): Promise<void> => {
    draining = true;
    await drainLinks({ deps, dispatcher, withinMs });
  };
  return {
    isDraining,
    async start() {
      const loops = await startLoops(loopsOf(parts, { drain, isDraining }));
      cancels = [loops, series.start(), () => deps.events.close()];
    },
    drain,
    async close() {
      draining = true;
      if (backend.capabilities.shared) await releaseWaits({ deps, correlator });
      else await endWaits({ deps, acts, waiting: correlator.size });
      outbox.stop();
      for (const cancel of cancels.splice(0)) cancel();
    },
    ready() {
      if (draining) fail('draining', 'This node is draining.');
      return backend.ready();
    },
  };
}

function loopsOf(parts: LifecycleParts, { drain, isDraining }: Pick<Lifecycle, 'drain' | 'isDraining'>): LoopParts {
  const { deps, correlator, dispatcher, acts, questions } = parts;
  const reattach = (): Promise<void> => reattachWaits({ deps, correlator });
  return {
    deps,
    dispatcher,
    acts,
    questions,
    isDraining,
    onDrain(withinMs) {
      drain(withinMs).catch((error: unknown) => deps.log.error({ err: error }, 'draining failed'));
    },
    waiters: () => correlator.size,
    onLost: (cause) => handleNodeLoss({ deps, dispatcher, acts, reattach }, cause),
    onReply: correlator.resolve.bind(correlator),
  };
}
