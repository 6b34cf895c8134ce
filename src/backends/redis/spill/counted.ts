/** Counts the bytes that this process has put into the spill store, in each user's share `spilled_bytes`. */
import type { Clock } from '../../../core/clock.ts';
import { CallboardError } from '../../../core/errors.ts';
import { SHARE_MESSAGE, type Holdings, type Shares } from '../../../core/shares/shares.ts';
import { SparseQueue } from '../../memory/list-sparse.ts';

type Counted = { readonly holdings: Holdings; readonly bytes: number; readonly expiresAt: number; gone: boolean };

/**
 * Counts the payloads that this node put into a store that several nodes share. A payload counts in its user's share
 * `spilled_bytes` until it expires or is discarded.
 */
export interface CountedPuts {
  /** Returns why this many bytes may not be put: `share_exceeded` or `store_full`; null if they may. Counts nothing. */
  refusal(userId: string, bytes: number): CallboardError | null;
  add(put: {
    readonly name: string;
    readonly userId: string;
    readonly bytes: number;
    readonly expiresAt: number;
  }): void;
  remove(name: string): void;
}

export function createCountedPuts(clock: Pick<Clock, 'now'>, shares: Shares): CountedPuts {
  const puts = new Map<string, Counted>();
  const byAge = new SparseQueue<Counted & { readonly name: string }>(({ gone }) => gone);
  const remove = (name: string): void => {
    const put = puts.get(name);
    if (!put) return;
    put.gone = true;
    puts.delete(name);
    byAge.left();
    put.holdings.release('spilled_bytes', put.bytes);
  };
  return {
    refusal(userId, bytes) {
      const now = clock.now();
      for (let old = byAge.first(); old && old.expiresAt <= now; old = byAge.first()) remove(old.name);
      const share = 'spilled_bytes';
      const refusal = shares.of(userId).refusal(share, bytes);
      return refusal && new CallboardError(refusal, SHARE_MESSAGE[refusal], { share });
    },
    add({ name, userId, bytes, expiresAt }) {
      const put = { name, holdings: shares.of(userId), bytes, expiresAt, gone: false };
      puts.set(name, put);
      byAge.push(put);
      put.holdings.take('spilled_bytes', bytes);
    },
    remove,
  };
}
