/**
 * Encodes and decodes the actions that a client advertises, and computes their revision: a hash that is the same for
 * the same actions in the same order.
 */
import { BoundedMap } from '../../core/collections.ts';
import type { Connection } from '../../core/connections/connection.ts';
import type { Store } from './store.ts';

type Actions = Connection['actions'];
type Hasher = Pick<Store, 'hash'>;

/** The revision of a list of actions, and the length of its JSON. The JSON is not cached, because it may be large. */
type KnownRevision = { readonly revision: string; readonly chars: number };
const knownRevisions = new WeakMap<Actions, KnownRevision>();

/**
 * The decoded lists by revision, while some row holds them. Clients of the same application advertise the same list, so
 * it is decoded and stored once.
 */
const decodedLists = new BoundedMap<string, WeakRef<Actions>>({ most: 1_000, order: 'used' });

export function decodeActions(text: string, revision: string | undefined): Actions {
  if (revision === undefined) return JSON.parse(text) as Actions;
  const known = decodedLists.get(revision)?.deref();
  if (known && knownRevisions.get(known)?.chars === text.length) return known;
  const actions = JSON.parse(text) as Actions;
  knownRevisions.set(actions, { revision, chars: text.length });
  decodedLists.set(revision, new WeakRef(actions));
  return actions;
}

export function revisionOf(store: Hasher, actions: Actions): string {
  return (knownRevisions.get(actions) ?? note(store, actions, JSON.stringify(actions))).revision;
}

/** Returns the actions as JSON, and their revision. */
export function advertisementOf(store: Hasher, actions: Actions): readonly [text: string, revision: string] {
  const text = JSON.stringify(actions);
  return [text, (knownRevisions.get(actions) ?? note(store, actions, text)).revision];
}

/** Returns the length of the actions as JSON, in characters. */
export function advertisedChars(store: Hasher, actions: Actions): number {
  return (knownRevisions.get(actions) ?? note(store, actions, JSON.stringify(actions))).chars;
}

function note(store: Hasher, actions: Actions, text: string): KnownRevision {
  const made = { revision: store.hash(text), chars: text.length };
  knownRevisions.set(actions, made);
  return made;
}
