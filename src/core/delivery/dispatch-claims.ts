/** Places in the window of a link that are taken for commands before they are admitted, so that one act does both. */
import type { CommandKey } from '../ids.ts';
import { mayDispatch, type Claim, type LinkQueue } from './link-queues.ts';

/** Takes a place. Null: the link has no room, or other commands wait for it. */
export function takeClaim(linkQueue: LinkQueue, key: CommandKey, attempt: string): Claim | null {
  const { queue, window, binding } = linkQueue;
  if (queue.size > 0 || window.has(key.commandId) || !mayDispatch(linkQueue)) return null;
  const claim = { linkQueue, key, binding, attempt };
  window.add(key.commandId);
  (linkQueue.claims ??= new Map()).set(key.commandId, claim);
  linkQueue.pendingDispatches++;
  return claim;
}

/** Ends the claim, which keeps its place in the window. False: it was ended before. */
export function endClaim({ linkQueue, key: { commandId } }: Claim): boolean {
  return linkQueue.claims?.delete(commandId) ?? false;
}
