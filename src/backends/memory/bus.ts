/**
 * Publishes events to subscribers within one process (core's Bus). It stores no events, so only present subscribers
 * receive them.
 */
import type { Bus } from '../../core/backend.ts';
import { createListeners } from '../../core/live.ts';
import type { Log } from '../../core/ports.ts';

/** Creates core's Bus for one process: listeners are called before `publish` returns. */
export function createMemoryBus(log: Log): Bus {
  // The commands that have listeners. Events of commands are frequent, so core checks this set before it creates an
  // event.
  const commands = new Set<string>();
  const listeners = createListeners(log, (topic) => {
    // Called when a topic gets its first listener or loses its last one. Other topics are not counted.
    if (!topic.startsWith('command:')) return;
    if (listeners.has(topic)) commands.add(topic);
    else commands.delete(topic);
  });
  return {
    hasSubscribers: () => commands.size > 0,
    publish: listeners.deliver,
    subscribe: (topic, listener) => listeners.add(topic, listener),
    // All events come from this process, and `subscribe` adds its listener before it returns, so there is nothing to
    // wait for.
    confirmed() {},
  };
}
