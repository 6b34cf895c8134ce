import type { Maybe } from '../maybe.ts';

/** What ingestion saw in a window. It says nothing of what any client executed. */
export type DedupStats = {
  readonly windowSeconds: number;
  readonly seen: number;
  readonly unique: number;
  readonly duplicates: number;
  /** True when the three counters are exact at `grainSeconds`; false when marks were evicted early or are estimated from live keys. */
  readonly exact: boolean;
  readonly grainSeconds: number;
  /** Marks that have not expired; null where the backend cannot tell cheaply. */
  readonly liveKeys: number | null;
};

/** No secrets: never a URL, a password or a key that was ingested. */
export type DedupBackend = {
  readonly implementation: string;
  readonly ttlSeconds: number;
  readonly namespace: string | null;
};

/**
 * The deduplicator as it can be observed. Its marks are set by the acts that ingest (`HistoryStore.ingest`, `CommandStore.finish`), in the
 * same atomic act that retains; observing sets, renews and removes none.
 */
export interface DedupStore {
  /** Counters of the last `windowSeconds` (10 to 3600), in whole buckets of `grainSeconds` that include the present one. */
  stats(windowSeconds: number): Maybe<DedupStats>;
  backend(): Maybe<DedupBackend>;
}
