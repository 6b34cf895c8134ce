/**
 * Core's Bus over Redis: publishes events to the other nodes and delivers theirs to the listeners of this process. It
 * stores nothing but a note that this node listens to hints of commands.
 */
import { randomUUID } from 'node:crypto';
import type { Bus, ConnectionEvent } from '../../core/backend.ts';
import type { CommandEvent } from '../../core/commands/command.ts';
import type { Connection } from '../../core/connections/connection.ts';
import type { ClientKey, CommandKey } from '../../core/ids.ts';
import { createListeners, type Listeners } from '../../core/live.ts';
import { advertisedChars, revisionOf } from './connections-rows.ts';
import type { RedisParts } from './parts.ts';
import { partitionOfId } from './sites.ts';
import { partitionsOf, type Store } from './store.ts';
import { createProbe, Subscriber } from './subscriber.ts';

const CONNECTIONS = 'connections';
/** The topic of the message with which a sender says that it could not publish earlier events of the channel. */
const LOST = 'lost';

/** The time between two probes on every partition's channel, milliseconds. */
const PROBE_MS = 5_000;
/** How long `confirmed` waits at most, milliseconds. */
const CONFIRM_MS = 1_000;

/**
 * Core's Bus over Redis. Listeners of this node get an event before `publish` returns, as in memory. Listeners of other
 * nodes get the events of a user in the order published, through the channel of the user's partition. Each command has
 * a channel of its own. This process subscribes to it while it has a listener for the command. After it has subscribed,
 * and after each interruption, these listeners get a hint without progress, which asks them to read the record again.
 */
export type RedisBus = Bus & {
  /**
   * Resolves once this node receives the events of other nodes. Waits while Redis is unavailable. Rejects when the bus
   * is closed.
   */
  ready(): Promise<void>;
  close(): void;
};

/** `read`: reads the current row of a client; null if there is none. */
type BusParts = RedisParts & { readonly read: (key: ClientKey) => Promise<Connection | null> };

