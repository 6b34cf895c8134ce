/** Tests the queue of the memory backend from which items may be deleted at any position. */
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { SparseQueue } from '../../src/backends/memory/sparse-queue.ts';

it('returns the oldest remaining item, whichever items were removed before it', () => {
  const act = fc.oneof(fc.constant('push' as const), fc.constant('first' as const), fc.nat(200));
  fc.assert(
    fc.property(fc.array(act, { maxLength: 300, size: 'max' }), (acts) => {
      const gone = new Set<number>();
      const queue = new SparseQueue<number>((item) => gone.has(item));
      let left: number[] = [];
      let made = 0;
      for (const one of acts) {
        if (one === 'push') {
          queue.push(made);
          left.push(made++);
        } else {
          const at = one === 'first' ? 0 : one % Math.max(1, left.length);
          const item = left[at];
          if (item === undefined) continue;
          gone.add(item);
          left = left.filter((other) => other !== item);
          queue.noteDeleted();
        }
        expect([queue.first(), queue.size]).toEqual([left[0], left.length]);
      }
    }),
  );
});

it('keeps its order over many items, and after items left from the middle', () => {
  const gone = new Set<number>();
  const queue = new SparseQueue<number>((item) => gone.has(item));
  const leave = (item: number): void => {
    gone.add(item);
    queue.noteDeleted();
  };
  for (let i = 0; i < 5_000; i++) queue.push(i);
  for (let i = 0; i < 5_000; i += 2) leave(i);
  for (let i = 1; i < 4_000; i += 2) {
    expect(queue.first()).toBe(i);
    leave(i);
  }
  for (let i = 5_000; i < 10_000; i++) queue.push(i);
  const order: number[] = [];
  for (let item = queue.first(); item !== undefined; item = queue.first()) {
    order.push(item);
    leave(item);
  }
  const odd = Array.from({ length: 500 }, (_, i) => 4_001 + 2 * i);
  expect(order).toEqual([...odd, ...Array.from({ length: 5_000 }, (_, i) => 5_000 + i)]);
  expect(queue.size).toBe(0);
});
