/** Starts the loops of a node: its heartbeat, its mailbox, and the reconciliation of commands. */
import type { Cancel } from '../clock.ts';
import type { Connection } from '../connections/connection.ts';
import type { Deps } from '../deps.ts';
import { NODE_BEAT_MS, RECONCILE_BATCH, RECONCILE_MS } from '../limits.ts';
import type { DeliveryActs } from './acts.ts';
import type { NodeQuestions } from './node-questions.ts';
import type { MailboxRow, NodeListener } from './nodes.ts';
import { createOutage } from './outage.ts';
import { requeueAfterLeaseRecovery } from './lease-recovery.ts';
import { reportOf, type ReportParts, type LoopTimes } from './report.ts';
import type { Reply } from './waiter.ts';

export type LoopParts = ReportParts & {
  readonly acts: DeliveryActs;
  readonly onReply: (reply: Reply) => void;
  readonly questions: Pick<NodeQuestions, 'receive'>;
  readonly onDrain: (withinMs: number) => void;
  readonly onLost: NodeListener['lost'];
};

/** Starts this node's mailbox listener, heartbeat and reconciliation. The returned function stops all three. */
export async function startLoops(parts: LoopParts): Promise<Cancel> {
  const { deps } = parts;
  const { clock, nodeId } = deps;
  const { nodes } = deps.backend;
  const times: LoopTimes = { heardAt: clock.now(), reconciledAt: clock.now() };
  const outage = createOutage(deps);
  const quietly = (what: string, run: () => Promise<void>) => (): void => void outage.run(what, run);
  const beat = quietly('beat', async () => {
    await nodes.beat(nodeId, reportOf(parts, times));
    await nodes.post(nodeId, { kind: 'pulse' });
  });
  const turn = quietly('reconciliation', async () => {
    await reconcile(parts);
    times.reconciledAt = clock.now();
  });
  const detach = await nodes.attach(nodeId, {
    deliver(row) {
      if (row.kind === 'pulse') times.heardAt = clock.now();
      else take(parts, row);
      // The operator who requested the drain polls this node's report, so it is sent now.
      if (row.kind === 'drain') beat();
    },
    lost: parts.onLost,
    linksLost: (connections) => publishDisconnects(deps, connections),
    revived: quietly('requeue', () => requeueAfterLeaseRecovery(parts)),
  });
  beat();
  const cancels = [detach, clock.every(NODE_BEAT_MS, beat), clock.every(RECONCILE_MS, turn)];
  return () => cancels.forEach((cancel) => cancel());
}

/**
 * Ends due commands, one batch at a time. Stops after a batch that is not full, or of which no command could be ended.
 * The next pass tries again.
 */
export async function reconcile({ deps, acts }: Pick<LoopParts, 'deps' | 'acts'>): Promise<void> {
  for (;;) {
    const due = await deps.backend.nodes.due(RECONCILE_BATCH);
    let settled = 0;
    for (const key of due) if ((await acts.settle(key, { kind: 'expire' })).kind === 'settled') settled++;
    if (due.length < RECONCILE_BATCH || settled === 0) return;
  }
}

/** Publishes the disconnects of links that no node closed. */
function publishDisconnects({ backend, clock }: Deps, connections: readonly Connection[]): void {
  const change = 'disconnected';
  for (const connection of connections)
    backend.bus.publish('connections', { change, connection, cause: connection.disconnectCause, at: clock.now() });
}

function take(
  { dispatcher, questions, onReply, onDrain }: LoopParts,
  row: Exclude<MailboxRow, { kind: 'pulse' }>,
): void {
  switch (row.kind) {
    case 'command':
      return dispatcher.enqueue(row.key);
    case 'ended':
      return dispatcher.free(row.key);
    case 'cancel':
      return dispatcher.cancel(row.key, row.reason);
    case 'reply':
      return onReply(row.reply);
    case 'drain':
      return onDrain(row.withinMs);
    case 'question':
    case 'answer':
      return questions.receive(row);
    case 'kick': {
      const linkQueue = dispatcher.find(row.client);
      if (linkQueue?.binding.epoch === row.epoch) linkQueue.link.close(row.cause, row.instanceId);
    }
  }
}
