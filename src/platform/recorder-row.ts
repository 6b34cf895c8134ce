/**
 * Builds the points of one recorded time series: those of a counter, sampled gauge or histogram with one value of its
 * label.
 */
import type { ReadingRow } from '../core/metrics/reading.ts';
import type { Cell } from './counts.ts';

/**
 * How the numbers of several slots are combined into one point. `sum`: the sum, for a counter. `last` and `highest`:
 * the last or the highest sample, for a gauge.
 */
export type Mode = 'sum' | 'last' | 'highest';

/**
 * A count that was kept in one slot. `number` is the number of the slot, and `point` the index of the point that the
 * slot is part of. `place` is the count's index in the array of all numbers.
 */
export type Kept = {
  readonly point: number;
  readonly number: number;
  readonly place: number;
  readonly count: number;
};

/**
 * Collects the numbers of one cell: for each point, one number per place in the array. A counter or a gauge has one
 * place, a histogram one per bucket.
 */
export class CellReading {
  readonly #name: string;
  readonly #cell: Cell;
  readonly #mode: Mode;
  /** The numbers by point, and then by their index (`place`) in the array of numbers. */
  readonly #counts = new Map<number, Map<number, { number: number; count: number }>>();

  constructor(name: string, cell: Cell, mode: Mode) {
    this.#name = name;
    this.#cell = cell;
    this.#mode = mode;
  }

  places(): readonly number[] {
    const { base, size } = this.#cell;
    return Array.from({ length: size }, (_, i) => base + i);
  }

  /** Adds a number to its point. The caller adds the numbers of earlier slots first. */
  add({ point, number, place, count }: Kept): void {
    const known = this.#counts.get(point);
    const counts = known ?? new Map<number, { number: number; count: number }>();
    if (!known) this.#counts.set(point, counts);
    const before = counts.get(place)?.count ?? 0;
    counts.set(place, { number, count: this.#combine(before, count) });
  }

  /**
   * Returns the rows of the reading. `lasts`: the last slot of each point. A gauge that has no number in that slot was
   * zero. Returns no row if the cell has no numbers.
   */
  reading(lasts: ReadonlyMap<number, number>): readonly ReadingRow[] {
    const { base, size, label = null } = this.#cell;
    const counts = [...this.#counts].flatMap(([point, places]) =>
      [...places].flatMap(([place, { number, count }]) => {
        if (this.#mode === 'last' && number !== lasts.get(point)) return [];
        return size === 1 ? [point, count] : [point, place - base, count];
      }),
    );
    return counts.length === 0 ? [] : [{ name: this.#name, label, counts }];
  }

  #combine(before: number, count: number): number {
    if (this.#mode === 'sum') return before + count;
    return this.#mode === 'last' ? count : Math.max(before, count);
  }
}
