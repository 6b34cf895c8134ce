import type { Cancel } from '../clock.ts';
import type { Deps } from '../deps.ts';
import { NODE_BEAT_MS, RECONCILE_BATCH, RECONCILE_MS } from '../limits.ts';
import type { DeliveryActs } from './acts.ts';
import type { Dispatcher } from './dispatcher.ts';
import type { MailboxRow, NodeReport } from './nodes.ts';
import type { Reply } from './waiter.ts';

export type LoopParts = {
  readonly deps: Deps;
  readonly dispatcher: Dispatcher;
  readonly acts: DeliveryActs;
  readonly onReply: (reply: Reply) => void;
  readonly onDrain: (withinMs: number) => void;
  readonly waiters: () => number;
  readonly isDraining: () => boolean;
};

/** Takes up this node's mailbox, its beat and reconciliation. The returned function ends all three. */
export async function startLoops(parts: LoopParts): Promise<Cancel> {
  const { deps } = parts;
  const { nodes } = deps.backend;
  const detach = await nodes.attach(deps.nodeId, (row) => take(parts, row));
  const quietly = (what: string, run: () => Promise<void>) => (): void => {
    run().catch((error: unknown) => deps.log.error({ err: error }, `${what} failed`));
  };
  const beat = quietly('beat', async () => nodes.beat(deps.nodeId, reportOf(parts)));
  beat();
  const cancels = [
    detach,
    deps.clock.every(NODE_BEAT_MS, beat),
    deps.clock.every(
      RECONCILE_MS,
      quietly('reconciliation', () => reconcile(parts)),
    ),
  ];
  return () => cancels.forEach((cancel) => cancel());
}

/** Ends what is due, a batch at a time, until nothing is. */
export async function reconcile({ deps, acts }: Pick<LoopParts, 'deps' | 'acts'>): Promise<void> {
  for (;;) {
    const due = await deps.backend.nodes.due(RECONCILE_BATCH);
    for (const key of due) await acts.settle(key, { kind: 'expire' });
    if (due.length < RECONCILE_BATCH) return;
  }
}

function take({ dispatcher, onReply, onDrain }: LoopParts, row: MailboxRow): void {
  switch (row.kind) {
    case 'command':
      return dispatcher.enqueue(row.key);
    case 'ended':
      return dispatcher.free(row.key);
    case 'cancel':
      return dispatcher.find(row.key)?.link.sendCancel(row.key.commandId, row.reason);
    case 'reply':
      return onReply(row.reply);
    case 'drain':
      return onDrain(row.withinMs);
    case 'kick': {
      const outlet = dispatcher.find(row.client);
      if (outlet?.binding.epoch === row.epoch) outlet.link.close(row.cause, row.instanceId);
    }
  }
}

function reportOf({ deps, dispatcher, waiters, isDraining }: LoopParts): NodeReport {
  return {
    listenerAlive: true,
    reconciliationAlive: true,
    activeDrainers: dispatcher.draining,
    connectionWaiters: waiters(),
    draining: isDraining(),
    counters: deps.metrics.snapshot(),
  };
}
