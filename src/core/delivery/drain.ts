import type { Deps } from '../deps.ts';
import { PAGE_MAX } from '../limits.ts';
import type { Position, Scan } from '../page.ts';
import type { DeliveryActs } from './acts.ts';
import type { Dispatcher } from './dispatcher.ts';
import type { PendingWait } from './waiters.ts';

/** Lets what is queued and in flight on this node's links finish for at most `withinMs`, then closes the links. */
export async function drainNode(parts: { deps: Deps; dispatcher: Dispatcher; withinMs: number }): Promise<void> {
  const { deps, dispatcher, withinMs } = parts;
  if (withinMs > 0) {
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = deps.clock.after(withinMs, resolve);
    await Promise.race([dispatcher.idle(), promise]);
    cancel();
  }
  for (const { link } of [...dispatcher.outlets()]) link.close('node_drained', null);
}

/**
 * This node goes away with callers still waiting on it. In shared mode their commands live on and can be awaited from another node; in direct
 * mode nothing of them will be left, so each ends with what is proven, and its callers are told.
 */
export async function endWaits(parts: { deps: Deps; acts: DeliveryActs; waiting: number }): Promise<void> {
  const { deps, acts, waiting } = parts;
  if (deps.backend.capabilities.shared || waiting === 0) return;
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
