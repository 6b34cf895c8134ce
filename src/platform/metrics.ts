/** Implements core's Metrics with numbers in memory, records them as time series, and shows them to Prometheus. */
import { COARSE, FINE, type NodeReading, type ReadingQuery, type ReadingRow } from '../core/metrics/reading.ts';
import { COUNTER_NAMES, HISTOGRAM_NAMES, SAMPLED_GAUGE_NAMES, type GaugeName, type Metrics } from '../core/metrics.ts';
import { Counts, Exemplars, Gauges, type Cell } from './counts.ts';
import type { Exposition, GaugeReader, MetricsFormat } from './prometheus.ts';

export type Meter = Metrics & {
  /** Sets the function with which each exposition reads a gauge. If it fails, the gauge keeps its last value. */
  gauge(name: GaugeName, read: () => number | Promise<number>): void;
  /** Does the same for a gauge with a label. A label value for which `read` yields no pair is not shown. */
  gauges(name: GaugeName, read: GaugeReader): void;
  /** Writes all metrics as text. */
  expose(format?: MetricsFormat): Promise<{ readonly contentType: string; readonly text: string }>;
  /** How many bytes the recorded time series take, approximately. */
  readonly recordedBytes: number;
  close(): void;
};

/**
 * Implements core's Metrics. The Prometheus client is loaded only for the first exposition, to save memory until then.
 * prom-client's histogram of garbage collections also starts then. `now`: epoch milliseconds, for the times of
 * exemplars.
 */
export function createMetrics(now: () => number = Date.now): Meter {
  const counts = new Counts([...COUNTER_NAMES, ...SAMPLED_GAUGE_NAMES], HISTOGRAM_NAMES);
  const sampled = new Gauges(counts);
  const recorder = new Recorder(counts, sampled);
  const exemplars = new Exemplars(now);
  const gauges = new Map<GaugeName, GaugeReader>();
  const open = new Map<MetricsFormat, Promise<Exposition>>();
  const load = async (format: MetricsFormat): Promise<Exposition> => {
    const { createExposition } = await import('./prometheus.ts');
    return createExposition(format, { counts, exemplars, gauges });
  };
  const totalsOf = (name: string): readonly [string, number][] =>
    counts.cells(name).map(({ label, base }) => [label === undefined ? name : `${name}:${label}`, counts.total(base)]);
  return {
    count: (name, label) => counts.count(name, label),
    observe(name, ms, label, of) {
      const cell = counts.observe(name, ms, label);
      if (of && cell) exemplars.add(cell, ms, of);
    },
    sample: (name, read) => sampled.add(name, read),
    snapshot: () => new Map(COUNTER_NAMES.flatMap(totalsOf)),
    closeSlot(at) {
      recorder.closeSlot(at);
      exemplars.nextSlot();
    },
    read: (query, at) => recorder.read(query, at),
    gauge: (name, read) => void gauges.set(name, async () => [['', await read()]]),
    gauges: (name, read) => void gauges.set(name, read),
    async expose(format = 'text') {
      if (format === 'openmetrics') exemplars.begin();
      const exposition = open.get(format) ?? load(format);
      open.set(format, exposition);
      const { contentType, text } = await exposition;
      return { contentType, text: await text() };
    },
    get recordedBytes() {
      return recorder.bytes;
    },
    close() {
      for (const exposition of open.values()) void exposition.then(({ close }) => close());
    },
  };
}

// Records counters and gauges as time series: in slots of 5 s for an hour, and in slots of a minute for a day.

/** The most bytes of all fine slots, and of all coarse slots. Beyond them the oldest slots are dropped early. */
const SLOTS_BYTES = { fine: 448 * 1024, coarse: 576 * 1024 } as const;

class Recorder {
  readonly #counts: Counts;
  readonly #gauges: Gauges;
  readonly #fine = new Slots({ most: FINE.slots, maxBytes: SLOTS_BYTES.fine });
  readonly #coarse = new Slots({ most: COARSE.slots, maxBytes: SLOTS_BYTES.coarse });
  /** The number of the open slot; null before the first call of `closeSlot`. */
  #open: number | null = null;
  /** The closed slots of this minute by index: sums of counters, and the last or highest samples of gauges. */
  readonly #minute = new Map<number, number>();

