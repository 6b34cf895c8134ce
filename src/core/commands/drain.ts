/**
 * Drains a node that shuts down: lets live commands end, closes the links, and ends the commands that callers still
 * wait for in direct mode.
 */
import type { Deps } from '../deps.ts';
import { PAGE_MAX, DRAIN_CLOSE_DELAY_MS, DRAIN_SPREAD_LINK_MS, DRAIN_SPREAD_MS } from '../limits.ts';
import type { Position, Scan } from '../page.ts';
import type { Cancel } from '../ports.ts';
import type { CommandRecorder } from './command-recorder.ts';
import type { Dispatcher } from './dispatcher.ts';
import { isBusy, type LinkQueue } from './link-queue.ts';
import { ANY_WAIT, type PendingWait } from './waiter-store.ts';

/**
 * Closes each link of this node as soon as it has no command left to finish. After `withinMs`, closes the links that
 * are still busy. In shared mode other nodes still admit commands for these clients: once a link is closing, nothing
 * more is dispatched on it, and the queued commands go to the client's next link. Resolves when all links are closed.
 */
export async function drainLinks(parts: { deps: Deps; dispatcher: Dispatcher; withinMs: number }): Promise<void> {
  const { deps, dispatcher, withinMs } = parts;
  const linkQueues = [...dispatcher.linkQueues()];
  const cancels: Cancel[] = [];
  const after = (ms: number): Promise<void> => new Promise((done) => void cancels.push(deps.clock.after(ms, done)));
  const stepMs = Math.min(DRAIN_SPREAD_LINK_MS, Math.min(withinMs, DRAIN_SPREAD_MS) / linkQueues.length);
  const closeInTurn = async (linkQueue: LinkQueue, turn: number): Promise<void> => {
    if (turn > 0) await after(turn * stepMs);
    const up = (): boolean => dispatcher.has(linkQueue);
    linkQueue.quiet ||= deps.backend.capabilities.shared;
    while (up() && isBusy(linkQueue)) {
      await dispatcher.idle(linkQueue);
      // The acknowledgement of the client's last report must be sent before the close.
      await after(DRAIN_CLOSE_DELAY_MS);
    }
    if (up()) linkQueue.link.close('node_drained', null);
  };
  if (withinMs > 0) await Promise.race([Promise.all(linkQueues.map(closeInTurn)), after(withinMs)]);
  for (const cancel of cancels) cancel();
  for (const { link } of [...dispatcher.linkQueues()]) link.close('node_drained', null);
}

/**
 * Ends the commands that callers still wait for when this node shuts down in direct mode, in which no command outlives
 * the node. Each command ends with the outcome that is proven, and its callers get this end.
 */
export async function endWaits(parts: { deps: Deps; recorder: CommandRecorder; waiting: number }): Promise<void> {
  const { deps, recorder, waiting } = parts;
  if (waiting === 0) return;
  const filter = { ...ANY_WAIT, callerNodeId: deps.nodeId };
  let after: Position | null = null;
  do {
    const scan: Scan<PendingWait> = await deps.backend.waiters.list(filter, { first: PAGE_MAX, after });
    for (const { row } of scan.rows)
      await recorder.settle(row.waiter, { kind: 'give_up', code: 'node_lost', instanceId: null });
    after = scan.next;
  } while (after !== null);
  // The mailbox delivers the replies in a microtask.
  await Promise.resolve();
}
