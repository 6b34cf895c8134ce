/** What this node wants of the hints of commands: their channels, and notes in Redis that it listens to them. */
import type { CommandKey } from '../../core/ids.ts';
import { commandOf, placeOfCommand } from './bus-messages.ts';
import type { RedisDeps } from './deps.ts';
import type { Store } from './store.ts';

/** The topic of a command that has a listener on this node. */
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

// Notes in Redis that this node listens to hints of commands. Hints that no node listens to are not published.

/** How long a note lasts in Redis, milliseconds. */
const WATCH_MS = 15_000;
/** The age at which a note is renewed, milliseconds. */
const RENEW_MS = 4_000;

type WatchOptions = Pick<RedisDeps, 'store' | 'system'> & {
  /**
   * Called when the note of this partition had ended before it was renewed. Hints of the partition's commands may not
   * have been published in between.
   */
  readonly lapsed: (partition: number) => void;
};

/** The notes of this node, one for each partition. */
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
