/** A value's place in a list. Its links belong to the list: use it only as the argument of `remove`. */
export type Entry<T> = { readonly value: T; previous: Entry<T> | null; next: Entry<T> | null; listed: boolean };

/**
 * A doubly linked list: append, remove from any place and read either end, each in constant time. (A Map keeps the
 * order of insertion too, but finds its first entry only by passing all that were deleted before it.)
 */
export interface List<T> {
  push(value: T): Entry<T>;
  /** Removing twice does nothing. */
  remove(entry: Entry<T>): void;
  first(): Entry<T> | null;
  last(): Entry<T> | null;
}

export function createList<T>(): List<T> {
  let head: Entry<T> | null = null;
  let tail: Entry<T> | null = null;
  return {
    push(value) {
      const entry: Entry<T> = { value, previous: tail, next: null, listed: true };
      if (tail) tail.next = entry;
      else head = entry;
      tail = entry;
      return entry;
    },
    remove(entry) {
      if (!entry.listed) return;
      entry.listed = false;
      if (entry.previous) entry.previous.next = entry.next;
      else head = entry.next;
      if (entry.next) entry.next.previous = entry.previous;
      else tail = entry.previous;
    },
    first: () => head,
    last: () => tail,
  };
}
