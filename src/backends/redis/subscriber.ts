/**
 * The Redis connection that subscribes to channels, and a probe that detects when the connection receives nothing.
 *
 * Subscriptions are renewed after interruptions. Messages are passed on without being read.
 */
import type { EventLoop, Log } from '../../core/ports.ts';
import { unavailable, type Client } from './client.ts';

/** The most channels in one SUBSCRIBE command. */
const TOGETHER = 500;

type SubscriberOptions = {
  readonly connect: () => Client;
  /** Channels that are always subscribed to. */
  readonly fixed: readonly string[];
  /**
   * Whether the channels are sharded channels of a cluster, all on one master. Then only the fixed channels may be
   * used.
   */
  readonly isSharded?: boolean;
  readonly onMessage: (text: string) => void;
  /**
   * Called with channels whose subscription Redis has confirmed, for the first time or after an interruption. Messages
   * that were published before may have been missed.
   */
  readonly onSubscribed: (channels: readonly string[]) => void;
  /**
   * Called when all fixed channels are confirmed again after an interruption. Messages that were published in between
   * may have been missed.
   */
  readonly onRestored: () => void;
  readonly log: Log;
  readonly loop: Pick<EventLoop, 'atTurnEnd'>;
};

/**
 * A Redis connection that only receives messages, with its channels. It connects at once, and keeps trying while Redis
 * is unavailable.
 */
export class Subscriber {
  readonly #options: SubscriberOptions;
  readonly #wanted: Set<string>;
  /** The channels for which SUBSCRIBE was sent on this connection, confirmed or not. */
  #held = new Set<string>();
  /** The channels whose subscription may have to change, because they may be in only one of `#wanted` and `#held`. */
  readonly #changed = new Set<string>();
  #unconfirmed: Set<string>;
  /** The channels whose messages arrive: their subscription is confirmed and not interrupted. */
  readonly #confirmed = new Set<string>();
  #ready = pending();
  #client: Client;
  #connected = false;
  /** Whether the fixed channels were confirmed before and are now interrupted. */
  #missing = false;
  #scheduled = false;
  #closed = false;

  constructor(options: SubscriberOptions) {
    this.#options = options;
    this.#wanted = new Set(options.fixed);
    this.#unconfirmed = new Set(options.fixed);
    this.#client = this.#begin();
  }

  /** Subscribes to the channel, or unsubscribes from it. The changes of one tick are sent together. */
  want(channel: string, wanted: boolean): void {
    if (wanted) this.#wanted.add(channel);
    else this.#wanted.delete(channel);
    this.#changed.add(channel);
    this.#schedule();
  }

  /** Whether messages of the channel arrive, to the knowledge of this process. */
  receives(channel: string): boolean {
    return this.#confirmed.has(channel);
  }

  /**
   * Resolves once Redis has confirmed the subscriptions to all fixed channels. Rejects when the subscriber is closed.
   */
  ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** Tries again to make the changes that Redis refused. */
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
    // ioredis retries by itself.
    client.connect().catch(() => undefined);
    return client;
  }

  /**
   * Passes a message on. Errors are caught, because any Redis user may publish and ioredis would let the error end the
   * process.
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
      // In a cluster, one command may only name channels of one slot.
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
  // Prevents an unhandled rejection if the promise rejects while no code awaits it.
  made.promise.catch(() => undefined);
  return made;
}

// Detects a subscriber that receives nothing although its connection looks healthy. The probe only reports this; the
// owner of the subscriber replaces it.

/** A subscription counts as detached after this many probes of a channel were published but not received. */
const MISSES = 3;
const TOPIC = 'probe:';

type ProbeOptions = {
  readonly partitions: number;
  /** Publishes on the channel of the partition. Rejects if Redis did not accept the message. */
  readonly publish: (partition: number, topic: string) => Promise<void>;
  /** Called when the subscription receives nothing although its connection looks healthy. */
  readonly detached: () => void;
};

/**
 * Detects a subscriber that receives nothing although messages are published. Reports nothing while no message can be
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
      // `publish` logs its failure. A probe that was not published proves nothing about the subscriber.
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
