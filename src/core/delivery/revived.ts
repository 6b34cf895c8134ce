import type { Deps } from '../deps.ts';
import type { Dispatcher } from './dispatcher.ts';

/** Links that are asked for at once. */
const AT_ONCE = 64;

/** Queues what waits for the clients of this node's links. What is queued already stays so: asking again changes nothing. */
export async function queueAnew({ deps, dispatcher }: { deps: Deps; dispatcher: Dispatcher }): Promise<void> {
  const outlets = [...dispatcher.outlets()].filter(({ open, quiet }) => open && !quiet);
  for (let at = 0; at < outlets.length; at += AT_ONCE) {
    const some = outlets.slice(at, at + AT_ONCE);
    await Promise.all(some.map(({ client, binding }) => deps.backend.commands.rebind(client, binding, 'again')));
  }
}
