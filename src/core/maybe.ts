/** An answer now or later: memory answers in the same tick, a store over the network does not. */
export type Maybe<T> = T | Promise<T>;

/** Maps without leaving the tick when the value is already there. */
export function andThen<T, U>(value: Maybe<T>, map: (value: T) => Maybe<U>): Maybe<U> {
  return value instanceof Promise ? value.then(map) : map(value);
}

/** Maps two, which were both begun before either is waited for. */
export function both<A, B, T>(first: Maybe<A>, second: Maybe<B>, map: (first: A, second: B) => T): Maybe<T> {
  if (!(first instanceof Promise) && !(second instanceof Promise)) return map(first, second);
  return Promise.all([first, second]).then(([one, other]) => map(one, other));
}

/** As a promise, in the same tick as far as the answer is there; what is thrown at once rejects too. */
export function promised<T>(run: () => Maybe<T>): Promise<T> {
  try {
    const value = run();
    return value instanceof Promise ? value : Promise.resolve(value);
  } catch (error) {
    return Promise.reject(error);
  }
}

/** Runs `otherwise` where `run` throws or rejects; what that throws counts instead. */
export function orElse<T, U>(run: () => Maybe<T>, otherwise: (error: unknown) => Maybe<U>): Maybe<T | U> {
  try {
    const value = run();
    return value instanceof Promise ? value.catch(otherwise) : value;
  } catch (error) {
    return otherwise(error);
  }
}
