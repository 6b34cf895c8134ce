/**
 * Registers gauges for the resources that the users of this process share: the amount in use, the total, and the users
 * who hold more than their guarantee.
 */
import { SHARE_NAMES, type ShareName } from '../core/shares/bounds.ts';
import type { Shares } from '../core/shares/shares.ts';
import type { Meter } from '../platform/metrics.ts';

/**
 * Registers three gauges for each resource in `shares/bounds.ts`: the amount in use, the total, and the number of users
 * over their guarantee.
 */
export function meterShares(meter: Pick<Meter, 'gauges'>, shares: Shares): void {
  const each = (read: (share: ShareName) => number | null) =>
    function* (): Generator<readonly [string, number]> {
      for (const share of SHARE_NAMES) {
        const value = read(share);
        if (value !== null) yield [share, value];
      }
    };
  meter.gauges(
    'share_used',
    each((share) => shares.used(share)),
  );
  meter.gauges(
    'share_limit',
    each((share) => shares.bounds[share].total),
  );
  meter.gauges(
    'share_users_over',
    each((share) => [...shares.over(share)].length),
  );
}
