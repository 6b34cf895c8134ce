/**
 * Detects when the bus subscriber receives nothing although its connection looks healthy. It only reports this, and the
 * bus replaces the subscriber.
 */

/** After this many probes of a channel that were published and not received, the subscription counts as detached. */
const MISSES = 3;
const TOPIC = 'probe:';

export type ProbeOptions = {
  readonly partitions: number;
  /** Publishes on the partition's channel; rejects if Redis did not accept the message. */
  readonly publish: (partition: number, topic: string) => Promise<void>;
  /** Called when the subscription receives nothing although its connection looks healthy. */
  readonly detached: () => void;
};

export type Probe = {
  /**
   * Publishes a probe on each partition's channel, except where the previous probe is still being sent. Before that,
   * calls `detached` if a channel missed MISSES probes.
   */
  turn(): void;
  /** Records a probe that arrived. Call it with the topic of each message that this process published and received. */
  received(topic: string): void;
};

/**
 * Detects a subscriber that receives nothing although messages are published. Reports nothing while none can be
 * published.
 */
export function createProbe({ partitions, publish, detached }: ProbeOptions): Probe {
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
    turn() {
      if (channels.some(({ missed }) => missed >= MISSES)) {
        for (const channel of channels) channel.missed = 0;
        detached();
      }
      sent++;
      channels.forEach((channel, partition) => {
        if (!channel.sending) void send(partition, channel, sent);
      });
    },
    received(topic) {
      if (!topic.startsWith(TOPIC)) return;
      const [partition, number] = topic.slice(TOPIC.length).split(':').map(Number);
      const channel = channels[partition ?? -1];
      if (!channel) return;
      channel.received = number ?? 0;
      channel.missed = 0;
    },
  };
}
