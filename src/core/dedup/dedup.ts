/** Shows administrators the counters and the state of deduplication. */
import { requireAdmin, type Principal } from '../auth/principal.ts';
import type { Deps } from '../deps.ts';
import { DEDUP_WINDOW_SECONDS } from '../limits.ts';
import { within } from '../ids.ts';
import type { DedupBackend, DedupStats } from './dedup-store.ts';

/** Shows the state of deduplication, to administrators only. */
export interface Dedup {
  /**
   * Throws if the requester is not an administrator. Checks the requester for a parent field whose nested fields are
   * read one by one.
   */
  allow(requester: Principal | null): void;
  /** Reads the counters of the last `windowSeconds` (10 to 3600; null: 300). */
  stats(requester: Principal | null, windowSeconds: number | null): Promise<DedupStats>;
  backend(requester: Principal | null): Promise<DedupBackend>;
}

export function createDedup({ backend: { dedup } }: Deps): Dedup {
  return {
    allow: (requester) => void requireAdmin(requester),
    async stats(requester, windowSeconds) {
      requireAdmin(requester);
      return dedup.stats(within('window_seconds', windowSeconds, DEDUP_WINDOW_SECONDS));
    },
    async backend(requester) {
      requireAdmin(requester);
      return dedup.backend();
    },
  };
}
