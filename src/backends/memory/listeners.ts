/** The listeners of this process, by topic. The buses of both backends deliver to them. */
import type { Cancel, Log } from '../../core/ports.ts';

type Listener = (event: never) => void;

export type Listeners = ReturnType<typeof createListeners>;

/**
 * Creates an empty table. `changed`: called with a topic when its first listener is added, and when its last one is
 * removed.
 */
export function createListeners(log: Log, changed: (topic: string) => void) {
  const topics = new Map<string, Set<Listener>>();
  const toInterrupt = new Map<Listener, () => void>();
  return {
    has: (topic: string) => topics.has(topic),
    /**
     * Calls the listeners of the topic. `event` is of the type that core declares for the topic. If a listener throws,
     * the others still get the event.
     */
    deliver(topic: string, event: unknown): void {
      for (const listener of topics.get(topic) ?? []) {
        try {
          (listener as (event: unknown) => void)(event);
        } catch (error) {
          log.error({ err: error, topic }, 'a listener failed');
        }
      }
    },
    /** Tells all listeners that events of other nodes may have been lost. */
    interrupted(): void {
      for (const tell of toInterrupt.values()) tell();
    },
    /** `interrupted`: called by `interrupted`, until the listener is removed. */
    add(topic: string, listener: Listener, interrupted?: () => void): Cancel {
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
