/**
 * Publishes events to subscribers within one process (core's Bus). It stores no events, so only present subscribers
 * receive them.
 */
import type { Bus } from '../../core/backend.ts';
import { createListeners } from '../../core/live.ts';
import type { Log } from '../../core/ports.ts';

/** Creates core's Bus for one process: listeners are called before `publish` returns. */
export function createMemoryBus(log: Log): Bus {
  // Events of commands are frequent, so `hasSubscribers` tells core whether to create any.
  const commands = new Set<string>();
  const listeners = createListeners(log, (topic) => {
    if (!topic.startsWith('command:')) return;
    if (listeners.has(topic)) commands.add(topic);
    else commands.delete(topic);
  });
  return {
    hasSubscribers: () => commands.size > 0,
    publish: listeners.deliver,
    subscribe: (topic, listener) => listeners.add(topic, listener),
    // A subscription of this process holds at once.
    confirmed() {},
  };
}