  constructor(counts: Counts, gauges: Gauges) {
    this.#counts = counts;
    this.#gauges = gauges;
  }

  closeSlot(now: number): void {
    const slot = Math.floor(now / FINE.slotMs);
    const open = this.#open;
    if (slot === open) return;
    this.#open = slot;
    if (open === null) return;
    if (slot < open) return this.#dropFrom(slot);
    this.#keep(open);
    if (minuteOf(slot) !== minuteOf(open)) this.#keepMinute(minuteOf(open));
  }

  read(query: ReadingQuery, now: number): NodeReading {
    this.closeSlot(now);
    this.#gauges.sample();
    const { names, from, slotMs, stepMs, points } = query;
    const fine = slotMs === FINE.slotMs;
    const gauges = this.#gauges.places();
    const rows = names.flatMap((name) =>
      this.#counts.cells(name).map((cell) => new CellReading(name, cell, modeOf(cell, gauges))),
    );
    const rowOf: (CellReading | undefined)[] = [];
    for (const row of rows) for (const place of row.places()) rowOf[place] = row;
    const pointOf = (number: number): number => Math.floor((number * slotMs - from) / stepMs);
    const known = new Uint8Array(points);
    /** The last slot of each point. */
    const lasts = new Map<number, number>();
    const saw = (number: number): void => {
      known[pointOf(number)] = 1;
      lasts.set(pointOf(number), number);
    };
    const take = (number: number, place: number, count: number): void =>
      rowOf[place]?.add({ point: pointOf(number), number, place, count });
    const range = { first: Math.ceil(from / slotMs), last: Math.ceil((from + points * stepMs) / slotMs) - 1 };
    const slots = fine ? this.#fine : this.#coarse;
    slots.each(range, saw, take);
    const open = Math.floor(now / slotMs);
    if (open >= range.first && open <= range.last) {
      saw(open);
      // A gauge that shows its last sample is skipped here, because its fresh sample is later than those of the closed
      // slots.
      if (!fine) for (const [place, count] of this.#minute) if (!gauges.last.has(place)) take(open, place, count);
      this.#counts.eachFresh((place, count) => take(open, place, count));
    }
    return { known: known.join(''), rows: rows.flatMap((row) => row.reading(lasts)) };
  }

  /** How many bytes all slots take, approximately. */
  get bytes(): number {
    return this.#fine.bytes + this.#coarse.bytes;
  }

  #keep(slot: number): void {
    const places: number[] = [];
    const counts: number[] = [];
    this.#gauges.sample();
    const { last, highest } = this.#gauges.places();
    for (const place of last) this.#minute.delete(place);
    this.#counts.eachFresh((place, count) => {
      places.push(place);
      counts.push(count);
      const before = this.#minute.get(place) ?? 0;
      this.#minute.set(place, highest.has(place) ? Math.max(before, count) : before + count);
    });
    this.#counts.flush();
    this.#fine.add(slot, places, counts);
  }

  #keepMinute(minute: number): void {
    const rows = [...this.#minute].sort(([a], [b]) => a - b);
    this.#minute.clear();
    this.#coarse.add(
      minute,
      rows.map(([place]) => place),
      rows.map(([, count]) => count),
    );
  }

  /** Called when the clock was set back: slots that were recorded after the new time would mix with later ones. */
  #dropFrom(slot: number): void {
    this.#fine.dropFrom(slot);
    this.#coarse.dropFrom(minuteOf(slot));
    this.#minute.clear();
  }
}

function minuteOf(slot: number): number {
  return Math.floor((slot * FINE.slotMs) / COARSE.slotMs);
}

function modeOf({ base }: Cell, { last, highest }: ReturnType<Gauges['places']>): Mode {
  if (last.has(base)) return 'last';
  return highest.has(base) ? 'highest' : 'sum';
}

// Builds the points of one recorded time series: those of a counter, sampled gauge or histogram with one value of its
// label.

