import { SHARE_NAMES, type ShareName } from '../core/shares/bounds.ts';
import type { Shares } from '../core/shares/shares.ts';
import type { Meter } from '../platform/metrics.ts';

/** What this process holds of each share, what it may hold, and how many users are over their guarantee. */
export function meterShares(meter: Pick<Meter, 'gauges'>, shares: Shares): void {
  const each = (read: (share: ShareName) => number | null) => ({
    label: 'share',
    *read(): Generator<readonly [string, number]> {
      for (const share of SHARE_NAMES) {
        const value = read(share);
        if (value !== null) yield [share, value];
      }
    },
  });
  const used = each((share) => shares.used(share));
  meter.gauges('share_used', 'What all users together hold of each share, in bytes or as a count.', used);
  const totals = each((share) => shares.bounds[share].total);
  meter.gauges('share_total', 'What all users together may hold of each share that has a total.', totals);
  const over = each((share) => [...shares.over(share)].length);
  meter.gauges('share_users_over', 'Users who hold more than their guarantee of each share.', over);
}
