/** Writes dispatched commands to the link of their client. */
import type { Deps } from '../deps.ts';
import type { CommandKey } from '../ids.ts';
import { BACK_PRESSURE_BYTES } from '../limits.ts';
import type { DispatchResult } from './commands.ts';
import { noteDispatched } from './dispatched.ts';
import { wakeWaits, type Held, type LinkQueue } from './link-queues.ts';
import { beginDispatchSpan } from './link-spans.ts';

/** Writes the command, or removes it from the window of its link if it must not be written. */
export function writeDispatch(deps: Deps, linkQueue: LinkQueue, key: CommandKey, result: DispatchResult): void {
  if (result.kind === 'skip') {
    linkQueue.window.delete(key.commandId);
    return wakeWaits(linkQueue);
  }
  const { command, params, remainingMs } = result;
  noteDispatched(deps, command);
  const trace = beginDispatchSpan(deps, linkQueue, command);
  linkQueue.link.sendCommand(command, params, remainingMs, trace);
  // The cancel was requested after the store recorded the dispatch, and before its answer arrived. The client did not
  // know the command then, so the cancel is sent again.
  if (command.cancelRequestedAt !== null) linkQueue.link.sendCancel(command.commandId, null);
}

/** Writes the commands that were held because the socket had back-pressure, until it has back-pressure again. */
export function writeHeld(deps: Deps, linkQueue: LinkQueue, held: Map<string, Held>): void {
  const { link } = linkQueue;
  for (const [commandId, { key, result, at, cancel }] of held) {
    if (link.backlog() >= BACK_PRESSURE_BYTES) return;
    held.delete(commandId);
    const waited = Math.max(0, deps.clock.now() - at);
    writeDispatch(deps, linkQueue, key, { ...result, remainingMs: result.remainingMs - waited });
    if (cancel) link.sendCancel(commandId, cancel.reason);
  }
}