/** How several slots become one point: the `sum` of a counter, the `last` or the `highest` sample of a gauge. */
type Mode = 'sum' | 'last' | 'highest';

/**
 * A count of the slot `number`. `point`: the index of the point that the slot belongs to. `place`: the index in Counts.
 */
type Kept = {
  readonly point: number;
  readonly number: number;
  readonly place: number;
  readonly count: number;
};

/** The numbers of one cell, by point. A counter or gauge has one number, a histogram one for each bucket. */
class CellReading {
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
   * Returns the row of this cell; none without numbers. `lasts`: the last slot of each point; a gauge without a number
   * in that slot was zero.
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

// Keeps the counts of the latest time slots in a packed form. A slot lists the indexes at which something was counted,
// each with its count. The numbers are stored with seven bits to a byte, in a string of one byte per character. Such a
// string takes 16 bytes more than its content; a typed array takes about 200 bytes more.

/** The bytes that a slot takes besides its content: the header of the string, its entry in the list, and its number. */
const SLOT_BYTES = 40;

class Slots {
  /** The slots, oldest first. */
  #slots: { readonly number: number; readonly text: string }[] = [];
  #bytes = 0;
  readonly #most: number;
  readonly #maxBytes: number;

  /** Keeps the latest `most` slots, or fewer if they take more than `maxBytes` together. */
  constructor({ most, maxBytes }: { readonly most: number; readonly maxBytes: number }) {
    this.#most = most;
    this.#maxBytes = maxBytes;
  }

  /** Adds a slot after the others. `places`: the indexes at which something was counted, in ascending order. */
  add(number: number, places: readonly number[], counts: readonly number[]): void {
    const text = pack(places, counts);
    this.#slots.push({ number, text });
    this.#bytes += text.length + SLOT_BYTES;
    let gone = 0;
    while (this.#slots.length - gone > 1 && this.#isTooMuch(gone, number)) {
      this.#bytes -= (this.#slots[gone++]?.text.length ?? 0) + SLOT_BYTES;
    }
    if (gone > 0) this.#slots.splice(0, gone);
  }

  /** Removes the slots with this number or a higher one, because the clock was set back. */
  dropFrom(number: number): void {
    const kept = this.#slots.findLastIndex((slot) => slot.number < number) + 1;
    for (const { text } of this.#slots.splice(kept)) this.#bytes -= text.length + SLOT_BYTES;
  }

  /** Calls `slot` for each slot from `first` to `last`, and `take` for each of its counts. */
  each(
    { first, last }: { readonly first: number; readonly last: number },
    slot: (number: number) => void,
    take: (number: number, place: number, count: number) => void,
  ): void {
    for (const { number, text } of this.#slots) {
      if (number < first || number > last) continue;
      slot(number);
      unpack(text, (place, count) => take(number, place, count));
    }
  }

  /** How many bytes all slots take, approximately. */
  get bytes(): number {
    return this.#bytes;
  }

  #isTooMuch(gone: number, newest: number): boolean {
    const oldest = this.#slots[gone]?.number ?? newest;
    return oldest <= newest - this.#most || this.#bytes > this.#maxBytes;
  }
}

const MORE = 0x80;
const BITS = 7;

function pack(places: readonly number[], counts: readonly number[]): string {
  const bytes: number[] = [];
  let before = -1;
  for (const [i, place] of places.entries()) {
    put(bytes, place - before);
    put(bytes, counts[i] ?? 0);
    before = place;
  }
  return Buffer.from(bytes).toString('latin1');
}

function put(bytes: number[], value: number): void {
  let rest = value;
  for (; rest >= MORE; rest = Math.floor(rest / MORE)) bytes.push((rest % MORE) | MORE);
  bytes.push(rest);
}

function unpack(text: string, take: (place: number, count: number) => void): void {
  let place = -1;
  let at = 0;
  const next = (): number => {
    let value = 0;
    for (let shift = 0; ; shift += BITS) {
      const byte = text.charCodeAt(at++);
      value += (byte & (MORE - 1)) * 2 ** shift;
      if (byte < MORE) return value;
    }
  };
  while (at < text.length) {
    place += next();
    take(place, next());
  }
}
