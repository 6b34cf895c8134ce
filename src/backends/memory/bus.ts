import type { Bus, Topics } from '../../core/bus.ts';
import type { Log } from '../../core/log.ts';

type Listener = (event: never) => void;

/** core's Bus in one process: a listener hears an event before `publish` returns. */
export function createMemoryBus(log: Log): Bus {
  const topics = new Map<string, Set<Listener>>();
  return {
    publish(topic, event) {
      for (const listener of topics.get(topic) ?? []) {
        try {
          (listener as (event: Topics[typeof topic]) => void)(event);
        } catch (error) {
          log.error({ err: error, topic }, 'a listener failed');
        }
      }
    },
    subscribe(topic, listener) {
      const listeners = topics.get(topic) ?? new Set<Listener>();
      topics.set(topic, listeners);
      // A wrapper of its own, so that one function may listen twice.
      const own: Listener = (event) => listener(event);
      listeners.add(own);
      return () => {
        listeners.delete(own);
        if (listeners.size === 0 && topics.get(topic) === listeners) topics.delete(topic);
      };
    },
  };
}
