/** Reads the total of each share: that of all nodes where the store counts the share, otherwise that of this process. */
import { thenDo, type MaybePromise } from '../maybe-promise.ts';
import type { ShareName } from './share-bounds.ts';
import type { Shares } from './shares.ts';

/** The amounts that all users together hold. */
export type ShareTotals = {
  used(share: ShareName): number;
  /** Whether the store counts this share for all nodes. Then this process does not know which users hold it. */
  inStore(share: ShareName): boolean;
};

/** Returns what is in use now. `store` reads the shares that the store counts; absent if it counts none. */
export function readShareTotals(
  shares: Pick<Shares, 'used'>,
  store?: () => MaybePromise<ReadonlyMap<ShareName, number>>,
): MaybePromise<ShareTotals> {
  return thenDo(store?.() ?? new Map<ShareName, number>(), (counted) => ({
    used: (share) => counted.get(share) ?? shares.used(share),
    inStore: (share) => counted.has(share),
  }));
}
