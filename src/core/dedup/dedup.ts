/** Deduplication: its counters and state, the port that reads them, and what administrators see of them. */
import { requireAdmin, type Requester } from '../auth/principal.ts';
import { within } from '../ids.ts';
import { DEDUP_WINDOW_SECONDS } from '../limits.ts';
import type { MaybePromise } from '../maybe-promise.ts';

/** What ingestion received in a window of time. It says nothing about what clients executed. */
export type DedupStats = {
  readonly windowSeconds: number;
  readonly seen: number;
  readonly unique: number;
  readonly duplicates: number;
  /**
   * True if the three counters are exact at `grainSeconds`. False if marks of messages were evicted early, if the window
   * began before a restart that kept the marks, or if the backend estimates the counters.
   */
  readonly exact: boolean;
  readonly grainSeconds: number;
  /**
   * The number of remembered message ids that have not expired, and of ends of commands that arrived within the same
   * time, in whole buckets; null where the backend cannot tell cheaply, or not yet after a restart.
   */
  readonly liveKeys: number | null;
};

/** Describes the deduplicator. Never holds a URL, a password or an ingested key. */
export type DedupBackend = {
  readonly implementation: string;
  readonly ttlSeconds: number;
  readonly namespace: string | null;
};

/**
 * Reads the state of the deduplicator. Its marks are the remembered ids of messages. `HistoryStore.ingest` sets them, in
 * the same atomic act that retains the message. `CommandStore.finish` is counted too, but sets none, because the record
 * of a command remembers its ends. Reading sets, renews and removes no mark.
 */
export interface DedupStore {
  /**
   * Reads the counters of the last `windowSeconds` (10 to 3600), in whole buckets of `grainSeconds`, the current bucket
   * included.
   */
  stats(windowSeconds: number): MaybePromise<DedupStats>;
  backend(): MaybePromise<DedupBackend>;
}

/** Creates the API of deduplication. Each method throws if the requester is not an administrator. */
export function createDedup({ backend: { dedup } }: { readonly backend: { readonly dedup: DedupStore } }) {
  return {
    /** Only checks the requester, for a parent field whose nested fields are read one by one. */
    allow: (requester: Requester): void => void requireAdmin(requester),
    /** Reads the counters of the last `windowSeconds` (10 to 3600; null: 300). */
    async stats(requester: Requester, windowSeconds: number | null): Promise<DedupStats> {
      requireAdmin(requester);
      return dedup.stats(within('window_seconds', windowSeconds, DEDUP_WINDOW_SECONDS));
    },
    async backend(requester: Requester): Promise<DedupBackend> {
      requireAdmin(requester);
      return dedup.backend();
    },
  };
}
