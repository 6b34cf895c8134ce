/**
 * Publishes events to subscribers within one process (core's Bus). It stores no events, so only present subscribers
 * receive them.
 */
import type { Bus, Topics } from '../../core/bus.ts';
import type { Log } from '../../core/log.ts';

type Listener = (event: never) => void;

/** Creates core's Bus for one process: listeners are called before `publish` returns. */
export function createMemoryBus(log: Log): Bus {
  const topics = new Map<string, Set<Listener>>();
  let listenersOfCommands = 0;
  return {
    hasSubscribers: () => listenersOfCommands > 0,
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
      // A new wrapper for each subscription allows one function to subscribe twice.
      const registered: Listener = (event) => listener(event);
      listeners.add(registered);
      const ofCommands = topic.startsWith('command:') ? 1 : 0;
      listenersOfCommands += ofCommands;
      return () => {
        if (listeners.delete(registered)) listenersOfCommands -= ofCommands;
        if (listeners.size === 0 && topics.get(topic) === listeners) topics.delete(topic);
      };
    },
  };
}
