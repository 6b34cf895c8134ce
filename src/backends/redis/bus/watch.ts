/** Notes in Redis that this node listens to hints of commands. Hints that no node listens to are not published. */
import type { RedisParts } from '../parts.ts';

/** How long a note lasts. */
const WATCH_MS = 15_000;
/** A note that is older than this is renewed. */
const RENEW_MS = 4_000;

export type WatchOptions = Pick<RedisParts, 'store' | 'system'> & {
  /** A note of this partition had ended before it was renewed: hints of its commands may have been left out. */
  readonly lapsed: (partition: number) => void;
};

/** What this node has noted, by partition. */
export type Watch = {
  /** Resolves once the partition is noted, or Redis did not answer. Null if it was noted lately. Never rejects. */
  want(partition: number): Promise<void> | null;
};

export function createWatch({ store, system, lapsed }: WatchOptions): Watch {
  const noted = new Map<number, number>();
  const asking = new Map<number, Promise<void>>();
  const note = async (partition: number, at: number): Promise<void> => {
    try {
      await store.act(partition, 'bus-watch', [WATCH_MS]);
      const before = noted.get(partition) ?? at;
      noted.set(partition, at);
      if (at - before >= WATCH_MS) lapsed(partition);
    } catch {
      // Redis is away. The next call asks again.
    } finally {
      asking.delete(partition);
    }
  };
  return {
    want(partition) {
      const at = system.now();
      if (at - (noted.get(partition) ?? -Infinity) < RENEW_MS) return null;
      const asked = asking.get(partition) ?? note(partition, at);
      asking.set(partition, asked);
      return asked;
    },
  };
}