export function createRedisBus(parts: BusParts): RedisBus {
  const { store, log, system, connect } = parts;
  const partitions = partitionsOf(store);
  const origin = randomUUID();
  const send = createSender(parts, origin);
  const commands = createCommandChannels(store);
  const listeners = createListeners(log, (topic) => {
    const place = commands.changed(topic, listeners.has(topic));
    if (!place) return;
    const subscribe = (): void => subscriber.want(place.channel, listeners.has(topic));
    // Once the subscription is confirmed, the listeners read the record again. They learn of later changes only by
    // hints, and hints are published only after `watch` has noted this node. So the note comes first.
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
    onMessage: createReceiver({ ...parts, origin, listeners, own: (topic) => probe.received(topic) }),
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
      // The hash in the name of a hint's channel is computed only if some node listens.
      if (command && !store.watched(store.partitionOfUser(command.userId))) return;
      const place: Place = command
        ? placeOfCommand(store, command)
        : { partition: partitionOf(store, topic, event), kind: 'bus', hash: null };
      // Delivered at most once: a listener that misses a hint reads the record again by itself.
      const sent = topic === CONNECTIONS ? lightEvent(store, event as ConnectionEvent) : event;
      send(place, topic, JSON.stringify(sent)).catch(() => undefined);
    },
    hasSubscribers: () => commands.size > 0 || partitions.some(store.watched),
    subscribe: (topic, listener, interrupted) => listeners.add(topic, listener, interrupted),
    async confirmed(command) {
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

type ReceiverOptions = BusParts & {
  readonly origin: string;
  readonly listeners: Listeners;
  /** Called with the topic of a message that this process published. The listeners here got its event at that time. */
  readonly own: (topic: string) => void;
};

/** Receives the messages of the channels. An event without a listener in this process is not decoded. */
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
 * Publishes by acts of the partition, so an event never overtakes the acts that were requested before it. The messages
 * of one tick are sent together. After a failure is logged, the next one is logged only after a success. After a
 * failure, the next messages to the partition begin with one that says that events were lost.
 */
function createSender({ store, log, oneServer = false }: RedisParts, origin: string): Send {
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

// Remembers the Redis channels of the commands that have a listener on this node. Subscribes to none itself.

/** The topic of a command that has a listener on this node. */
type CommandTopic = {
  readonly topic: string;
  readonly key: CommandKey;
  readonly partition: number;
  /** Resolves when Redis has confirmed the subscription to the command's channel. */
  readonly confirmed: PromiseWithResolvers<void>;
};

function createCommandChannels(store: Store) {
  /** The topics by their channels. */
  const topics = new Map<string, CommandTopic>();
  const channelOf = (key: CommandKey): string => {
    const { partition, kind, hash } = placeOfCommand(store, key);
    return store.key(partition, kind, hash);
  };
  return {
    /** Records whether the topic has listeners. Returns the command's channel; null if the topic is not a command's. */
    changed(topic: string, wanted: boolean) {
      const key = commandOf(topic);
      if (!key) return null;
      const partition = store.partitionOfUser(key.userId);
      const channel = channelOf(key);
      if (wanted) topics.set(channel, { topic, key, partition, confirmed: Promise.withResolvers() });
      else topics.delete(channel);
      return { channel, partition };
    },
    channelOf,
    /** Resolves when Redis confirms the next subscription to this channel. */
    confirmation: (channel: string) => topics.get(channel)?.confirmed.promise,
    /** Returns the topics whose events these channels carry. */
    among: (channels: readonly string[]) => channels.flatMap((channel) => topics.get(channel) ?? []),
    inPartition: (partition: number) => [...topics.values()].filter((one) => one.partition === partition),
    /** Returns the partitions of all commands that have a listener on this node. */
    partitions: () => new Set([...topics.values()].map(({ partition }) => partition)),
    get size() {
      return topics.size;
    },
  };
}

// Keeps large lists of actions out of the messages of the bus. Every node receives every event of a connection, and
// most nodes have no listener for it.

/** The most characters of JSON that the actions of a connection may have in a message. */
const CARRIED = 16 * 1024;

/** An event as a message has it. If `revision` is given, the list of actions was left out, and this is its revision. */
type SentEvent = ConnectionEvent & { readonly revision?: string };

/** Returns the event to send: with an empty list of actions if the list is large. */
function lightEvent(store: Store, event: ConnectionEvent): SentEvent {
  const { actions } = event.connection;
  if (advertisedChars(store, actions) <= CARRIED) return event;
  return { ...event, connection: { ...event.connection, actions: [] }, revision: revisionOf(store, actions) };
}

type WholeEventsOptions = {
  readonly store: Store;
  /** Reads the current row of a client; null if there is none. */
  readonly read: (key: ClientKey) => Promise<Connection | null>;
  readonly deliver: (event: ConnectionEvent) => void;
};

/**
 * Returns a function that takes events as they arrive, and delivers them in that order with their actions, which it
 * reads if they were left out. An event is dropped if its actions cannot be read: the client is gone or has advertised
 * other actions since, and then a later event follows; or Redis is unavailable.
 */
function createWholeEvents({ store, read, deliver }: WholeEventsOptions): (event: SentEvent) => void {
  let last: Promise<void> | null = null;
  const complete = async ({ revision, ...event }: SentEvent): Promise<void> => {
    if (revision === undefined) return deliver(event);
    const row = await read(event.connection);
    if (row === null || revisionOf(store, row.actions) !== revision) return;
    deliver({ ...event, connection: { ...event.connection, actions: row.actions } });
  };
  return (event) => {
    if (last === null && event.revision === undefined) return deliver(event);
    const done = (last ?? Promise.resolve()).then(() => complete(event)).catch(() => {});
    last = done;
    void done.then(() => {
      if (last === done) last = null;
    });
  };
}

// Chooses the channel for the events of a topic, and encodes and decodes messages. Sends nothing.

const COMMAND = 'command:';
const EVENTS = 'events:';
const SITE = 'site:';
const SESSION = 'session:';
const TICKET = 'ticket:';

/**
 * The channel that a topic's events are published on: the channel of a partition (`bus`), or the channel of one command
 * (`hint`, with the command's hash).
 */
type Place = { readonly partition: number; readonly kind: 'bus' | 'hint'; readonly hash: string | null };

type CommandPlace = Place & { readonly hash: string };

function placeOfCommand(store: Store, { userId, clientId, commandId }: CommandKey): CommandPlace {
  return { partition: store.partitionOfUser(userId), kind: 'hint', hash: store.hash(userId, clientId, commandId) };
}

/** Reads the command's key from a topic. Returns null if the topic is not a command's. */
function commandOf(topic: string): CommandKey | null {
  if (!topic.startsWith(COMMAND)) return null;
  const [userId = '', clientId = '', commandId = ''] = topic.slice(COMMAND.length).split('/');
  return { userId, clientId, commandId };
}

/**
 * Chooses the partition on whose channel an event is published. The events of one user share a channel, so they arrive
 * in order. If an id names no partition, any channel can be used, because every node subscribes to all of them.
 */
function partitionOf(store: Store, topic: string, event: unknown): number {
  if (topic.startsWith(EVENTS)) return store.partitionOfUser((event as CommandEvent).command.userId);
  if (topic === 'listening') return 0;
  if (topic === 'connections') return store.partitionOfUser((event as ConnectionEvent).connection.userId);
  if (topic.startsWith(SITE)) return store.partitionOfUser(topic.slice(SITE.length).split('/')[0] ?? '');
  const id = topic.startsWith(TICKET) ? topic.slice(TICKET.length) : topic.slice(SESSION.length);
  return partitionOfId(id, store.partitions) ?? 0;
}

/**
 * A message on a channel: its sender, a space, the topic, a line break, and the event as JSON. A topic contains no line
 * break.
 */
type Message = { readonly origin: string; readonly topic: string; readonly json: string };

function encodeMessage({ origin, topic, json }: Message): string {
  return `${origin} ${topic}\n${json}`;
}

/** Decodes a message, except for its JSON. Returns null if the text is not a message of callboard. */
function decodeMessage(text: string): Message | null {
  const space = text.indexOf(' ');
  const line = text.indexOf('\n');
  if (space < 1 || line < space) return null;
  return { origin: text.slice(0, space), topic: text.slice(space + 1, line), json: text.slice(line + 1) };
}

// Notes in Redis that this node listens to hints of commands. Hints that no node listens to are not published.

/** How long a note lasts in Redis, milliseconds. */
const WATCH_MS = 15_000;
/** The age at which a note is renewed, milliseconds. */
const RENEW_MS = 4_000;

type WatchOptions = Pick<RedisParts, 'store' | 'system'> & {
  /**
   * Called when the note of this partition had ended before it was renewed. Hints of the partition's commands may not
   * have been published in between.
   */
  readonly lapsed: (partition: number) => void;
};

/** The notes of this node, one for each partition. */
function createWatch({ store, system, lapsed }: WatchOptions) {
  const noted = new Map<number, number>();
  const asking = new Map<number, Promise<void>>();
  const note = async (partition: number, at: number): Promise<void> => {
    try {
      await store.act(partition, 'bus-watch', [WATCH_MS]);
      const before = noted.get(partition) ?? at;
      noted.set(partition, at);
      if (at - before >= WATCH_MS) lapsed(partition);
    } catch {
      // Redis is unavailable. The next call tries again.
    } finally {
      asking.delete(partition);
    }
  };
  return {
    /**
     * Writes or renews the note of this partition. Returns null if the note is new enough. Otherwise returns a promise
     * that resolves when the note is written or the attempt has failed. The promise never rejects.
     */
    want(partition: number): Promise<void> | null {
      const at = system.now();
      if (at - (noted.get(partition) ?? -Infinity) < RENEW_MS) return null;
      const asked = asking.get(partition) ?? note(partition, at);
      asking.set(partition, asked);
      return asked;
    },
  };
}
