/** Counts, measures and publishes that this node wrote a command to its client's socket. */
import type { Deps } from '../deps.ts';
import { commandKeyText } from '../ids.ts';
import type { Command } from './command.ts';

/** Counts, measures and publishes the dispatch of a command. Call it once for each command that is written. */
export function noteDispatched({ metrics, backend: { bus }, events }: Deps, command: Command): void {
  const { userId, clientId, commandId, queuedAt, dispatchedAt } = command;
  metrics.count('commands_dispatched');
  if (queuedAt !== null && dispatchedAt !== null)
    metrics.observe('dispatch_seconds', dispatchedAt - queuedAt, undefined, command);
  events.emit('dispatched', command);
  if (!bus.hasSubscribers('command')) return;
  const key = { userId, clientId, commandId };
  bus.publish(`command:${commandKeyText(key)}`, { key, progress: null });
}
