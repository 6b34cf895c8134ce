/** Lists the shares whose total is used up, so that they refuse new links or commands of users who hold a lot. */
import type { ShareName } from './share-bounds.ts';
import type { ShareTotals } from './share-totals.ts';
import type { Shares } from './shares.ts';

/**
 * The shares that new links and commands need. A full share of another kind refuses no new work: its data is evicted
 * (results, history), or its room becomes free within moments.
 */
const NEEDED: readonly ShareName[] = ['links', 'advertised_bytes', 'queued_bytes', 'spilled_bytes', 'marks', 'sockets'];
/** The smallest fraction of a total that counts as room, for shares in bytes. A payload may not fit into less. */
const SMALL_PART = 1 / 64;

/**
 * Returns the full shares that new links and commands need. While they are full, the node still takes links and
 * commands of users who hold little, and those that need none of these shares.
 */
export function fullShares(
  { bounds }: Pick<Shares, 'bounds'>,
  totals: Pick<ShareTotals, 'used'>,
): readonly ShareName[] {
  return NEEDED.filter((name) => hasNoRoom(name, bounds[name].total, totals.used(name)));
}

function hasNoRoom(share: ShareName, total: number | null, used: number): boolean {
  if (total === null) return false;
  const room = total - used;
  return share.endsWith('_bytes') ? room < total * SMALL_PART : room < 1;
}
