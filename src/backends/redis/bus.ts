/**
 * Core's Bus over Redis: publishes events to the other nodes, and delivers their events to the listeners of this
 * process.
 *
 * In Redis it stores only the record that this node listens to hints of commands.
 */
import { randomUUID } from 'node:crypto';
import type { Bus, ConnectionEvent } from '../../core/backend.ts';
import type { Connection } from '../../core/connections/connection.ts';
import type { ClientKey } from '../../core/ids.ts';
import { createListeners, type Listeners } from '../../core/live.ts';
import { createWholeEvents, lightEvent } from './bus-actions.ts';
import { createCommandChannels, createWatch, type CommandTopic } from './bus-hints.ts';
import { commandOf, decodeMessage, encodeMessage, partitionOf, placeOfCommand, type Place } from './bus-messages.ts';
import type { RedisDeps } from './deps.ts';
import { partitionsOf } from './store-partitions.ts';
import { createProbe, Subscriber } from './subscriber.ts';

const CONNECTIONS = 'connections';
/** The topic of the message by which a sender tells that it could not publish earlier events on the channel. */
const LOST = 'lost';

/** The interval between two probes on every partition's channel, in milliseconds. */
const PROBE_MS = 5_000;
/** The longest wait of `confirmed`, in milliseconds. */
const CONFIRM_MS = 1_000;

/**
 * Core's Bus over Redis. Listeners on this node get an event before `publish` returns, as in memory. Listeners on other
 * nodes get the events of one user in the order in which they were published, through the channel of the user's
 * partition. Each command has a channel of its own, to which this process subscribes while it has a listener for the
 * command. When the subscription begins, and after each interruption, these listeners get a hint without progress, so
 * that they read the record again.
 */
export type RedisBus = Bus & {
  /**
   * Resolves once this node receives the events of other nodes. Waits while Redis is unavailable. Rejects when the bus
   * is closed.
   */
  ready(): Promise<void>;
  close(): void;
};

/** `read`: returns the current row of a client; null if there is none. */
type BusDeps = RedisDeps & { readonly read: (key: ClientKey) => Promise<Connection | null> };

export function createRedisBus(deps: BusDeps): RedisBus {
  const { store, log, system, connect } = deps;
  const partitions = partitionsOf(store);
  const origin = randomUUID();
  const send = createSender(deps, origin);
  const commands = createCommandChannels(store);
  const listeners = createListeners(log, (topic) => {
    const place = commands.changed(topic, listeners.has(topic));
    if (!place) return;
    const subscribe = (): void => subscriber.want(place.channel, listeners.has(topic));
    // First the node is recorded as a listener, and then it subscribes. Once the subscription is confirmed, listeners
    // read the record again and rely on hints for later changes; but hints are only published for recorded listeners.
    const noted = listeners.has(topic) ? watch.want(place.partition) : null;
    if (noted) void noted.then(subscribe);
    else subscribe();
  });
  const lookAgain = (topics: readonly CommandTopic[]): void => {
    for (const { topic, key } of topics) listeners.deliver(topic, { key, progress: null });
  };
  const watch = createWatch({ store, system, lapsed: (partition) => lookAgain(commands.inPartition(partition)) });
  const subscriber = new Subscriber({
    connect: () => connect('bus'),
    fixed: partitions.map((partition) => store.key(partition, 'bus')),
    log,
    loop: { atTurnEnd: (run) => void setImmediate(run) },
    onMessage: createReceiver({ ...deps, origin, listeners, own: (topic) => probe.received(topic) }),
    onSubscribed(channels) {
      const subscribed = commands.among(channels);
      for (const { confirmed } of subscribed) confirmed.resolve();
      lookAgain(subscribed);
    },
    onRestored: () => listeners.interrupted(),
  });
  const probe = createProbe({
    partitions: store.partitions,
    publish: (partition, topic) => send({ partition, kind: 'bus', hash: null }, topic, ''),
    detached() {
      log.warn({}, 'the subscriber of the bus receives nothing: it is replaced');
      subscriber.renew();
    },
  });
  const stop = system.every(PROBE_MS, () => {
    subscriber.retry();
    probe.turn();
    for (const partition of commands.partitions()) void watch.want(partition);
  });
  return {
    publish(topic, event) {
      listeners.deliver(topic, event);
      const command = commandOf(topic);
      // The hash in the name of a hint channel is computed only if some node listens.
      if (command && !store.watched(store.partitionOfUser(command.userId))) return;
      const place: Place = command
        ? placeOfCommand(store, command)
        : { partition: partitionOf(store, topic, event), kind: 'bus', hash: null };
      // Events are delivered at most once. A listener that misses a hint reads the record again by itself.
      const sent = topic === CONNECTIONS ? lightEvent(store, event as ConnectionEvent) : event;
      send(place, topic, JSON.stringify(sent)).catch(() => undefined);
    },
    hasSubscribers: () => commands.size > 0 || partitions.some(store.watched),
    subscribe: (topic, listener, interrupted) => listeners.add(topic, listener, interrupted),
    async confirmed(command) {
      // Each node always receives all other topics.
      if (command === null) return;
      const channel = commands.channelOf(command);
      if (subscriber.receives(channel)) return;
      const { promise: late, resolve } = Promise.withResolvers<void>();
      const cancel = system.after(CONFIRM_MS, resolve);
      await Promise.race([commands.confirmation(channel), late]);
      cancel();
    },
    ready: () => subscriber.ready(),
    close() {
      stop();
      subscriber.close();
    },
  };
}

