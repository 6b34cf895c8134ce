/** Queues the commands of this node's links again after the node's lease was lost and recovered. */
import type { Deps } from '../deps.ts';
import type { Dispatcher } from './dispatcher.ts';

/** How many links are processed at once. */
const AT_ONCE = 64;

/**
 * Queues again the commands that wait for the clients of this node's links. Commands that are already queued stay so:
 * repeating the act changes nothing.
 */
export async function requeueAfterLeaseRecovery({
  deps,
  dispatcher,
}: {
  deps: Deps;
  dispatcher: Dispatcher;
}): Promise<void> {
  const linkQueues = [...dispatcher.linkQueues()].filter(({ open, quiet }) => open && !quiet);
  for (let at = 0; at < linkQueues.length; at += AT_ONCE) {
    const some = linkQueues.slice(at, at + AT_ONCE);
    await Promise.all(some.map(({ client, binding }) => deps.backend.commands.rebind(client, binding, 'again')));
  }
}
