/** A first-in, first-out queue. Each step takes amortised constant time, and items need no object of their own. */
export interface Queue<T> {
  readonly size: number;
  push(item: T): void;
  first(): T | undefined;
  /** Removes the first item. */
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
      // Clears the slot at once, so that the item is not held until the array is shortened.
      items[head++] = undefined;
      if (head * 2 <= items.length) return;
      items = items.slice(head);
      head = 0;
    },
  };
}
