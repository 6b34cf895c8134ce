/**
 * Computes the text and the revision of the actions that a client advertises. The revision is a hash, the same for the
 * same actions in the same order.
 */
import type { Connection } from '../../../core/connections/connection.ts';
import type { Store } from '../store/store.ts';

type Actions = Connection['actions'];
type Hasher = Pick<Store, 'hash'>;

/** What is remembered of a list of actions. Its text may be large and is not. */
type Known = { readonly revision: string; readonly chars: number };
const known = new WeakMap<Actions, Known>();

export function revisionOf(store: Hasher, actions: Actions): string {
  return (known.get(actions) ?? note(store, actions, JSON.stringify(actions))).revision;
}

/** Returns the actions as JSON, and their revision. */
export function advertisementOf(store: Hasher, actions: Actions): readonly [text: string, revision: string] {
  const text = JSON.stringify(actions);
  return [text, (known.get(actions) ?? note(store, actions, text)).revision];
}

/** Returns the length of the actions as JSON, in characters. */
export function advertisedChars(store: Hasher, actions: Actions): number {
  return (known.get(actions) ?? note(store, actions, JSON.stringify(actions))).chars;
}

function note(store: Hasher, actions: Actions, text: string): Known {
  const made = { revision: store.hash(text), chars: text.length };
  known.set(actions, made);
  return made;
}
