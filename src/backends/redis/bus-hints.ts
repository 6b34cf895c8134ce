/**
 * Tracks which hints of commands this node listens to: the channels of the commands, and records in Redis that a node
 * listens.
 */
import type { CommandKey } from '../../core/ids.ts';
import { commandOf, placeOfCommand } from './bus-messages.ts';
import type { RedisDeps } from './deps.ts';
import type { Store } from './store.ts';

/** The topic of a command, for which this node has a listener. */
export type CommandTopic = {
  readonly topic: string;
  readonly key: CommandKey;
  readonly partition: number;
  /** Resolves when Redis has confirmed the subscription to the command's channel. */
  readonly confirmed: PromiseWithResolvers<void>;
};

export function createCommandChannels(store: Store) {
  /** The topics by their channels. */
  const topics = new Map<string, CommandTopic>();
  const channelOf = (key: CommandKey): string => {
    const { partition, kind, hash } = placeOfCommand(store, key);
    return store.key(partition, kind, hash);
  };
  return {
    /**
     * Notes whether the topic has listeners. Returns the channel of the command; null if the topic is not about a
     * command.
     */
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

// Records in Redis that this node listens to hints of commands. Without such a record, hints are not published.

/** The lifetime of a record in Redis, in milliseconds. */
const WATCH_MS = 15_000;
/** The age at which a record is renewed, in milliseconds. */
const RENEW_MS = 4_000;

type WatchOptions = Pick<RedisDeps, 'store' | 'system'> & {
  /**
   * Called when the record of this partition had expired before it was renewed. In between, hints about the partition's
   * commands may not have been published.
   */
  readonly lapsed: (partition: number) => void;
};

/** The records of this node, one for each partition. */
export function createWatch({ store, system, lapsed }: WatchOptions) {
  const noted = new Map<number, number>();
  const asking = new Map<number, Promise<void>>();
  const note = async (partition: number, at: number): Promise<void> => {
    try {
      await store.act(partition, 'bus-watch', [WATCH_MS]);
      const before = noted.get(partition) ?? at;
      noted.set(partition, at);
      if (at - before >= WATCH_MS) lapsed(partition);
    } catch {
      // Redis is unavailable; the next call tries again.
    } finally {
      asking.delete(partition);
    }
  };
  return {
    /**
     * Writes or renews the record of this partition. Returns null if the record is new enough. Otherwise returns a
     * promise that resolves when the record is written or the attempt has failed. The promise never rejects.
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
