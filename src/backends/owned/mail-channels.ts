/**
 * The channels of Redis through which a process gets its mail, and the connections that subscribe to them. Each slot
 * group has a channel for each process, because the script of a turn publishes where it writes.
 *
 * In a cluster the channels are sharded: a message stays on the master that serves the slot, where a plain one would go
 * to each node. So there is a connection for each slot group, which follows the slot to another master. Over one Redis
 * or sentinels that would gain nothing: there one connection subscribes to all channels, which are plain, and the user
 * of Redis needs no further rights.
 */
import type { Cancel, Clock, EventLoop, Log } from '../../core/ports.ts';
import { isCluster, masterOf, type Client, type FindNode } from '../redis/client.ts';
import { createProbe, Subscriber } from '../redis/subscriber.ts';
import type { Keys } from './keys.ts';
import { publish } from './scripts.ts';

/** How often each connection is asked for a sign that it receives what is published, in milliseconds. */
const PROBE_MS = 1_000;
/** The form of what a probe publishes. No mail has it. */
const PROBE = /^probe:\d+:\d+$/;

type MailChannelsParts = {
  readonly process: string;
  /** Publishes. */
  readonly client: Client;
  /** Makes a connection that subscribes. */
  readonly connect: (findNode?: FindNode) => Client;
  readonly keys: Keys;
  readonly loop: Pick<EventLoop, 'atTurnEnd'>;
  readonly clock: Pick<Clock, 'every'>;
  readonly log: Log;
  /** Called with each text that arrives. */
  readonly onText: (text: string) => void;
  /** Called after an interruption, in which texts may have been lost. */
  readonly onRestored: () => void;
};

type Probe = ReturnType<typeof createProbe>;

export class MailChannels {
  readonly #parts: MailChannelsParts;
  readonly #subscribers: readonly Subscriber[];
  readonly #probes: Probe[] = [];
  readonly #stopProbes: Cancel;

  constructor(parts: MailChannelsParts) {
    this.#parts = parts;
    const { client, keys, process, clock } = parts;
    const { mailToAll } = keys;
    const own = Array.from({ length: keys.usedGroups }, (_, group) => keys.mailOf(process, group));
    this.#subscribers = isCluster(client)
      ? own.map((channel, group) =>
          this.#subscribe(group === 0 ? [channel, mailToAll] : [channel], () => masterOf(client, channel)),
        )
      : [this.#subscribe([...own, mailToAll])];
    this.#stopProbes = clock.every(PROBE_MS, () => this.#probe());
  }

  /** Resolves once mail arrives through all channels. Rejects when this is closed. */
  async ready(): Promise<void> {
    await Promise.all(this.#subscribers.map((subscriber) => subscriber.ready()));
  }

  /** Publishes a text to a process. It may be lost. */
  publish(process: string, text: string): void {
    const { keys } = this.#parts;
    this.#send(keys.mailOf(process, keys.mailGroupOf(process)), text);
  }

  /** Publishes a text to all processes, this one among them. It may be lost. */
  publishToAll(text: string): void {
    this.#send(this.#parts.keys.mailToAll, text);
  }

  close(): void {
    this.#stopProbes();
    for (const subscriber of this.#subscribers) subscriber.close();
  }

  #send(channel: string, text: string): void {
    publish(this.#parts.client, channel, text).catch(() => undefined);
  }

  /** Subscribes to channels by a connection of their own. `findNode`: where it goes in a cluster. */
  #subscribe(fixed: readonly string[], findNode?: FindNode): Subscriber {
    const { client, connect, loop, log, onText, onRestored } = this.#parts;
    const subscriber = new Subscriber({
      ...{ fixed, isSharded: findNode !== undefined, loop, log, onRestored },
      connect: () => connect(findNode),
      onMessage: (text) => (PROBE.test(text) ? probe.received(text) : onText(text)),
      onSubscribed() {},
    });
    const probe = createProbe({
      partitions: 1,
      publish: (_, text) => publish(client, fixed[0] ?? '', text),
      detached() {
        log.warn({}, 'no mail arrives through a connection that looks healthy: it is replaced');
        subscriber.renew();
      },
    });
    this.#probes.push(probe);
    return subscriber;
  }

  #probe(): void {
    // Redis may have refused a subscription for a while: a cluster without some slot, or a user without a right.
    for (const subscriber of this.#subscribers) subscriber.retry();
    for (const probe of this.#probes) probe.turn();
  }
}
