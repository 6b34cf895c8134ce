/**
 * Registers the metrics of shares (limits of what users may hold): the use, the total, and the users over their
 * guarantee.
 */
import type { Core } from '../core/core.ts';
import { SHARE_NAMES, type ShareName } from '../core/shares/bounds.ts';
import type { Meter } from '../platform/metrics.ts';

type Pair = readonly [share: string, value: number];

/**
 * Registers gauges for each share: the amount in use, the total, and the users over their guarantee. Shares that the
 * store counts for all nodes have the same value on each node, and no number of users over their guarantee.
 */
export function meterShares(
  meter: Pick<Meter, 'gauges'>,
  { shares, sharesInUse }: Pick<Core, 'shares' | 'sharesInUse'>,
): void {
  const each = (read: (share: ShareName) => number | null): readonly Pair[] =>
    SHARE_NAMES.flatMap((share) => {
      const value = read(share);
      return value === null ? [] : [[share, value] as const];
    });
  meter.gauges('share_used', async () => {
    const { used } = await sharesInUse();
    return each(used);
  });
  meter.gauges('share_limit', () => each((share) => shares.bounds[share].total));
  meter.gauges('share_users_over', async () => {
    const { inStore } = await sharesInUse();
    return each((share) => (inStore(share) ? null : [...shares.over(share)].length));
  });
}
