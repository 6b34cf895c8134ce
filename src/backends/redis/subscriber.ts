/**
 * The connection that subscribes to channels of Redis, and the probe that notices when it receives nothing. It renews
 * the subscriptions after interruptions, and does not read messages.
 */
import type { EventLoop, Log } from '../../core/ports.ts';
import { unavailable, type Client } from './client.ts';

/** The most channels in one SUBSCRIBE command. */
const TOGETHER = 500;

type SubscriberOptions = {
  readonly connect: () => Client;
  /** Channels that are always subscribed to. */
  readonly fixed: readonly string[];
  /** Whether the channels are sharded ones of a cluster, all of one master. Then there are only the fixed ones. */
  readonly isSharded?: boolean;
  readonly onMessage: (text: string) => void;
  /**
   * Called with channels whose subscription Redis has confirmed, also after each interruption. Messages that were
   * published before may have been missed.
   */
  readonly onSubscribed: (channels: readonly string[]) => void;
  /**
   * Called when the fixed channels are all confirmed again after an interruption. Messages that were published in
   * between may have been missed.
   */
  readonly onRestored: () => void;
  readonly log: Log;
  readonly loop: Pick<EventLoop, 'atTurnEnd'>;
};

/**
 * A connection to Redis that only receives messages, with the channels that it subscribes to. It connects at once, and
 * keeps trying while Redis is unavailable.
 */
export class Subscriber {
  readonly #options: SubscriberOptions;
  readonly #wanted: Set<string>;
  /** The channels for which the connection has sent SUBSCRIBE, whether or not Redis has confirmed it. */
  #held = new Set<string>();
  /** The channels whose subscription may have to change: those that may be in only one of `#wanted` and `#held`. */
  readonly #changed = new Set<string>();
  #unconfirmed: Set<string>;
  /** The channels whose messages arrive: Redis has confirmed the subscription, and it lasts. */
  readonly #confirmed = new Set<string>();
  #ready = pending();
  #client: Client;
  #connected = false;
  /** Whether the fixed channels were confirmed once and then interrupted. */
  #missing = false;
  #scheduled = false;
  #closed = false;

  constructor(options: SubscriberOptions) {
    this.#options = options;
    this.#wanted = new Set(options.fixed);
    this.#unconfirmed = new Set(options.fixed);
    this.#client = this.#begin();
  }

  /** Subscribes to the channel, or unsubscribes from it. All changes of one tick are sent together. */
  want(channel: string, wanted: boolean): void {
    if (wanted) this.#wanted.add(channel);
    else this.#wanted.delete(channel);
    this.#changed.add(channel);
    this.#schedule();
  }

  /** Whether the messages of the channel arrive here, as far as is known. */
  receives(channel: string): boolean {
    return this.#confirmed.has(channel);
  }

  /** Resolves once Redis has confirmed the subscriptions to the fixed channels. Rejects when this is closed. */
  ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** Repeats the changes that Redis refused. */
  retry(): void {
    this.#schedule();
  }

