/** Computes the revision of a client's advertised actions: a digest that changes whenever the actions change. */
import type { Connection } from './connection.ts';

type Actions = Connection['actions'];

const known = new WeakMap<Actions, string>();

/**
 * Returns the digest of the actions in their order. All processes compute the same digest. It is computed once for each
 * list.
 */
export function revisionOf(actions: Actions, sha256: (text: string) => string): string {
  const before = known.get(actions);
  if (before !== undefined) return before;
  const revision = sha256(JSON.stringify(actions));
  known.set(actions, revision);
  return revision;
}
