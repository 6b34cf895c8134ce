/**
 * Holds the current numbers of all counters, sampled gauges and histograms of a process in one array. It keeps no
 * history.
 */
import { BUCKETS, bucketOf } from '../core/metrics/buckets.ts';

/**
 * The most label values of one metric. They come from closed sets; as a safeguard, further values are counted as
 * `other`.
 */
const LABELS_MAX = 64;
/** The number of counters for which the arrays have room at first. */
const FIRST_SIZE = 256;

/**
 * The part of the array that belongs to one counter, gauge or histogram with one value of its label: `size` numbers
 * from index `base` on.
 */
export type Cell = {
  readonly label: string | undefined;
  readonly base: number;
  readonly size: number;
  /** The sum of the durations of a histogram, in milliseconds. */
  sum: number;
};

/** All cells of one counter or histogram, by label value. */
export type Family = {
  readonly size: number;
  readonly cells: Map<string | undefined, Cell>;
  /** The cell without a label, which is found faster here than in the map. */
  plain: Cell | null;
};

export class Counts {
  readonly #families = new Map<string, Family>();
  #used = 0;
  /** What was counted since the last `flush`. Counting a command costs a few increments here and nothing else. */
  #fresh = new Int32Array(FIRST_SIZE);
  /** The totals at the last `flush`. */
  #before = new Float64Array(FIRST_SIZE);

  /** `single`: the names of the counters and gauges, which have one number each. */
  constructor(single: readonly string[], histograms: readonly string[]) {
    for (const name of single) this.#families.set(name, { size: 1, cells: new Map(), plain: null });
    for (const name of histograms) this.#families.set(name, { size: BUCKETS, cells: new Map(), plain: null });
  }

  count(name: string, label: string | undefined): void {
    const cell = this.#cellOf(name, label);
    if (cell) this.#fresh[cell.base] = (this.#fresh[cell.base] ?? 0) + 1;
  }

  /** Sets the value of a gauge, which is a whole number, until the next flush. */
  set(name: string, label: string | undefined, value: number): void {
    const cell = this.#cellOf(name, label);
    if (cell) this.#fresh[cell.base] = value;
  }

  /**
   * Counts a duration in a histogram, and returns the cell in which it was counted; undefined if there is no such
   * histogram.
   */
  observe(name: string, ms: number, label: string | undefined): Cell | undefined {
    const cell = this.#cellOf(name, label);
    if (!cell) return undefined;
    const at = cell.base + bucketOf(ms);
    this.#fresh[at] = (this.#fresh[at] ?? 0) + 1;
    if (ms > 0) cell.sum += ms;
    return cell;
  }

  /** Returns the used cells of a counter, gauge or histogram. */
  cells(name: string): readonly Cell[] {
    return [...(this.#families.get(name)?.cells.values() ?? [])];
  }

  /** Returns the total at this index of the array since the process started. */
  total(place: number): number {
    return (this.#before[place] ?? 0) + (this.#fresh[place] ?? 0);
  }

  /** The number of entries of the array that are in use. */
  get size(): number {
    return this.#used;
  }

  /**
   * Calls `take` with each index at which something was counted since the last flush, in ascending order, and with its
   * count.
   */
  eachFresh(take: (place: number, count: number) => void): void {
    for (let place = 0; place < this.#used; place++) {
      const count = this.#fresh[place] ?? 0;
      if (count !== 0) take(place, count);
    }
  }

  flush(): void {
    this.eachFresh((place, count) => (this.#before[place] = (this.#before[place] ?? 0) + count));
    this.#fresh.fill(0, 0, this.#used);
  }

  /** Returns the cell of this name and label, which is made when it is first used. */
  #cellOf(name: string, label: string | undefined): Cell | undefined {
    const family = this.#families.get(name);
    if (!family) return undefined;
    return (label === undefined ? family.plain : family.cells.get(label)) ?? this.#open(family, label);
  }

  #open(family: Family, given: string | undefined): Cell {
    const label = given !== undefined && family.cells.size >= LABELS_MAX ? 'other' : given;
    const known = family.cells.get(label);
    if (known) return known;
    const cell: Cell = { label, base: this.#used, size: family.size, sum: 0 };
    family.cells.set(label, cell);
    if (label === undefined) family.plain = cell;
    this.#used += family.size;
    if (this.#used > this.#fresh.length) this.#grow(2 * this.#used);
    return cell;
  }

  #grow(length: number): void {
    const [fresh, before] = [new Int32Array(length), new Float64Array(length)];
    fresh.set(this.#fresh);
    before.set(this.#before);
    [this.#fresh, this.#before] = [fresh, before];
  }
}
