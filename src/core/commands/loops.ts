/** Runs the background work of a node: heartbeat, mailbox, reconciliation of commands, and the log of store outages. */
import type { Connection } from '../connections/connection.ts';
import type { Deps } from '../deps.ts';
import { isStoreUnavailable } from '../errors.ts';
import { NODE_BEAT_MS, RECONCILE_BATCH, RECONCILE_MS } from '../limits.ts';
import type { Cancel } from '../ports.ts';
import type { CommandRecorder } from './command-recorder.ts';
import type { Reply } from './waiter.ts';
import { closeReplaced } from './link-queue.ts';
import type { MailboxRow, NodeListener } from './node-store.ts';
import type { NodeQuestions } from './node-questions.ts';
import { type LoopTimes, type ReportDeps, reportOf } from './node-report.ts';
import { createRequeue } from './requeue.ts';

type LoopDeps = ReportDeps & {
  readonly recorder: CommandRecorder;
  readonly onReply: (reply: Reply) => void;
  readonly questions: Pick<NodeQuestions, 'receive'>;
  readonly onDrain: (withinMs: number) => void;
  readonly onLost: NodeListener['lost'];
  /** Registers the waits for commands of these users in the store again. */
  readonly onMoved: (concerns: (userId: string) => boolean) => void;
  /** Called when other nodes may have considered this one dead, and so did not tell it what was decided meanwhile. */
  readonly onRevived: () => void;
};

/** Starts this node's mailbox listener, heartbeat and reconciliation. The returned function stops all three. */
export async function startLoops(parts: LoopDeps): Promise<Cancel> {
  const { deps } = parts;
  const { clock, nodeId } = deps;
  const { nodes } = deps.backend;
  const times: LoopTimes = { heardAt: clock.now(), reconciledAt: clock.now() };
  const outage = createOutage(deps);
  const quietly = (what: string, run: () => Promise<void>) => (): void => void outage.run(what, run);
  const requeue = createRequeue(parts);
  const requeueNow = quietly('requeue', () => requeue.run());
  const beat = quietly('beat', async () => {
    await nodes.beat(nodeId, reportOf(parts, times));
    await nodes.post(nodeId, { kind: 'pulse' });
    if (requeue.isBehind) requeueNow();
  });
  const pass = (): Promise<void> =>
    outage.run('reconciliation', async () => {
      await reconcile(parts);
      await lapsePauses(deps);
      times.reconciledAt = clock.now();
    });
  const detach = await nodes.attach(nodeId, {
    deliver(row) {
      if (row.kind === 'pulse') times.heardAt = clock.now();
      else take(parts, row);
      // The operator who requested the drain polls this node's report, so the report is sent at once.
      if (row.kind === 'drain') beat();
    },
    lost: parts.onLost,
    linksLost: (connections) => publishDisconnects(deps, connections),
    revived() {
      parts.onRevived();
      requeue.add({ mayBeLost: true });
      requeueNow();
    },
    moved(concerns) {
      requeue.add({ mayBeLost: false, concerns });
      requeueNow();
      parts.onMoved(concerns);
    },
  });
  beat();
  // Runs before the relay serves anything, because the deadlines of live commands may have passed while the relay was
  // down.
  await pass();
  const cancels = [detach, clock.every(NODE_BEAT_MS, beat), clock.every(RECONCILE_MS, () => void pass())];
  return () => cancels.forEach((cancel) => cancel());
}

/**
 * Ends due commands, batch by batch. Stops after a batch that is not full, or in which no command could be ended; the
 * next pass tries again.
 */
async function reconcile({ deps, recorder }: Pick<LoopDeps, 'deps' | 'recorder'>): Promise<void> {
  for (;;) {
    const due = await deps.backend.nodes.due(RECONCILE_BATCH);
    let settled = 0;
    for (const key of due) if ((await recorder.settle(key, { kind: 'expire' })).kind === 'settled') settled++;
    if (due.length < RECONCILE_BATCH || settled === 0) return;
  }
}

/** Ends the pauses whose time is over. In shared mode with owners, each node does this and publishes it. */
async function lapsePauses({ backend, clock }: Deps): Promise<void> {
  for (const pause of await backend.pauses.lapse())
    backend.bus.publish('pauses', { change: 'lapsed', pause, at: clock.now() });
}

/** Publishes the disconnect of links whose node did not close them. */
function publishDisconnects({ backend, clock }: Deps, connections: readonly Connection[]): void {
  const change = 'disconnected';
  for (const connection of connections)
    backend.bus.publish('connections', { change, connection, cause: connection.disconnectCause, at: clock.now() });
}

function take(
  { dispatcher, questions, onReply, onDrain }: LoopDeps,
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
      if (linkQueue?.binding.epoch !== row.epoch) return;
      if (row.cause === 'replaced') closeReplaced(linkQueue, row.instanceId);
      else linkQueue.link.close(row.cause, row.instanceId);
    }
  }
}

/** Wraps a repeated task: logs once when the store becomes unavailable, and once when it is back. */
interface Outage {
  /** Runs the task. Errors are logged, but during an outage only the first one. Never rejects. */
  run(what: string, turn: () => Promise<void>): Promise<void>;
}

function createOutage({ clock, log }: Pick<Deps, 'clock' | 'log'>): Outage {
  let since: number | null = null;
  let backAt = -Infinity;
  return {
    async run(what, turn) {
      const began = clock.now();
      try {
        await turn();
        // A run that began before the outage does not prove that the outage ended. Likewise, if a run began during an
        // outage and fails after it, that does not prove a new outage.
        if (since === null || began < since) return;
        log.info({ awayMs: clock.now() - since }, 'the store is back');
        since = null;
        backAt = clock.now();
      } catch (error) {
        if (!isStoreUnavailable(error)) return log.error({ err: error }, `${what} failed`);
        if (began < backAt) return;
        if (since === null) log.error({ err: error }, 'the store is unavailable');
        since ??= clock.now();
      }
    },
  };
}
