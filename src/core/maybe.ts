/** A value or a promise of it: the memory backend answers in the same tick, a store over the network does not. */
export type Maybe<T> = T | Promise<T>;

/** Maps a value; in the same tick if it is not a promise. */
export function andThen<T, U>(value: Maybe<T>, map: (value: T) => Maybe<U>): Maybe<U> {
  return value instanceof Promise ? value.then(map) : map(value);
}

/** Maps two values; in the same tick if neither is a promise. Both operations run concurrently. */
export function both<A, B, T>(first: Maybe<A>, second: Maybe<B>, map: (first: A, second: B) => T): Maybe<T> {
  if (!(first instanceof Promise) && !(second instanceof Promise)) return map(first, second);
  return Promise.all([first, second]).then(([one, other]) => map(one, other));
}

/** Runs `run` now and returns a promise of its value. An error that `run` throws becomes a rejection. */
export function promised<T>(run: () => Maybe<T>): Promise<T> {
  try {
    const value = run();
    return value instanceof Promise ? value : Promise.resolve(value);
  } catch (error) {
    return Promise.reject(error);
  }
}

/** Runs `otherwise` if `run` throws or rejects, and returns its value or throws its error instead. */
export function orElse<T, U>(run: () => Maybe<T>, otherwise: (error: unknown) => Maybe<U>): Maybe<T | U> {
  try {
    const value = run();
    return value instanceof Promise ? value.catch(otherwise) : value;
  } catch (error) {
    return otherwise(error);
  }
}
