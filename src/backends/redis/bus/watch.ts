/** Notes in Redis that this node listens to hints of commands. Hints that no node listens to are not published. */
import type { RedisParts } from '../parts.ts';

/** How long a note lasts in Redis, milliseconds. */
const WATCH_MS = 15_000;
/** The age at which a note is renewed, milliseconds. */
const RENEW_MS = 4_000;

export type WatchOptions = Pick<RedisParts, 'store' | 'system'> & {
  /**
   * Called when the note of this partition had ended before it was renewed. Hints of the partition's commands may not
   * have been published in between.
   */
  readonly lapsed: (partition: number) => void;
};

/** The notes of this node, one for each partition. */
export type Watch = {
  /**
   * Writes or renews the note of this partition. Returns null if the note is new enough. Otherwise returns a promise
   * that resolves when the note is written or the attempt has failed. The promise never rejects.
   */
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
      // Redis is away. The next call tries again.
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
