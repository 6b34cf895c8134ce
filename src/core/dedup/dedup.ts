/** Shows administrators the counters and the state of deduplication. */
import { requireAdmin, type Requester } from '../auth/principal.ts';
import type { Deps } from '../deps.ts';
import { within } from '../ids.ts';
import { DEDUP_WINDOW_SECONDS } from '../limits.ts';
import type { DedupBackend, DedupStats } from './dedup-store.ts';

/** Creates the API of deduplication. Each method throws if the requester is not an administrator. */
export function createDedup({ backend: { dedup } }: Deps) {
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
