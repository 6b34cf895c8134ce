/**
 * A value or a promise of a value. The memory backend answers with a value, in the same tick; a store over the network
 * answers with a promise.
 */
export type MaybePromise<T> = T | Promise<T>;

/** Applies `map` to a value: in the same tick if the value is not a promise. */
export function thenDo<T, U>(value: MaybePromise<T>, map: (value: T) => MaybePromise<U>): MaybePromise<U> {
  return value instanceof Promise ? value.then(map) : map(value);
}

/**
 * Applies `map` to two values: in the same tick if neither is a promise. If both are promises, they run concurrently.
 */
export function both<A, B, T>(
  first: MaybePromise<A>,
  second: MaybePromise<B>,
  map: (first: A, second: B) => T,
): MaybePromise<T> {
  if (!(first instanceof Promise) && !(second instanceof Promise)) return map(first, second);
  return Promise.all([first, second]).then(([one, other]) => map(one, other));
}

/** Calls `run` now and returns a promise of its value. If `run` throws, the promise rejects. */
export function promised<T>(run: () => MaybePromise<T>): Promise<T> {
  try {
    const value = run();
    return value instanceof Promise ? value : Promise.resolve(value);
  } catch (error) {
    return Promise.reject(error);
  }
}

/**
 * Returns the value of `run`. If `run` throws or rejects, calls `otherwise` with the error, and returns its value or
 * throws its error.
 */
export function orElse<T, U>(
  run: () => MaybePromise<T>,
  otherwise: (error: unknown) => MaybePromise<U>,
): MaybePromise<T | U> {
  try {
    const value = run();
    return value instanceof Promise ? value.catch(otherwise) : value;
  } catch (error) {
    return otherwise(error);
  }
}
