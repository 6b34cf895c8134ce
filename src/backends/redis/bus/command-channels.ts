/** Remembers the Redis channels of the commands that someone on this node listens to. Subscribes to none itself. */
import type { CommandKey } from '../../../core/ids.ts';
import type { Store } from '../store/store.ts';
import { commandOf, placeOfCommand } from './topics.ts';

/** The topic of a command that someone on this node listens to. */
export type CommandTopic = { readonly topic: string; readonly key: CommandKey; readonly partition: number };

export type CommandChannels = {
  /**
   * Records whether the topic has listeners. Returns the command's channel; null if the topic is not a command's.
   */
  changed(topic: string, wanted: boolean): { readonly channel: string; readonly partition: number } | null;
  /** Returns the topics whose events these channels carry. */
  among(channels: readonly string[]): readonly CommandTopic[];
  /** Returns the topics of the commands in this partition. */
  inPartition(partition: number): readonly CommandTopic[];
  /** Returns the partitions of all commands that someone on this node listens to. */
  partitions(): ReadonlySet<number>;
};

export function createCommandChannels(store: Store): CommandChannels {
  const topics = new Map<string, CommandTopic>();
  return {
    changed(topic, wanted) {
      const key = commandOf(topic);
      if (!key) return null;
      const { partition, kind, hash } = placeOfCommand(store, key);
      const channel = store.key(partition, kind, hash);
      if (wanted) topics.set(channel, { topic, key, partition });
      else topics.delete(channel);
      return { channel, partition };
    },
    among: (channels) => channels.map((channel) => topics.get(channel)).filter((found) => found !== undefined),
    inPartition: (partition) => [...topics.values()].filter((one) => one.partition === partition),
    partitions: () => new Set([...topics.values()].map(({ partition }) => partition)),
  };
}
