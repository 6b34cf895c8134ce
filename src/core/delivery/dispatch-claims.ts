/**
 * Reserves room in the window of a link for commands that are not admitted yet, so that one act of the store can both
 * admit and dispatch a command.
 */
import type { CommandKey } from '../ids.ts';
import { mayDispatch, type Claim, type LinkQueue } from './link-queues.ts';

/** Reserves room in the link's window. Null: the link has no room, or other commands wait for it. */
export function takeClaim(linkQueue: LinkQueue, key: CommandKey, attempt: string): Claim | null {
  const { queue, window, binding } = linkQueue;
  if (queue.size > 0 || window.has(key.commandId) || !mayDispatch(linkQueue)) return null;
  const claim = { linkQueue, key, binding, attempt };
  window.add(key.commandId);
  (linkQueue.claims ??= new Map()).set(key.commandId, claim);
  linkQueue.pendingDispatches++;
  return claim;
}

/** Ends the claim; the command stays in the window. Returns false if the claim had ended before. */
export function endClaim({ linkQueue, key: { commandId } }: Claim): boolean {
  return linkQueue.claims?.delete(commandId) ?? false;
}
