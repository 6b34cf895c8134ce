/**
 * Loads nested fields in batches: all parents of one tick cause a single call of core. In direct mode each key is
 * loaded at once and alone, which is cheaper because all state is in memory. Loaded values are cached in the context.
 */
import DataLoader from 'dataloader';
import { ChurnMap } from '../../core/collections.ts';
import type { PageArgs } from '../../core/cursors.ts';
import { CallboardError } from '../../core/errors.ts';
import { thenDo, type MaybePromise } from '../../core/maybe-promise.ts';
import type { Context, Forgets } from './context.ts';

export type Load<K, V> = Forgets & { readonly load: (key: K) => MaybePromise<V> };
/** Reads the values of several keys, in the order of the keys. */
type Batch<K, V> = (keys: readonly K[]) => MaybePromise<readonly V[]>;

let loaders = 0;

/**
 * Creates a function that returns the context's own instance of a loader. The loader has one number for all contexts.
 */
export function loaderOf<L extends Forgets>(create: (context: Context) => L): (context: Context) => L {
  const number = loaders++;
  // The cast is safe: no other loader has this number.
  return (context) => context.loader(number, create) as L;
}

/** Creates a function that loads values by key. `keyOf` must return the key as text. */
export function loadBy<K, V>(
  keyOf: (key: K) => string,
  batch: (context: Context, keys: readonly K[]) => MaybePromise<readonly V[]>,
): (context: Context, key: K) => MaybePromise<V> {
  const own = loaderOf((context) => createLoad(context, keyOf, (keys) => batch(context, keys)));
  return (context, key) => own(context).load(key);
}

/** Reads the first pages of several keys. */
type FirstPages<K, V> = (context: Context, keys: readonly K[], first: number) => MaybePromise<readonly V[]>;

/**
 * Creates a function that loads first pages by key. Each page size has its own batches, because a page of one size
 * cannot answer a request for another.
 */
export function loadFirstBy<K, V>(
  keyOf: (key: K) => string,
  batch: FirstPages<K, V>,
): (context: Context, key: K, first: number) => MaybePromise<V> {
  const own = loaderOf((context) =>
    bySize((first) => createLoad(context, keyOf, (keys) => batch(context, keys, first))),
  );
  return (context, key, first) => own(context).load(key, first);
}

/** Creates functions that load pages by key: first pages in batches, and all later pages one at a time with `later`. */
export function loadPagesBy<K, V, P>(
  keyOf: (key: K) => string,
  batch: FirstPages<K, V>,
  later: (context: Context, key: K, page: PageArgs) => MaybePromise<P>,
) {
  const first = loadFirstBy(keyOf, batch);
  return {
    first,
    page: (context: Context, key: K, page: PageArgs & { readonly first: number }): MaybePromise<V | P> =>
      page.after ? later(context, key, page) : first(context, key, page.first),
  };
}

function bySize<K, V>(create: (size: number) => Load<K, V>) {
  const sizes = new ChurnMap<number, Load<K, V>>();
  return {
    load(key: K, size: number): MaybePromise<V> {
      const known = sizes.get(size);
      if (known) return known.load(key);
      const loader = create(size);
      sizes.set(size, loader);
      return loader.load(key);
    },
    forget: () => sizes.clear(),
  };
}

function createLoad<K, V>({ core }: Context, keyOf: (key: K) => string, batch: Batch<K, V>): Load<K, V> {
  return core.mode === 'direct' ? loadAtOnce(keyOf, batch) : loadInBatches(keyOf, batch);
}

export function loadInBatches<K, V>(keyOf: (key: K) => string, batch: Batch<K, V>): Load<K, V> {
  const loader = new DataLoader<K, V, string>(async (keys) => batch(keys), { cacheKeyFn: keyOf });
  return { load: (key) => loader.load(key), forget: () => void loader.clearAll() };
}

function loadAtOnce<K, V>(keyOf: (key: K) => string, batch: Batch<K, V>): Load<K, V> {
  const loaded = new ChurnMap<string, MaybePromise<V>>();
  return {
    load(key) {
      const text = keyOf(key);
      const known = loaded.get(text);
      if (known !== undefined) return known;
      const value = thenDo(batch([key]), onlyOne);
      loaded.set(text, value);
      return value;
    },
    forget: () => loaded.clear(),
  };
}

function onlyOne<V>(values: readonly V[]): V {
  const [value] = values;
  if (value === undefined) throw new CallboardError('internal', 'A batch load of one key returned no value.');
  return value;
}
