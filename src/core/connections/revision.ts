/** The revision of the actions that a client advertises: a text that is another one when they are others. */
import type { Connection } from './connection.ts';

type Actions = Connection['actions'];

const known = new WeakMap<Actions, string>();

/** Returns the digest of the actions in their order, in every process the same. It is computed once for each list. */
export function revisionOf(actions: Actions, sha256: (text: string) => string): string {
  const before = known.get(actions);
  if (before !== undefined) return before;
  const revision = sha256(JSON.stringify(actions));
  known.set(actions, revision);
  return revision;
}
