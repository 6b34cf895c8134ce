/** Loads values by key: collected into batches in shared mode, each key immediately in direct mode. */
import DataLoader from 'dataloader';
import { CallboardError } from '../../core/errors.ts';
import { LazyMap } from '../../core/lazy.ts';
import { thenDo, type MaybePromise } from '../../core/maybe-promise.ts';

/**
 * Chooses how values are loaded. In direct mode each key is loaded at once, since all state is in this process' memory
 * and that costs less than a batch.
 */
export function loadingOf({ mode }: { readonly mode: 'direct' | 'shared' }): Loading {
  return mode === 'direct' ? AT_ONCE : BATCHED;
}

/** Loads values by key. A value is cached until `forget`. */
export type Load<K, V> = { readonly load: (key: K) => MaybePromise<V>; readonly forget: () => void };
export type LoadPage<K, V> = { readonly load: (key: K, first: number) => MaybePromise<V>; readonly forget: () => void };
/** Creates loaders of values, and of first pages. */
export type Loading = {
  single<K, V>(keyOf: (key: K) => string, batch: (keys: readonly K[]) => MaybePromise<readonly V[]>): Load<K, V>;
  /**
   * Creates a loader of first pages, with one batch per page size: a page of one size cannot serve a request for
   * another size.
   */
  pages<K, V>(
    keyOf: (key: K) => string,
    batch: (keys: readonly K[], first: number) => MaybePromise<readonly V[]>,
  ): LoadPage<K, V>;
};

/** Loads values in batches. Each DataLoader is created on first use, since most requests need few of them. */
const BATCHED: Loading = {
  single<K, V>(keyOf: (key: K) => string, batch: (keys: readonly K[]) => MaybePromise<readonly V[]>): Load<K, V> {
    let loader: DataLoader<K, V, string> | undefined;
    const made = (): DataLoader<K, V, string> =>
      (loader ??= new DataLoader<K, V, string>(async (keys) => batch(keys), { cacheKeyFn: keyOf }));
    return { load: (key) => made().load(key), forget: () => void loader?.clearAll() };
  },
  pages(keyOf, batch) {
    return bySize((first) => BATCHED.single(keyOf, (keys) => batch(keys, first)));
  },
};

const AT_ONCE: Loading = {
  single<K, V>(keyOf: (key: K) => string, batch: (keys: readonly K[]) => MaybePromise<readonly V[]>): Load<K, V> {
    const loaded = new LazyMap<string, MaybePromise<V>>();
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
  },
  pages(keyOf, batch) {
    return bySize((first) => AT_ONCE.single(keyOf, (keys) => batch(keys, first)));
  },
};

function bySize<K, V>(make: (first: number) => Load<K, V>): LoadPage<K, V> {
  const sizes = new LazyMap<number, Load<K, V>>();
  return {
    load(key, first) {
      const known = sizes.get(first);
      if (known) return known.load(key);
      const loader = make(first);
      sizes.set(first, loader);
      return loader.load(key);
    },
    forget: () => sizes.clear(),
  };
}

function onlyOne<V>(values: readonly V[]): V {
  const [value] = values;
  if (value === undefined) throw new CallboardError('internal', 'A batch load of one key returned no value.');
  return value;
}
