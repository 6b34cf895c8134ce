/**
 * Reads how much of each share is in use: over all nodes if the store counts the share, and in this process otherwise.
 */
import { thenDo, type MaybePromise } from '../maybe-promise.ts';
import type { ShareName } from './share-bounds.ts';
import type { Shares } from './shares.ts';

/** The amounts that all users hold together. */
export type ShareTotals = {
  used(share: ShareName): number;
  /** Whether the store counts this share for all nodes. If so, this process does not know which users hold how much. */
  inStore(share: ShareName): boolean;
};

/** Reads the present amounts. `store`: reads the shares that the store counts; absent if it counts none. */
export function readShareTotals(
  shares: Pick<Shares, 'used'>,
  store?: () => MaybePromise<ReadonlyMap<ShareName, number>>,
): MaybePromise<ShareTotals> {
  return thenDo(store?.() ?? new Map<ShareName, number>(), (counted) => ({
    used: (share) => counted.get(share) ?? shares.used(share),
    inStore: (share) => counted.has(share),
  }));
}
