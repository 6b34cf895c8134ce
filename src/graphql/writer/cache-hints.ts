/**
 * Hints that types and fields give in `extensions`, so that the text of an entity can be cached (objects.ts); and the
 * caches of these texts. A resolver without a hint, and any field with arguments, may depend on anything.
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

// Keeps the JSON texts of entities, so that an unchanged entity is written once.

/** A cache of the texts of entities; each lives as long as its entity. */
export type JsonCache<T> = {
  get(entity: object): T | undefined;
  /** Caches the text of an entity. `chars`: the length of the texts in `kept`. */
  set(entity: object, kept: T, chars: number): void;
};

/** Creates caches that share one bound. */
export type JsonCaches = { create<T>(): JsonCache<T> };

/** The cost of an entry besides its text, in characters. */
const OVERHEAD = 200;

/**
 * Creates caches of the texts of entities. An entity is immutable, so its text is valid while the entity lives and is
 * freed with it. At most `chars` characters are cached in all; when they are used up, every cache is cleared at once.
 * Text that was freed with its entity still counts until then.
 */
export function createJsonCaches(chars: number): JsonCaches {
  let generation = 0;
  let used = 0;
  const pay = (cost: number): void => {
    used += cost + OVERHEAD;
    if (used <= chars) return;
    generation++;
    used = 0;
  };
  return {
    create<T>(): JsonCache<T> {
      let kept = new WeakMap<object, T>();
      let ofGeneration = generation;
      const renew = (): void => {
        kept = new WeakMap();
        ofGeneration = generation;
      };
      return {
        get: (entity) => (ofGeneration === generation ? kept.get(entity) : undefined),
        set(entity, value, cost) {
          pay(cost);
          if (ofGeneration !== generation) renew();
          kept.set(entity, value);
        },
      };
    },
  };
}
