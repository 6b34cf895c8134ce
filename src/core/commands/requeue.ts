/**
 * Queues the commands of a node's links again, after the node's lease was lost and recovered, or after another process
 * took over their partition.
 */
import type { Deps } from '../deps.ts';
import type { Dispatcher } from './dispatcher.ts';
import type { LinkQueue } from './link-queue.ts';

/** How many links are processed at once. */
const AT_ONCE = 64;

interface Requeue {
  /** Whether there are links whose commands still have to be queued again. */
  readonly isBehind: boolean;
  /** Adds the open links of these users, or of all users, whose waiting commands have to be queued again. */
  add(links: RequeuedLinks): void;
  /**
   * Queues the commands of the added links again. A command that is already queued stays queued, so repeating this is
   * harmless. Rejects if the store refuses a link; the next call tries that link again, and until then its client gets
   * no commands. For this reason each heartbeat calls `run`. Does nothing while an earlier call still runs.
   */
  run(): Promise<void>;
}

type RequeuedLinks = {
  /** Whether other nodes may have marked the links as lost. If they have, the links are closed. */
  readonly mayBeLost: boolean;
  readonly concerns?: (userId: string) => boolean;
};

type RequeueDeps = { readonly deps: Deps; readonly dispatcher: Dispatcher };

export function createRequeue({ deps, dispatcher }: RequeueDeps): Requeue {
  /** The links to process, and whether other nodes may have marked each of them as lost. */
  const behind = new Map<LinkQueue, boolean>();
  let running = false;
  const isUp = (linkQueue: LinkQueue): boolean => dispatcher.has(linkQueue) && linkQueue.open && !linkQueue.quiet;
  const note = (linkQueue: LinkQueue, mayBeLost: boolean): void =>
    void behind.set(linkQueue, mayBeLost || behind.get(linkQueue) === true);
  const requeue = async (linkQueue: LinkQueue): Promise<void> => {
    const { client, binding, link } = linkQueue;
    // Read now, because `add` may have changed it since the pass began.
    const mayBeLost = behind.get(linkQueue) === true;
    behind.delete(linkQueue);
    if (!isUp(linkQueue)) return;
    try {
      await deps.backend.commands.rebind(client, binding, 'again');
      // If another node has marked the link as lost, it is closed now, so that its client connects again at once.
      if (mayBeLost && (await deps.backend.connections.touch(client, binding.epoch)) === null)
        link.close('node_lost', null);
    } catch (error) {
      note(linkQueue, mayBeLost);
      throw error;
    }
  };
  return {
    get isBehind() {
      return behind.size > 0;
    },
    add({ mayBeLost, concerns = () => true }) {
      for (const linkQueue of dispatcher.linkQueues())
        if (isUp(linkQueue) && concerns(linkQueue.client.userId)) note(linkQueue, mayBeLost);
    },
    async run() {
      if (running) return;
      running = true;
      try {
        const linkQueues = [...behind.keys()];
        for (let at = 0; at < linkQueues.length; at += AT_ONCE) {
          const done = await Promise.allSettled(linkQueues.slice(at, at + AT_ONCE).map(requeue));
          const failed = done.find((one) => one.status === 'rejected');
          if (failed) throw failed.reason;
        }
      } finally {
        running = false;
      }
    },
  };
}
