import { randomUUID } from 'node:crypto';
import type { Bus } from '../../core/bus.ts';
import { commandKeyText } from '../../core/ids.ts';
import type { RedisParts } from './parts.ts';
import { createListeners } from './bus-listeners.ts';
import { createProbe } from './bus-probe.ts';
import { createSubscriber } from './bus-subscriber.ts';
import { commandOf, decodeMessage, encodeMessage, placeOf, type Place } from './bus-topics.ts';

/** How often a message of our own goes through every channel. */
const PROBE_MS = 5_000;

/**
 * core's Bus over Redis. Listeners of this node hear an event before `publish` returns, as in memory; those of the others hear it in the
 * order published, once it went through the channel of its user's partition. A command has a channel of its own, which is listened to as
 * long as somebody here listens: when that begins, and after each interruption, its listeners get a hint without progress ('look again').
 */
export type RedisBus = Bus & {
  /** Resolves when events of other nodes are heard, now or once Redis is back; rejects when the bus is closed. */
  ready(): Promise<void>;
  close(): void;
};

export function createRedisBus(parts: RedisParts): RedisBus {
  const { store, log, system, connect } = parts;
  const origin = randomUUID();
  const send = createSender(parts, origin);
  /** By channel, the topic of a command that somebody listens to. */
  const commands = new Map<string, string>();
  const channelOf = ({ partition, kind, hash }: Place): string => store.key(partition, kind, hash ?? undefined);
  const listeners = createListeners(log, (topic) => {
    if (!commandOf(topic)) return;
    const channel = channelOf(placeOf(store, topic, null));
    if (listeners.has(topic)) commands.set(channel, topic);
    else commands.delete(channel);
    subscriber.want(channel, listeners.has(topic));
  });
  const subscriber = createSubscriber({
    connect: () => connect('bus'),
    fixed: Array.from({ length: store.partitions }, (_, partition) => store.key(partition, 'bus')),
    log,
    onMessage(text) {
      const message = decodeMessage(text);
      if (!message) log.warn({ characters: text.length }, 'a message on the bus cannot be read');
      else if (message.origin === origin) probe.heard(message.topic);
      else if (listeners.has(message.topic)) hear(message.topic, message.json);
    },
    onHeld(channels) {
      for (const channel of channels) {
        const topic = commands.get(channel);
        const key = topic === undefined ? null : commandOf(topic);
        if (key) listeners.hear(`command:${commandKeyText(key)}`, { key, progress: null });
      }
    },
  });
  const hear = (topic: string, json: string): void => {
    const event = parsed(json);
    if (event === undefined) log.warn({ topic, characters: json.length }, 'an event on the bus cannot be read');
    else listeners.hear(topic, event);
  };
  const probe = createProbe({
    partitions: store.partitions,
    publish: (partition, topic) => send({ partition, kind: 'bus', hash: null }, topic, ''),
    detached() {
      log.warn({}, 'the subscriber of the bus hears nothing: it is replaced');
      subscriber.renew();
    },
  });
  const stop = system.every(PROBE_MS, () => {
    subscriber.retry();
    probe.turn();
  });
  return {
    publish(topic, event) {
      listeners.hear(topic, event);
      // At most once: whoever could not be told looks again by itself.
      send(placeOf(store, topic, event), topic, JSON.stringify(event)).catch(() => undefined);
    },
    subscribe: (topic, listener) => listeners.add(topic, listener),
    ready: () => subscriber.ready(),
    close() {
      stop();
      subscriber.close();
    },
  };
}

type Send = (place: Place, topic: string, json: string) => Promise<void>;

/** Publishes through the partition's own acts, and so after what was done there before. Says once that it cannot, until it can again. */
function createSender({ store, log }: RedisParts, origin: string): Send {
  let failing = false;
  return async ({ partition, kind, hash }, topic, json) => {
    try {
      await store.act(partition, 'bus-publish', [kind, hash, encodeMessage({ origin, topic, json })]);
      failing = false;
    } catch (error) {
      if (!failing) log.warn({ err: error }, 'events do not reach other nodes');
      failing = true;
      throw error;
    }
  };
}

/** Undefined where the text is not JSON. */
function parsed(json: string): unknown {
  try {
    return JSON.parse(json) as unknown;
  } catch {
    return undefined;
  }
}
