/** An answer now or later: memory answers in the same tick, a store over the network does not. */
export type Maybe<T> = T | Promise<T>;

/** Maps without leaving the tick when the value is already there. */
export function andThen<T, U>(value: Maybe<T>, map: (value: T) => Maybe<U>): Maybe<U> {
  return value instanceof Promise ? value.then(map) : map(value);
}
