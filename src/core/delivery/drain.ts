import type { Cancel } from '../clock.ts';
import type { Deps } from '../deps.ts';
import { DRAIN_LAST_WORD_MS, DRAIN_SPREAD_LINK_MS, DRAIN_SPREAD_MS, PAGE_MAX } from '../limits.ts';
import type { Position, Scan } from '../page.ts';
import type { DeliveryActs } from './acts.ts';
import type { Dispatcher, Outlet } from './dispatcher.ts';
import type { PendingWait } from './waiters.ts';

/**
 * Closes this node's links, one after another and each once nothing is queued or in flight on it; those that are not done `withinMs` from
 * now are closed then. Resolves when all are.
 */
export async function drainLinks(parts: { deps: Deps; dispatcher: Dispatcher; withinMs: number }): Promise<void> {
  const { deps, dispatcher, withinMs } = parts;
  const outlets = [...dispatcher.outlets()];
  const cancels: Cancel[] = [];
  const after = (ms: number): Promise<void> => new Promise((done) => void cancels.push(deps.clock.after(ms, done)));
  const stepMs = Math.min(DRAIN_SPREAD_LINK_MS, Math.min(withinMs, DRAIN_SPREAD_MS) / outlets.length);
  const closeInTurn = async (outlet: Outlet, turn: number): Promise<void> => {
    if (turn > 0) await after(turn * stepMs);
    const bound = (): boolean => dispatcher.find(outlet.client) === outlet;
    while (bound() && outlet.queue.size + outlet.window.size > 0) {
      await dispatcher.idle(outlet);
      // The client is still to be told that its last report was taken.
      await after(DRAIN_LAST_WORD_MS);
    }
    if (bound()) outlet.link.close('node_drained', null);
  };
  if (withinMs > 0) await Promise.race([Promise.all(outlets.map(closeInTurn)), after(withinMs)]);
  for (const cancel of cancels) cancel();
  for (const { link } of [...dispatcher.outlets()]) link.close('node_drained', null);
}

/**
 * This node goes away with callers still waiting on it. In direct mode nothing of their commands will be left, so each ends with what is
 * proven, and its callers are told.
 */
export async function endWaits(parts: { deps: Deps; acts: DeliveryActs; waiting: number }): Promise<void> {
  const { deps, acts, waiting } = parts;
  if (waiting === 0) return;
  const filter = { userId: null, clientId: null, nodeId: null, callerNodeId: deps.nodeId, minAgeMs: null };
  let after: Position | null = null;
  do {
    const scan: Scan<PendingWait> = await deps.backend.waiters.list(filter, { first: PAGE_MAX, after });
    for (const { row } of scan.rows)
      await acts.settle(row.waiter, { kind: 'give_up', code: 'node_lost', instanceId: null });
    after = scan.next;
  } while (after !== null);
  // Replies travel by the mailbox, in a microtask.
  await Promise.resolve();
}
