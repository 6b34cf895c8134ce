/** Decides whether this node can take new links and commands at all. */
import { CallboardError } from '../errors.ts';
import type { ShareName } from './bounds.ts';
import type { SharesInUse } from './in-use.ts';
import { SHARE_MESSAGE, type Shares } from './shares.ts';

/**
 * The shares that every new link or command needs. The others do not block new work: their data is evicted (results,
 * history), or their room is free again within moments.
 */
const NEEDED: readonly ShareName[] = ['links', 'advertised_bytes', 'queued_bytes', 'spilled_bytes', 'marks'];
/** The smallest part of a total that counts as room, for shares in bytes. The next payload may not fit into less. */
const SMALL_PART = 1 / 64;

/** Throws `store_full`, naming the share, if a share that new links and commands need has no room left in its total. */
export function requireRoom({ bounds }: Pick<Shares, 'bounds'>, inUse: Pick<SharesInUse, 'used'>): void {
  const share = NEEDED.find((name) => hasNoRoom(name, bounds[name].total, inUse.used(name)));
  if (share !== undefined) throw new CallboardError('store_full', SHARE_MESSAGE.store_full, { share });
}

function hasNoRoom(share: ShareName, total: number | null, used: number): boolean {
  if (total === null) return false;
  const room = total - used;
  return share.endsWith('_bytes') ? room < total * SMALL_PART : room < 1;
}
