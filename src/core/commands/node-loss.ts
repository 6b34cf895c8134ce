/** Handles the loss of a node's epoch: closes the node's links and registers its waits again. */
import type { Deps } from '../deps.ts';
import type { CommandKey } from '../ids.ts';
import type { CommandRecorder } from './command-recorder.ts';
import type { Dispatcher } from './dispatcher.ts';
import type { LinkQueue } from './link-queue.ts';

type NodeLossDeps = {
  readonly deps: Deps;
  readonly dispatcher: Dispatcher;
  readonly recorder: CommandRecorder;
  /** Registers the waits for commands of these users in the store again. */
  readonly reattach: (concerns: (userId: string) => boolean) => Promise<void>;
  /** The users whose links and commands are affected. Absent: all users. */
  readonly concerns?: ((userId: string) => boolean) | undefined;
};

/**
 * Handles the loss of this node's epoch. `fenced`: other nodes took over the clients and commands of this node.
 * `store_lost`: the store forgot something that it had confirmed, so nothing is proven about the commands of the
 * clients on this node's links, whatever their records say, and all of them are given up. In both cases the links
 * close, so that the clients connect again under a new binding, and the waits of callers are registered again. Never
 * rejects.
 */
export async function handleNodeLoss(parts: NodeLossDeps, cause: 'fenced' | 'store_lost'): Promise<void> {
  const { deps, dispatcher, concerns = () => true } = parts;
  deps.metrics.count('node_losses', cause);
  const linkQueues = [...dispatcher.linkQueues()].filter(({ client }) => concerns(client.userId));
  // Prevents writes to these links, even if the store still answers a dispatch.
  for (const linkQueue of linkQueues) linkQueue.open = false;
  if (cause === 'store_lost') await Promise.all(linkQueues.map((linkQueue) => giveUp(parts, linkQueue)));
  for (const { link } of linkQueues) link.close('node_lost', null);
  await parts.reattach(concerns);
}

async function giveUp(parts: NodeLossDeps, linkQueue: LinkQueue): Promise<void> {
  const { deps, recorder } = parts;
  const keys = await doubtful(parts, linkQueue);
  await Promise.all(
    [...keys.values()].map((key) =>
      recorder.settle(key, { kind: 'give_up', code: 'store_lost', instanceId: null }).catch((error: unknown) => {
        deps.log.warn({ err: error }, 'could not settle a command of a lost link; it ends at its deadline');
      }),
    ),
  );
}

/**
 * Returns the commands of the link's client that are live according to this node or according to the store. The two may
 * differ, because the store may have forgotten an end that it had confirmed to this node.
 */
async function doubtful(
  { deps, dispatcher }: NodeLossDeps,
  linkQueue: LinkQueue,
): Promise<ReadonlyMap<string, CommandKey>> {
  const { client, queue, window } = linkQueue;
  const keys = new Map<string, CommandKey>([...queue, ...window]);
  // Other commands of a leaving client belong to its next link, which may be on another node.
  if (dispatcher.find(client) !== linkQueue) return keys;
  try {
    for (const key of await deps.backend.commands.live(client)) keys.set(key.commandId, key);
  } catch (error) {
    deps.log.warn({ err: error }, 'could not read the unended commands of a lost link');
  }
  return keys;
}
