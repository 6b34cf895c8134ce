/**
 * The Redis channels through which a process receives its mail, and the connections that subscribe to them.
 *
 * Each slot group has one channel for each process, because the script of a turn can publish only in the slot that it
 * writes to.
 *
 * In a cluster the channels are sharded, so a message stays on the master that serves its slot; a plain message would
 * go to every node. So this process has one connection to each master that serves some of its channels. When a slot
 * moves or a master fails over, the connections to these masters are replaced.
 *
 * With one Redis or with sentinels, sharding has no benefit. One connection subscribes to all channels, which are plain
 * channels, so the Redis user needs no further rights.
 */
import type { Cancel, Clock, EventLoop, Log } from '../../core/ports.ts';
import { isCluster, refreshSlots, servedBy, unavailable, type Client, type FindNode } from '../redis/client.ts';
import { createProbe, Subscriber } from '../redis/subscriber.ts';
import type { Keys } from './keys.ts';
import { publish } from './scripts.ts';

/** How often each connection is tested by a probe, in milliseconds. */
const PROBE_MS = 1_000;
/** Matches the message of a probe. No mail has this form. */
const PROBE = /^probe:\d+:\d+$/;

type MailChannelsOptions = {
  readonly process: string;
  /** The client that publishes messages. */
  readonly client: Client;
  /** Creates a connection that can subscribe. */
  readonly connect: (findNode?: FindNode) => Client;
  readonly keys: Keys;
  readonly loop: Pick<EventLoop, 'atTurnEnd'>;
  readonly clock: Pick<Clock, 'every'>;
  readonly log: Log;
  /** Called with each text that is received. */
  readonly onText: (text: string) => void;
  /** Called after an interruption, during which texts may have been lost. */
  readonly onRestored: () => void;
};

/** A connection, with the channels that it subscribes to. */
type Subscription = {
  readonly channels: readonly string[];
  readonly subscriber: Subscriber;
  readonly probe: ReturnType<typeof createProbe>;
};

/** The key of the only connection if Redis is no cluster. */
const ONLY = '';

export class MailChannels {
  readonly #options: MailChannelsOptions;
  readonly #channels: readonly string[];
  /** The connections, by the address of their master. */
  readonly #subscriptions = new Map<string, Subscription>();
  readonly #stopProbes: Cancel;
  /** Whether there has been a connection before. */
  #hasBegun = false;
  /** Calls that wait until the connections have changed. */
  #waiting: (() => void)[] = [];
  #isClosed = false;

  constructor(options: MailChannelsOptions) {
    this.#options = options;
    const { client, keys, process, clock } = options;
    const own = Array.from({ length: keys.usedGroups }, (_, group) => keys.mailOf(process, group));
    this.#channels = [...own, keys.mailToAll];
    if (isCluster(client)) this.#follow();
    else this.#subscribe(ONLY, this.#channels);
    this.#stopProbes = clock.every(PROBE_MS, () => this.#probe());
  }

  /** Resolves once mail arrives through all channels. Rejects when this object is closed. */
  async ready(): Promise<void> {
    while (!this.#isClosed) {
      const current = [...this.#subscriptions.values()];
      const found = await Promise.allSettled(current.map(({ subscriber }) => subscriber.ready()));
      const isReady = found.every(({ status }) => status === 'fulfilled');
      // If a connection was replaced during the wait, its replacement must become ready too.
      if (isReady && this.#hasAll(current)) return;
      if (isReady) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    throw unavailable(new Error('the channels of mail are closed'));
  }

  /** Publishes a text to a process. The text may be lost. */
  publish(process: string, text: string): void {
    const { keys } = this.#options;
    this.#send(keys.mailOf(process, keys.mailGroupOf(process)), text);
  }

  /** Publishes a text to all processes, including this one. The text may be lost. */
  publishToAll(text: string): void {
    this.#send(this.#options.keys.mailToAll, text);
  }

  close(): void {
    this.#isClosed = true;
    this.#stopProbes();
    for (const { subscriber } of this.#subscriptions.values()) subscriber.close();
    this.#wake();
  }

  #send(channel: string, text: string): void {
    publish(this.#options.client, channel, text).catch(() => undefined);
  }

  /** Whether `current` are exactly the present connections, and they subscribe to all channels. */
  #hasAll(current: readonly Subscription[]): boolean {
    const count = current.reduce((sum, { channels }) => sum + channels.length, 0);
    return count === this.#channels.length && current.every((one) => [...this.#subscriptions.values()].includes(one));
  }

  /** Subscribes at the masters that serve the channels, according to the last known slot map of the cluster. */
  #follow(): void {
    const { client, onRestored } = this.#options;
    if (!isCluster(client) || this.#isClosed) return;
    const places = Map.groupBy(this.#channels, (channel) => servedBy(client, channel));
    places.delete(null);
    for (const [address, { channels, subscriber }] of this.#subscriptions) {
      if (String(places.get(address) ?? []) === String(channels)) continue;
      this.#subscriptions.delete(address);
      subscriber.close();
    }
    for (const [address, channels] of places) {
      if (address === null || this.#subscriptions.has(address)) continue;
      const { subscriber } = this.#subscribe(address, channels);
      // Messages that were published before the subscription began may be lost.
      if (this.#hasBegun) subscriber.ready().then(onRestored, () => undefined);
    }
    this.#hasBegun ||= this.#subscriptions.size > 0;
    this.#wake();
  }

  #wake(): void {
    for (const run of this.#waiting.splice(0)) run();
  }

  #subscribe(address: string, channels: readonly string[]): Subscription {
    const { client, connect, loop, log, onText, onRestored } = this.#options;
    const [host = '', port] = address.split(/:(?=\d+$)/);
    const findNode: FindNode = async () => {
      if (isCluster(client)) await refreshSlots(client);
      this.#follow();
      return { host, port: Number(port) };
    };
    const subscriber = new Subscriber({
      ...{ fixed: channels, isSharded: address !== ONLY, loop, log, onRestored },
      connect: () => (address === ONLY ? connect() : connect(findNode)),
      onMessage: (text) => (PROBE.test(text) ? probe.received(text) : onText(text)),
      onSubscribed() {},
    });
    const probe = createProbe({
      partitions: 1,
      publish: (_, text) => publish(client, channels[0] ?? '', text),
      detached() {
        log.warn({}, 'no mail arrives through a connection that looks healthy: it is replaced');
        subscriber.renew();
      },
    });
    const made = { channels, subscriber, probe };
    this.#subscriptions.set(address, made);
    return made;
  }

  #probe(): void {
    this.#follow();
    for (const { channels, subscriber, probe } of this.#subscriptions.values()) {
      // Redis may have refused a subscription for a time, for example because no node of the cluster served a slot, or
      // because the user lacked a right.
      subscriber.retry();
      // A connection that has not subscribed yet cannot receive a probe, so it is not tested.
      if (subscriber.receives(channels[0] ?? '')) probe.turn();
    }
  }
}
