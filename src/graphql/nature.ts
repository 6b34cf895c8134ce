/**
 * What types and fields say of themselves by `extensions`, so that what is written of an entity can be kept (writer.ts). A field without
 * a word, and any field with arguments, is taken to depend on anything.
 */

/** The type's values are core's immutable entities: a change makes a new object, whatever hangs on it by exposed fields included. */
export const ENTITY = { entity: true } as const;

/** The resolver reads its parent and nothing else: no context, no clock. Exposed fields need not say so. */
export const PURE = { pure: true } as const;

/** A leaf that the resolver makes cheaply and at once out of its parent and the time. It is asked each time. */
export const DERIVED = { derived: true } as const;

/**
 * A mutation's field whose resolver reads its arguments and its context and never `info`. Alone in its document it may be resolved without graphql-js
 * (writer-deed.ts).
 */
export const DEED = { deed: true } as const;

export function isDeed({ extensions }: { readonly extensions: Readonly<Record<string, unknown>> }): boolean {
  return extensions['deed'] === true;
}

/**
 * Of an entity some of whose fields are derived: `changesAt` is when, after `now` (epoch milliseconds), any of them may next be another
 * although the entity is the same; Infinity when never. Lists of such entities can then be kept.
 */
export function timedEntity<T extends object>(changesAt: (entity: T, now: number) => number) {
  return { entity: true, changesAt } as const;
}

/** Null where the type does not say. */
export function changesAtOf({ extensions }: { readonly extensions: Readonly<Record<string, unknown>> }) {
  const { changesAt } = extensions;
  return isChangesAt(changesAt) ? changesAt : null;
}

function isChangesAt(value: unknown): value is (entity: unknown, now: number) => number {
  return typeof value === 'function';
}
