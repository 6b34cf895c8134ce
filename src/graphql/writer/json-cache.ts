/** Keeps the JSON texts of entities, so that an unchanged entity is written once. */

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
