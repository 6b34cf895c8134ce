/** The listeners of this process, by topic. Knows nothing of Redis. */
import type { Cancel } from '../../../core/clock.ts';
import type { Log } from '../../../core/log.ts';

export type Listener = (event: never) => void;

/** The listeners of this node, by topic. If one throws, the others still get the event. */
export type Listeners = {
  has(topic: string): boolean;
  /** Calls the listeners of the topic. `event` is of the type that core declares for the topic. */
  deliver(topic: string, event: unknown): void;
  add(topic: string, listener: Listener): Cancel;
};

/**
 * Creates an empty table. `changed`: called with a topic when its first listener is added, and when its last one is
 * removed.
 */
export function createListeners(log: Log, changed: (topic: string) => void): Listeners {
  const topics = new Map<string, Set<Listener>>();
  return {
    has: (topic) => topics.has(topic),
    deliver(topic, event) {
      for (const listener of topics.get(topic) ?? []) {
        try {
          (listener as (event: unknown) => void)(event);
        } catch (error) {
          log.error({ err: error, topic }, 'a listener failed');
        }
      }
    },
    add(topic, listener) {
      const known = topics.get(topic);
      const listeners = known ?? new Set<Listener>();
      // A new function for each call, so that one function may listen twice.
      const own: Listener = (event) => listener(event);
      listeners.add(own);
      topics.set(topic, listeners);
      if (!known) changed(topic);
      return () => {
        if (!listeners.delete(own) || listeners.size > 0) return;
        topics.delete(topic);
        changed(topic);
      };
    },
  };
}
