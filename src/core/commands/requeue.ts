/** Queues the commands of a node's links again after its lease was lost and recovered, or their partition moved. */
import type { Deps } from '../deps.ts';
import type { Dispatcher } from './dispatcher.ts';
import type { LinkQueue } from './link-queue.ts';

/** How many links are processed at once. */
const AT_ONCE = 64;

interface Requeue {
  /** Whether commands of links are still to be queued again. */
  readonly isBehind: boolean;
  /** Notes the open links of these users, or all: the commands that wait for their clients are to be queued again. */
  add(links: RequeuedLinks): void;
  /**
   * Queues these commands again. Commands that are already queued stay so: repeating the act changes nothing. Rejects if
   * the store refused it for a link; the next call tries that link again. Until then nothing is posted to this node for
   * the link's client, so each beat calls it. Does nothing while an earlier call runs.
   */
  run(): Promise<void>;
}

type RequeuedLinks = {
  /** Whether other nodes may have marked the links as lost. Links that they have marked are closed. */
  readonly mayBeLost: boolean;
  readonly concerns?: (userId: string) => boolean;
};

type RequeueDeps = { readonly deps: Deps; readonly dispatcher: Dispatcher };

export function createRequeue({ deps, dispatcher }: RequeueDeps): Requeue {
  /** The links, and whether each may have been marked as lost. */
  const behind = new Map<LinkQueue, boolean>();
  let running = false;
  const isUp = (linkQueue: LinkQueue): boolean => dispatcher.has(linkQueue) && linkQueue.open && !linkQueue.quiet;
  const note = (linkQueue: LinkQueue, mayBeLost: boolean): void =>
    void behind.set(linkQueue, mayBeLost || behind.get(linkQueue) === true);
  const requeue = async (linkQueue: LinkQueue): Promise<void> => {
    const { client, binding, link } = linkQueue;
    // It may have been noted again since the pass began.
    const mayBeLost = behind.get(linkQueue) === true;
    behind.delete(linkQueue);
    if (!isUp(linkQueue)) return;
    try {
      await deps.backend.commands.rebind(client, binding, 'again');
      // If others have marked the link as lost, it closes now, so that its client connects again at once.
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
