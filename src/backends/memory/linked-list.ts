/** A list from which items are removed in constant time. */

/** The node of a value in a list. Only the list may use its links: pass the node to `remove` only. */
export type ListItem<T> = {
  readonly value: T;
  previous: ListItem<T> | null;
  next: ListItem<T> | null;
  listed: boolean;
};

/**
 * A doubly linked list. Appending, removing any node and reading either end each take constant time. A Map is no
 * replacement: it keeps the order of insertion, but to find its first entry it skips all deleted entries before that
 * entry, and it replaces its table again and again. No node may be removed during an iteration.
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

  /** Removes a node. A second removal of the same node does nothing. */
  remove(place: ListItem<T>): void {
    if (!place.listed) return;
    const { previous, next } = place;
    if (previous) previous.next = next;
    else this.#first = next;
    if (next) next.previous = previous;
    else this.#last = previous;
    place.listed = false;
    // Unlinks the removed node too. If V8 has promoted it to the old generation, it would keep its neighbours alive.
    place.previous = null;
    place.next = null;
    this.#size--;
  }

  *[Symbol.iterator](): Generator<T> {
    for (let place = this.#first; place; place = place.next) yield place.value;
  }
}
