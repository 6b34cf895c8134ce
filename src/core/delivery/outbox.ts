import type { Cancel } from '../clock.ts';
import type { Deps } from '../deps.ts';
import { CallboardError, isAway } from '../errors.ts';
import { OUTBOX_BYTES, OUTBOX_ENTRIES, OUTBOX_LANES, OUTBOX_RETRY_MS } from '../limits.ts';

/** What keeping anything costs, beside its payload. */
export const ENTRY_BYTES = 512;

export type Entry<T> = {
  /** Entries of one lane are never under way at once. */
  readonly lane: string;
  readonly bytes: number;
  /** May be run again until it is taken, so it must be idempotent. */
  readonly run: () => Promise<T>;
};

/** What this node must still tell a store that is away. */
export interface Outbox {
  /**
   * Runs the entry, after those that wait already. While the store does not answer it is kept and tried again, in order. Rejects with
   * `store_unavailable` where there is no more room, or the outbox was stopped; with anything else that `run` rejects with at once.
   */
  take<T>(entry: Entry<T>): Promise<T>;
  /** Entries that wait. */
  readonly size: number;
  /** Gives up what waits: nothing is tried again. */
  stop(): void;
}

type Waiting = {
  readonly lane: string;
  readonly bytes: number;
  /** False when the store is still away. */
  attempt(): Promise<boolean>;
  reject(error: unknown): void;
};

export function createOutbox({ clock, log }: Pick<Deps, 'clock' | 'log'>): Outbox {
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
      if (waiting.length > 0 && !stopped) timer = clock.after(OUTBOX_RETRY_MS, again);
      else if (!stopped) log.info({}, 'the store took all that was kept for it');
    });
  };
  const keep = (entry: Waiting): void => {
    const full = waiting.length >= OUTBOX_ENTRIES || bytes + entry.bytes > OUTBOX_BYTES;
    if (full || stopped) return entry.reject(awayError());
    if (waiting.length === 0) {
      log.warn({}, 'the store is away: what it must be told is kept for it');
      timer = clock.after(OUTBOX_RETRY_MS, again);
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
          if (isAway(error)) return false;
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

/** The oldest entries, at most one of a lane, until a lane comes again. */
function firstOfLanes(waiting: readonly Waiting[]): readonly Waiting[] {
  const lanes = new Set<string>();
  for (const { lane } of waiting) {
    if (lanes.has(lane) || lanes.size === OUTBOX_LANES) break;
    lanes.add(lane);
  }
  return waiting.slice(0, lanes.size);
}

function awayError(): CallboardError {
  return new CallboardError('store_unavailable', 'The store does not answer.', { retryAfterMs: OUTBOX_RETRY_MS });
}
