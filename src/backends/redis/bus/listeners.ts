/** The listeners of this process, by topic. Knows nothing of Redis. */
import type { Cancel } from '../../../core/clock.ts';
import type { Log } from '../../../core/log.ts';

export type Listener = (event: never) => void;

/** The listeners of this node, by topic. If one throws, the others still get the event. */
export type Listeners = {
  has(topic: string): boolean;
  /** Calls the listeners of the topic. `event` is of the type that core declares for the topic. */
  deliver(topic: string, event: unknown): void;
  /** `interrupted`: called by `interrupted`, until the listener is removed. */
  add(topic: string, listener: Listener, interrupted?: () => void): Cancel;
  /** Tells all listeners that events of other nodes may have been lost. */
  interrupted(): void;
};

/**
 * Creates an empty table. `changed`: called with a topic when its first listener is added, and when its last one is
 * removed.
 */
export function createListeners(log: Log, changed: (topic: string) => void): Listeners {
  const topics = new Map<string, Set<Listener>>();
  const toInterrupt = new Map<Listener, () => void>();
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
    interrupted() {
      for (const tell of toInterrupt.values()) tell();
    },
    add(topic, listener, interrupted) {
      const known = topics.get(topic);
      const listeners = known ?? new Set<Listener>();
      // A new function for each call, so that one function may listen twice.
      const own: Listener = (event) => listener(event);
      listeners.add(own);
      topics.set(topic, listeners);
      if (interrupted) toInterrupt.set(own, interrupted);
      if (!known) changed(topic);
      return () => {
        toInterrupt.delete(own);
        if (!listeners.delete(own) || listeners.size > 0) return;
        topics.delete(topic);
        changed(topic);
      };
    },
  };
}
