/** A doubly linked list whose items remember their places. */

/** A value's place in a list. Its links belong to the list: use it only as the argument of `remove`. */
export type ListItem<T> = {
  readonly value: T;
  previous: ListItem<T> | null;
  next: ListItem<T> | null;
  listed: boolean;
};

/**
 * A doubly linked list: append, remove from any place and read either end, each in constant time. (A Map keeps the
 * order of insertion too, but finds its first entry only by passing all that were deleted before it, and replaces its
 * table again and again.) While it is being iterated, nothing may be removed.
 */
export class List<T> {
  #first: ListItem<T> | null = null;
  #last: ListItem<T> | null = null;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get first(): ListItem<T> | null {
    return this.#first;
  }

  get last(): ListItem<T> | null {
    return this.#last;
  }

  push(value: T): ListItem<T> {
    const place: ListItem<T> = { value, previous: this.#last, next: null, listed: true };
    if (this.#last) this.#last.next = place;
    else this.#first = place;
    this.#last = place;
    this.#size++;
    return place;
  }

  /** Removing twice does nothing. */
  remove(place: ListItem<T>): void {
    if (!place.listed) return;
    const { previous, next } = place;
    if (previous) previous.next = next;
    else this.#first = next;
    if (next) next.previous = previous;
    else this.#last = previous;
    place.listed = false;
    // A removed place that V8 has promoted to the old generation would keep its neighbours alive.
    place.previous = null;
    place.next = null;
    this.#size--;
  }

  *[Symbol.iterator](): Generator<T> {
    for (let place = this.#first; place; place = place.next) yield place.value;
  }
}
