/**
 * Hints in the `extensions` of types and fields that allow caching the text of an entity (writer/texts.ts). A resolver
 * without a hint, and any field with arguments, may depend on anything.
 */

/**
 * The values of the type are immutable entities of core. Every change creates a new object, including a change of
 * something that is reached through exposed fields.
 */
export const ENTITY = { entity: true } as const;

/** The resolver reads only its parent, neither the context nor the clock. Exposed fields do not need this hint. */
export const PURE = { pure: true } as const;

/**
 * The field is a leaf that the resolver computes cheaply and synchronously from its parent and the time. It is resolved
 * each time, even if the text of its entity is cached.
 */
export const DERIVED = { derived: true } as const;

/**
 * Returns the hint for an entity with derived fields, which also allows caching lists of such entities. `changesAt`
 * returns the earliest time after `now` at which any derived field may change while the entity stays the same object,
 * in epoch milliseconds; Infinity: never.
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