  /** Replaces the connection by a new one. */
  renew(): void {
    if (this.#closed) return;
    const old = this.#client;
    this.#interrupted();
    this.#held = new Set();
    this.#client = this.#begin();
    old.disconnect();
  }

  close(): void {
    this.#closed = true;
    this.#connected = false;
    this.#ready.reject(unavailable(new Error('the subscriber is closed')));
    this.#client.disconnect();
  }

  #begin(): Client {
    const client = this.#options.connect();
    const asCurrent = (run: () => void) => () => {
      if (client === this.#client && !this.#closed) run();
    };
    client.on(
      'ready',
      asCurrent(() => this.#resume()),
    );
    client.on(
      'close',
      asCurrent(() => this.#interrupted()),
    );
    const take = (_channel: string, text: string): void => asCurrent(() => this.#take(text))();
    client.on(this.#options.isSharded ? 'smessage' : 'message', take);
    // ioredis tries again by itself.
    client.connect().catch(() => undefined);
    return client;
  }

  /**
   * Passes on a message. Catches errors: any user of Redis may publish, and ioredis would let an error end the process.
   */
  #take(text: string): void {
    try {
      this.#options.onMessage(text);
    } catch (error) {
      this.#options.log.warn({ err: error, characters: text.length }, 'a message on the bus cannot be used');
    }
  }

  #interrupted(): void {
    if (this.#unconfirmed.size === 0) {
      this.#ready = pending();
      this.#missing = true;
    }
    this.#unconfirmed = new Set(this.#options.fixed);
    this.#confirmed.clear();
    this.#connected = false;
  }

  /** Subscribes to every wanted channel, because a new connection has no subscriptions yet. */
  #resume(): void {
    this.#connected = true;
    this.#held.clear();
    for (const channel of this.#wanted) this.#changed.add(channel);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#options.loop.atTurnEnd(() => {
      this.#scheduled = false;
      if (this.#connected && !this.#closed) this.#reconcile();
    });
  }

  #reconcile(): void {
    const more: string[] = [];
    const less: string[] = [];
    for (const channel of this.#changed) {
      const held = this.#held.has(channel);
      if (this.#wanted.has(channel) === held) continue;
      if (held) less.push(channel);
      else more.push(channel);
    }
    this.#changed.clear();
    for (let at = 0; at < more.length; at += TOGETHER) void this.#subscribe(more.slice(at, at + TOGETHER));
    if (less.length > 0) void this.#unsubscribe(less);
  }

  async #subscribe(channels: readonly string[]): Promise<void> {
    const client = this.#client;
    for (const channel of channels) this.#held.add(channel);
    try {
      // A command names channels of one slot only.
      if (this.#options.isSharded) await Promise.all(channels.map((channel) => client.ssubscribe(channel)));
      else await client.subscribe(...channels);
    } catch (error) {
      this.#options.log.debug({ err: error, channels: channels.length }, 'channels are not subscribed to yet');
      if (client === this.#client) this.#revert(channels);
      return;
    }
    if (client === this.#client && !this.#closed) this.#confirm(channels);
  }

  async #unsubscribe(channels: readonly string[]): Promise<void> {
    const client = this.#client;
    for (const channel of channels) {
      this.#held.delete(channel);
      this.#confirmed.delete(channel);
    }
    try {
      await client.unsubscribe(...channels);
    } catch (error) {
      this.#options.log.debug({ err: error, channels: channels.length }, 'channels are still subscribed to');
      if (client !== this.#client) return;
      for (const channel of channels) if (!this.#wanted.has(channel)) this.#held.add(channel);
      for (const channel of channels) this.#changed.add(channel);
    }
  }

  #revert(channels: readonly string[]): void {
    for (const channel of channels) {
      this.#held.delete(channel);
      this.#changed.add(channel);
    }
  }

  #confirm(channels: readonly string[]): void {
    for (const channel of channels) {
      this.#unconfirmed.delete(channel);
      this.#confirmed.add(channel);
    }
    if (this.#unconfirmed.size === 0 && this.#connected) this.#restored();
    this.#options.onSubscribed(channels);
  }

  #restored(): void {
    this.#ready.resolve();
    if (!this.#missing) return;
    this.#missing = false;
    this.#options.onRestored();
  }
}

function pending(): PromiseWithResolvers<void> {
  const made = Promise.withResolvers<void>();
  // The promise may reject while nothing awaits it.
  made.promise.catch(() => undefined);
  return made;
}

// Detects when the bus subscriber receives nothing although its connection looks healthy. It only reports this, and the
// bus replaces the subscriber.

/** After this many probes of a channel that were published and not received, the subscription counts as detached. */
const MISSES = 3;
const TOPIC = 'probe:';

type ProbeOptions = {
  readonly partitions: number;
  /** Publishes on the partition's channel; rejects if Redis did not accept the message. */
  readonly publish: (partition: number, topic: string) => Promise<void>;
  /** Called when the subscription receives nothing although its connection looks healthy. */
  readonly detached: () => void;
};

/**
 * Detects a subscriber that receives nothing although messages are published. Reports nothing while none can be
 * published.
 */
export function createProbe({ partitions, publish, detached }: ProbeOptions) {
  const channels = Array.from({ length: partitions }, () => ({ sending: false, received: 0, missed: 0 }));
  let sent = 0;
  const send = async (partition: number, channel: (typeof channels)[number], number: number): Promise<void> => {
    channel.sending = true;
    try {
      await publish(partition, `${TOPIC}${partition}:${number}`);
      if (number > channel.received) channel.missed++;
    } catch {
      // The publisher logs the failure. A probe that was not published proves nothing about the subscriber.
    } finally {
      channel.sending = false;
    }
  };
  return {
    /**
     * Publishes a probe on each partition's channel, except where the previous probe is still being sent. Before that,
     * calls `detached` if a channel missed MISSES probes.
     */
    turn(): void {
      if (channels.some(({ missed }) => missed >= MISSES)) {
        for (const channel of channels) channel.missed = 0;
        detached();
      }
      sent++;
      channels.forEach((channel, partition) => {
        if (!channel.sending) void send(partition, channel, sent);
      });
    },
    /**
     * Records a probe that arrived. Call it with the topic of each message that this process published and received.
     */
    received(topic: string): void {
      if (!topic.startsWith(TOPIC)) return;
      const [partition, number] = topic.slice(TOPIC.length).split(':').map(Number);
      const channel = channels[partition ?? -1];
      if (!channel) return;
      channel.received = number ?? 0;
      channel.missed = 0;
    },
  };
}
