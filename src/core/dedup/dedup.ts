/**
 * Deduplication of ingested messages: its counters and state, the storage port that reads them, and the API for
 * administrators.
 */
import { requireAdmin, type Requester } from '../auth/principal.ts';
import { within } from '../ids.ts';
import { DEDUP_WINDOW_SECONDS } from '../limits.ts';
import type { MaybePromise } from '../maybe-promise.ts';

/** What ingestion received in a time window. It says nothing about what clients executed. */
export type DedupStats = {
  readonly windowSeconds: number;
  readonly seen: number;
  readonly unique: number;
  readonly duplicates: number;
  /**
   * Whether the three counters are exact to `grainSeconds`. They are not if marks of messages were evicted early, if
   * the window began before a restart that kept the marks, or if the backend estimates the counters.
   */
  readonly exact: boolean;
  readonly grainSeconds: number;
  /**
   * The number of remembered message ids that have not expired, plus the number of command ends that arrived within the
   * same time (in whole buckets). Null if the backend cannot tell this cheaply, or not yet after a restart.
   */
  readonly liveKeys: number | null;
};

/** Describes the deduplicator. Never contains a URL, a password or a message id. */
export type DedupBackend = {
  readonly implementation: string;
  readonly ttlSeconds: number;
  readonly namespace: string | null;
};

/**
 * Reads the state of the deduplicator. Its marks are the remembered message ids. `HistoryStore.ingest` sets a mark in
 * the same atomic act that writes the message. `CommandStore.finish` counts an end but sets no mark, because the record
 * of the command remembers its ends. Reading changes no mark.
 */
export interface DedupStore {
  /**
   * Reads the counters of the last `windowSeconds` (10 to 3600), in whole buckets of `grainSeconds`, including the
   * current bucket.
   */
  stats(windowSeconds: number): MaybePromise<DedupStats>;
  backend(): MaybePromise<DedupBackend>;
}

/** Creates the API of deduplication. Every method throws if the requester is not an administrator. */
export function createDedup({ backend: { dedup } }: { readonly backend: { readonly dedup: DedupStore } }) {
  return {
    /** Only checks the requester. For a parent field whose nested fields are read separately. */
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
