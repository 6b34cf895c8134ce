import type { Cancel } from '../../../core/clock.ts';
import type { Log } from '../../../core/log.ts';

export type Listener = (event: never) => void;

/** Who listens on this node, by topic. A listener that throws harms no other. */
export type Listeners = {
  has(topic: string): boolean;
  /** `topic` is one of core's, and `event` what core declares under it. */
  hear(topic: string, event: unknown): void;
  add(topic: string, listener: Listener): Cancel;
};

/** `changed` is told of a topic when its first listener comes and when its last one goes. */
export function createListeners(log: Log, changed: (topic: string) => void): Listeners {
  const topics = new Map<string, Set<Listener>>();
  return {
    has: (topic) => topics.has(topic),
    hear(topic, event) {
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
      // A wrapper of its own, so that one function may listen twice.
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
