/** First in, first out, each step in amortised constant time and without an object for each item. */
export interface Queue<T> {
  readonly size: number;
  push(item: T): void;
  first(): T | undefined;
  /** Removes the first. */
  shift(): void;
}

export function createQueue<T>(): Queue<T> {
  let items: (T | undefined)[] = [];
  let head = 0;
  return {
    get size() {
      return items.length - head;
    },
    push(item) {
      items.push(item);
    },
    first: () => items[head],
    shift() {
      if (head === items.length) return;
      // The slot is emptied at once, so that nothing is held until the array is shortened.
      items[head++] = undefined;
      if (head * 2 <= items.length) return;
      items = items.slice(head);
      head = 0;
    },
  };
}