type ReceiverOptions = BusDeps & {
  readonly origin: string;
  readonly listeners: Listeners;
  /** Called with the topic of a message that this process published. Its own listeners got the event at that time. */
  readonly own: (topic: string) => void;
};

/**
 * Returns a function that receives the messages of all channels. An event without a listener in this process is not
 * decoded.
 */
function createReceiver(options: ReceiverOptions): (text: string) => void {
  const { log, origin, listeners, own } = options;
  const deliver = (event: ConnectionEvent): void => listeners.deliver(CONNECTIONS, event);
  const takeConnection = createWholeEvents({ ...options, deliver });
  return (text) => {
    const message = decodeMessage(text);
    if (!message) return log.warn({ characters: text.length }, 'a message on the bus cannot be read');
    const { topic, json } = message;
    if (message.origin === origin) return own(topic);
    if (topic === LOST) return listeners.interrupted();
    if (!listeners.has(topic)) return;
    const event = parsed(json);
    if (event === undefined) log.warn({ topic, characters: json.length }, 'an event on the bus cannot be read');
    else if (topic === CONNECTIONS) takeConnection(event as ConnectionEvent);
    else listeners.deliver(topic, event);
  };
}

type Send = (place: Place, topic: string, json: string) => Promise<void>;

/** The most messages that one act publishes. */
const MOST = 32;

/**
 * Creates the function that publishes, by acts of the partition, so that an event never overtakes acts that were
 * requested earlier. The messages of one tick are sent together. Only the first of several consecutive failures is
 * logged. After a failure, the next messages to the partition begin with one that tells that events were lost.
 */
function createSender({ store, log, oneServer = false }: RedisDeps, origin: string): Send {
  let failing = false;
  const losing = new Set<number>();
  const gathered = new Map<number, { readonly args: (string | null)[]; readonly sent: PromiseWithResolvers<void> }>();
  const flush = (partition: number): void => {
    const batch = gathered.get(partition);
    gathered.delete(partition);
    if (!batch) return;
    const lost = losing.delete(partition) ? ['bus', null, encodeMessage({ origin, topic: LOST, json: 'null' })] : [];
    store.act(partition, 'bus-publish', [oneServer ? 1 : null, ...lost, ...batch.args]).then(
      () => {
        failing = false;
        batch.sent.resolve();
      },
      (error: unknown) => {
        if (!failing) log.warn({ err: error }, 'events do not reach other nodes');
        failing = true;
        losing.add(partition);
        batch.sent.reject(error);
      },
    );
  };
  return ({ partition, kind, hash }, topic, json) => {
    let batch = gathered.get(partition);
    if (!batch) {
      batch = { args: [], sent: Promise.withResolvers() };
      gathered.set(partition, batch);
      setImmediate(flush, partition);
    }
    batch.args.push(kind, hash, encodeMessage({ origin, topic, json }));
    if (batch.args.length === 3 * MOST) flush(partition);
    return batch.sent.promise;
  };
}

/** Parses JSON. Returns undefined if the text is not JSON. */
function parsed(json: string): unknown {
  try {
    return JSON.parse(json) as unknown;
  } catch {
    return undefined;
  }
}
