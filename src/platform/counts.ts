/**
 * Holds the current values of all counters, sampled gauges and histograms of a process, and exemplars; keeps no
 * history.
 */
import { BUCKETS, bucketOf, shownIndexOf } from '../core/metrics/buckets.ts';
import { SAMPLED_GAUGES, type MeasuredCommand, type SampleReader, type SampledGaugeName } from '../core/metrics.ts';
import { DECLINED, isSampled, readTraceparent } from '../core/trace-context.ts';

/**
 * The maximum number of label values of one metric. Labels take values from closed sets; any value beyond the maximum
 * is counted as `other`.
 */
const LABELS_MAX = 64;
/** How many numbers the arrays can hold at first. */
const FIRST_SIZE = 256;

/**
 * Describes where the numbers of one metric with one label value are in the array: `size` numbers, from index `base`
 * on.
 */
export type Cell = {
  readonly label: string | undefined;
  readonly base: number;
  readonly size: number;
  /** The sum of the durations of a histogram, in milliseconds. */
  sum: number;
};

/** All cells of one counter, gauge or histogram, by label value. */
type Family = {
  readonly size: number;
  readonly cells: Map<string | undefined, Cell>;
  /** The cell without a label, stored here because that is faster than a look-up in the map. */
  plain: Cell | null;
};

export class Counts {
  readonly #families = new Map<string, Family>();
  #used = 0;
  /** What was counted since the last `flush`, by index. Counting one command costs only a few increments here. */
  #fresh = new Int32Array(FIRST_SIZE);
  /** The totals at the last `flush`, by index. */
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

  /** Sets a gauge to a whole number, which stays until the next flush. */
  set(name: string, label: string | undefined, value: number): void {
    const cell = this.#cellOf(name, label);
    if (cell) this.#fresh[cell.base] = value;
  }

  /** Counts a duration in a histogram and returns the cell; undefined if there is no histogram of this name. */
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

  /** Returns what was counted at this index since the process started. */
  total(place: number): number {
    return (this.#before[place] ?? 0) + (this.#fresh[place] ?? 0);
  }

  /** The number of indexes that are in use. */
  get size(): number {
    return this.#used;
  }

  /** Calls `take` with each index at which something was counted since the last flush, ascending, and its count. */
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

  /** Returns the cell of this name and label, and creates it on first use. Undefined for an unknown name. */
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

/** Reads the sampled gauges of this process, and says how several samples of a gauge are combined into one. */
export class Gauges {
  readonly #counts: Counts;
  readonly #readers = new Map<SampledGaugeName, SampleReader>();

  constructor(counts: Counts) {
    this.#counts = counts;
  }

  add(name: SampledGaugeName, read: SampleReader): void {
    this.#readers.set(name, read);
  }

  /** Reads every gauge and puts its values into `Counts`, which keeps them until the next flush. */
  sample(): void {
    for (const [name, read] of this.#readers) {
      for (const { label } of this.#counts.cells(name)) this.#counts.set(name, label, 0);
      for (const [label, value] of read()) this.#counts.set(name, label ?? undefined, Math.max(0, Math.round(value)));
    }
  }

  /**
   * Returns the indexes in `Counts` of the gauges' values, by how their samples are combined. A point of a time series
   * may cover several samples: for an index in `last` it shows the last sample, and for an index in `highest` the
   * highest one.
   */
  places(): { readonly last: ReadonlySet<number>; readonly highest: ReadonlySet<number> } {
    const places = { last: new Set<number>(), highest: new Set<number>() };
    for (const name of this.#readers.keys()) {
      const found = SAMPLED_GAUGES[name] === 'max' ? places.highest : places.last;
      for (const { base } of this.#counts.cells(name)) found.add(base);
    }
    return places;
  }
}

/**
 * An exemplar of a bucket: the labels and the duration of one command. `at`: the time of measurement, in epoch seconds.
 */
export type Exemplar = {
  readonly labels: Readonly<Record<string, string>>;
  readonly seconds: number;
  readonly at: number;
};

/** The most characters of an exemplar's labels, names and values together, as OpenMetrics prescribes. */
const LABELS_MAX_CHARS = 128;

/**
 * Keeps at most one exemplar for each shown bucket and time slot. It keeps none before `begin`, because nothing reads
 * them until then.
 */
export class Exemplars {
  readonly #now: () => number;
  /** The exemplars of the shown buckets of each cell, and the slots in which they were taken. */
  #kept: Map<Cell, { readonly exemplar: Exemplar; readonly slot: number }[]> | null = null;
  #slot = 0;

  constructor(now: () => number) {
    this.#now = now;
  }

  begin(): void {
    this.#kept ??= new Map();
  }

  /** Begins a new time slot, in which each bucket may take a new exemplar. */
  nextSlot(): void {
    this.#slot++;
  }

  add(cell: Cell, ms: number, of: MeasuredCommand): void {
    if (!this.#kept) return;
    const known = this.#kept.get(cell);
    const shown = shownIndexOf(ms);
    if (known?.[shown]?.slot === this.#slot) return;
    const labels = labelsOf(of);
    if (!labels) return;
    const examples = known ?? [];
    const exemplar = { labels, seconds: Math.max(0, ms) / 1000, at: this.#now() / 1000 };
    examples[shown] = { exemplar, slot: this.#slot };
    if (!known) this.#kept.set(cell, examples);
  }

  /** Returns the exemplar of a shown bucket. `shown`: the bucket's index, as `shownIndexOf` returns it. */
  get(cell: Cell, shown: number): Exemplar | undefined {
    return this.#kept?.get(cell)?.[shown]?.exemplar;
  }
}

/**
 * Returns the labels of an exemplar: the trace id, if the trace is recorded anywhere, and the command id. If the two
 * are too long together, it returns only the first one that fits. Null if neither fits, because a shortened id would
 * find nothing.
 */
function labelsOf(of: MeasuredCommand): Exemplar['labels'] | null {
  const ids = { trace_id: recordedTraceOf(of), command_id: of.commandId };
  const labels: Record<string, string> = {};
  let chars = 0;
  for (const [name, value] of Object.entries(ids)) {
    if (value === null || chars + name.length + value.length > LABELS_MAX_CHARS) continue;
    chars += name.length + value.length;
    labels[name] = copyOf(value);
  }
  return chars === 0 ? null : labels;
}

/**
 * Returns the trace id of the relay's span, or of the caller's span if the relay has none. Null if the flags say that
 * the trace is not recorded.
 */
function recordedTraceOf({ callSpan, traceId, traceFlags }: MeasuredCommand): string | null {
  if (callSpan === DECLINED) return null;
  if (callSpan !== null) {
    const span = readTraceparent(callSpan, null);
    return isSampled(span.traceFlags) ? span.traceId : null;
  }
  return traceFlags === null || isSampled(traceFlags) ? traceId : null;
}

/**
 * Copies a text that may be a slice of a received frame. Without the copy, the slice would keep the whole frame in
 * memory.
 */
function copyOf(text: string): string {
  return Buffer.from(text).toString();
}
