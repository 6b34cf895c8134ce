/** The port of deduplication counters. */
import type { MaybePromise } from '../maybe-promise.ts';

/** What ingestion received in a window of time. It says nothing about what clients executed. */
export type DedupStats = {
  readonly windowSeconds: number;
  readonly seen: number;
  readonly unique: number;
  readonly duplicates: number;
  /**
   * True if the three counters are exact at `grainSeconds`. False if marks of messages were evicted early, or if the
   * backend estimates the counters.
   */
  readonly exact: boolean;
  readonly grainSeconds: number;
  /** The number of remembered message ids that have not expired; null where the backend cannot tell cheaply. */
  readonly liveKeys: number | null;
};

/** Describes the deduplicator. Never holds a URL, a password or an ingested key. */
export type DedupBackend = {
  readonly implementation: string;
  readonly ttlSeconds: number;
  readonly namespace: string | null;
};

/**
 * Reads the state of the deduplicator. Its marks are the remembered ids of messages. `HistoryStore.ingest` and
 * `CommandStore.finish` set them, in the same atomic act that retains the message. Reading sets, renews and removes no
 * mark.
 */
export interface DedupStore {
  /**
   * Reads the counters of the last `windowSeconds` (10 to 3600), in whole buckets of `grainSeconds`, the current bucket
   * included.
   */
  stats(windowSeconds: number): MaybePromise<DedupStats>;
  backend(): MaybePromise<DedupBackend>;
}
