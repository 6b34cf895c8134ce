/**
 * Hints that types and fields give in `extensions`, so that the text of an entity can be cached (writer/texts.ts). A
 * resolver without a hint, and any field with arguments, may depend on anything.
 */

/**
 * The values of the type are core's immutable entities: a change creates a new object, also when it changes something
 * reached through exposed fields.
 */
export const ENTITY = { entity: true } as const;

/** The resolver reads only its parent: no context, no clock. Exposed fields do not need this hint. */
export const PURE = { pure: true } as const;

/**
 * A leaf that the resolver computes cheaply and synchronously from its parent and the time. It is resolved each time,
 * also when the text of its entity is cached.
 */
export const DERIVED = { derived: true } as const;

/**
 * Makes the hint of an entity with derived fields. `changesAt` returns the earliest time after `now` at which any of
 * them may change while the entity stays the same (epoch milliseconds; Infinity: never). Lists of such entities can
 * then be cached.
 */
export function timedEntity<T extends object>(changesAt: (entity: T, now: number) => number) {
  return { entity: true, changesAt } as const;
}

/** Returns the `changesAt` of a type; null when the type does not declare one. */
export function changesAtOf({ extensions }: { readonly extensions: Readonly<Record<string, unknown>> }) {
  const { changesAt } = extensions;
  return isChangesAt(changesAt) ? changesAt : null;
}

function isChangesAt(value: unknown): value is (entity: unknown, now: number) => number {
  return typeof value === 'function';
}
