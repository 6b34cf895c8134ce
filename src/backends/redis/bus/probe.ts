/** Probes that were published and not heard before the subscription counts as detached. */
const MISSES = 3;
const TOPIC = 'probe:';

export type ProbeOptions = {
  readonly partitions: number;
  /** Publishes on the partition's channel; rejects where that was not taken. */
  readonly publish: (partition: number, topic: string) => Promise<void>;
  /** The subscription of a connection that looks healthy hears nothing. */
  readonly detached: () => void;
};

export type Probe = {
  /** Sends a probe through each partition's channel, unless the last one is still on its way out. */
  turn(): void;
  /** Of a message of our own. */
  heard(topic: string): void;
};

/** Notices a subscriber that hears nothing although messages go out. While none can, it says nothing. */
export function createProbe({ partitions, publish, detached }: ProbeOptions): Probe {
  const ways = Array.from({ length: partitions }, () => ({ sending: false, heard: 0, missed: 0 }));
  let sent = 0;
  const send = async (partition: number, way: (typeof ways)[number], number: number): Promise<void> => {
    way.sending = true;
    try {
      await publish(partition, `${TOPIC}${partition}:${number}`);
      if (number > way.heard) way.missed++;
    } catch {
      // Who publishes says so; that nothing came back then proves nothing.
    } finally {
      way.sending = false;
    }
  };
  return {
    turn() {
      if (ways.some(({ missed }) => missed >= MISSES)) {
        for (const way of ways) way.missed = 0;
        detached();
      }
      sent++;
      ways.forEach((way, partition) => {
        if (!way.sending) void send(partition, way, sent);
      });
    },
    heard(topic) {
      if (!topic.startsWith(TOPIC)) return;
      const [partition, number] = topic.slice(TOPIC.length).split(':').map(Number);
      const way = ways[partition ?? -1];
      if (!way) return;
      way.heard = number ?? 0;
      way.missed = 0;
    },
  };
}
