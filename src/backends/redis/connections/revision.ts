/**
 * Computes the revision of the actions that a client advertises: a hash, the same for the same actions in the same
 * order.
 */
import type { Connection } from '../../../core/connections/connection.ts';
import type { Store } from '../store/store.ts';

const known = new WeakMap<Connection['actions'], string>();

export function revisionOf(store: Pick<Store, 'hash'>, actions: Connection['actions']): string {
  const revision = known.get(actions) ?? store.hash(JSON.stringify(actions));
  known.set(actions, revision);
  return revision;
}
