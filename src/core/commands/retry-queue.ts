/** Holds calls that failed because the store was unavailable, and repeats them in order. */
import type { Deps } from '../deps.ts';
import { CallboardError, isStoreUnavailable } from '../errors.ts';
import { RETRY_QUEUE_BYTES, RETRY_QUEUE_ENTRIES, RETRY_QUEUE_LANES, RETRY_QUEUE_MS } from '../limits.ts';
import type { Cancel } from '../ports.ts';

/** The memory cost of an entry without its payload, in bytes. */
export const ENTRY_BYTES = 512;

type RetryEntry<T> = {
  /** The name of the entry's lane. Two entries of one lane never run at the same time. */
  readonly lane: string;
  readonly bytes: number;
  /** Calls the store. It may be called several times until the store answers, so it must be idempotent. */
  readonly run: () => Promise<T>;
};

/** A queue of calls that wait because the store was unavailable. */
export interface StoreRetryQueue {
  /**
   * Runs the entry after the entries that already wait. If the store is unavailable, the entry is kept and repeated in
   * order. Rejects with `store_unavailable` if the entry would have to wait and the queue is full or stopped. Rejects
   * with any other error of `run` without repeating it.
   */
  take<T>(entry: RetryEntry<T>): Promise<T>;
  /** The number of waiting entries. */
  readonly size: number;
  /** Rejects all waiting entries. Afterwards nothing is repeated. */
  stop(): void;
}

type Waiting = {
  readonly lane: string;
  readonly bytes: number;
  /** Calls the store. Returns false if the store is still unavailable. */
  attempt(): Promise<boolean>;
  reject(error: unknown): void;
};

export function createStoreRetryQueue({ clock, log }: Pick<Deps, 'clock' | 'log'>): StoreRetryQueue {
  let waiting: Waiting[] = [];
  let bytes = 0;
  let timer: Cancel | null = null;
  let stopped = false;
  const remove = (entries: ReadonlySet<Waiting>): void => {
    waiting = waiting.filter((entry) => !entries.has(entry));
    for (const entry of entries) bytes -= entry.bytes;
  };
  const replay = async (): Promise<void> => {
    while (waiting.length > 0 && !stopped) {
      const turn = firstOfLanes(waiting);
      const taken = await Promise.all(turn.map((entry) => entry.attempt()));
      remove(new Set(turn.filter((_, i) => taken[i])));
      if (taken.includes(false)) return;
    }
  };
  const again = (): void => {
    timer = null;
    void replay().then(() => {
      if (waiting.length > 0 && !stopped) timer = clock.after(RETRY_QUEUE_MS, again);
      else if (!stopped) log.info({}, 'all kept acts have reached the store');
    });
  };
  const keep = (entry: Waiting): void => {
    const full = waiting.length >= RETRY_QUEUE_ENTRIES || bytes + entry.bytes > RETRY_QUEUE_BYTES;
    if (full || stopped) return entry.reject(awayError());
    if (waiting.length === 0) {
      log.warn({}, 'the store is unavailable; acts are kept and retried');
      timer = clock.after(RETRY_QUEUE_MS, again);
    }
    waiting.push(entry);
    bytes += entry.bytes;
  };
  return {
    take({ run, lane, bytes: size }) {
      const { promise, resolve, reject } = Promise.withResolvers<Awaited<ReturnType<typeof run>>>();
      const attempt = async (): Promise<boolean> => {
        try {
          resolve(await run());
        } catch (error) {
          if (isStoreUnavailable(error)) return false;
          reject(error);
        }
        return true;
      };
      const entry = { lane, bytes: size, attempt, reject };
      if (waiting.length > 0) keep(entry);
      else void attempt().then((taken) => taken || keep(entry));
      return promise;
    },
    get size() {
      return waiting.length;
    },
    stop() {
      stopped = true;
      timer?.();
      for (const { reject } of waiting.splice(0)) reject(awayError());
      bytes = 0;
    },
  };
}

/**
 * Returns the oldest entries that may run at the same time: at most RETRY_QUEUE_LANES, up to the first entry whose lane
 * already occurred.
 */
function firstOfLanes(waiting: readonly Waiting[]): readonly Waiting[] {
  const lanes = new Set<string>();
  for (const { lane } of waiting) {
    if (lanes.has(lane) || lanes.size === RETRY_QUEUE_LANES) break;
    lanes.add(lane);
  }
  return waiting.slice(0, lanes.size);
}

function awayError(): CallboardError {
  return new CallboardError('store_unavailable', 'The store does not answer.', { retryAfterMs: RETRY_QUEUE_MS });
}
