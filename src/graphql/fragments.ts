/** Texts of entities, kept while their entities live. */
export type Fragments<T> = {
  get(entity: object): T | undefined;
  /** `chars`: how long the texts in it are. */
  set(entity: object, kept: T, chars: number): void;
};

/** Makes stores that share one bound. */
export type FragmentStores = { create<T>(): Fragments<T> };

/** What a kept fragment costs beside its text. */
const OVERHEAD = 200;

/**
 * An entity is immutable, so what was written of it holds as long as there is the entity, and goes with it. In all at most `chars` characters
 * are kept; when they are used up, everything is dropped at once and begins anew. What went with its entity still counts until then.
 */
export function createFragmentStores(chars: number): FragmentStores {
  let generation = 0;
  let used = 0;
  const pay = (cost: number): void => {
    used += cost + OVERHEAD;
    if (used <= chars) return;
    generation++;
    used = 0;
  };
  return {
    create<T>(): Fragments<T> {
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
