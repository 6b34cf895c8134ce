import { CallboardError } from '../errors.ts';
import type { ShareName } from './bounds.ts';
import { SHARE_MESSAGE, type Shares } from './shares.ts';

/** Shares without which no new link or command is taken. The others are given up (results, history), or are free again within moments. */
const NEEDED: readonly ShareName[] = ['links', 'advertised_bytes', 'queued_bytes', 'spilled_bytes', 'marks'];
/** Of a total in bytes so small a part is no room: the next payload may be larger. */
const SMALL_PART = 1 / 64;

/** Throws `store_full`, naming the share, where the total of one that new links and commands need has no room left. */
export function requireRoom(shares: Shares): void {
  const share = NEEDED.find((name) => hasNoRoom(shares, name));
  if (share !== undefined) throw new CallboardError('store_full', SHARE_MESSAGE.store_full, { share });
}

function hasNoRoom(shares: Shares, share: ShareName): boolean {
  const { total } = shares.bounds[share];
  if (total === null) return false;
  const room = total - shares.used(share);
  return share.endsWith('_bytes') ? room < total * SMALL_PART : room < 1;
}
