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
