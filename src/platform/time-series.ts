/**
 * Records counters and gauges as time series: in slots of 5 seconds for an hour, and in slots of a minute for a day.
 */
import { COARSE, FINE, type NodeReading, type ReadingQuery, type ReadingRow } from '../core/metrics/reading.ts';
import { Counts, Gauges, type Cell } from './counts.ts';
import { Slots } from './packed-slots.ts';

/** The maximum bytes of all fine slots, and of all coarse slots. Beyond it, the oldest slots are dropped early. */
const SLOTS_BYTES = { fine: 448 * 1024, coarse: 576 * 1024 } as const;

export class Recorder {
  readonly #counts: Counts;
  readonly #gauges: Gauges;
  readonly #fine = new Slots({ most: FINE.slots, maxBytes: SLOTS_BYTES.fine });
  readonly #coarse = new Slots({ most: COARSE.slots, maxBytes: SLOTS_BYTES.coarse });
  /** The number of the slot that is being filled; null before the first call of `closeSlot`. */
  #open: number | null = null;
  /**
   * The values of this minute's closed slots, by index: sums of counters, and the last or highest samples of gauges.
   */
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
    /** The number of the last slot of each point. */
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
      // A gauge that shows its last sample is skipped here: its unflushed sample is later than those of the closed
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

  /**
   * Removes the slots from this one on after the clock was set back. Otherwise they would mix with the slots recorded
   * next.
   */
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

// Builds the points of one recorded time series, which is that of a counter, sampled gauge or histogram with one value
// of its label.

/**
 * How several slots are combined into one point: the `sum` for a counter, the `last` or the `highest` sample for a
 * gauge.
 */
type Mode = 'sum' | 'last' | 'highest';

/**
 * One recorded number. `number`: the slot. `point`: the index of the point that the slot belongs to. `place`: the index
 * in `Counts`.
 */
type RecordedNumber = {
  readonly point: number;
  readonly number: number;
  readonly place: number;
  readonly count: number;
};

/** The numbers of one cell, by point. A counter or gauge has one number, and a histogram has one for each bucket. */
class CellReading {
  readonly #name: string;
  readonly #cell: Cell;
  readonly #mode: Mode;
  /** The numbers by point, and within a point by their index in `Counts` (`place`). */
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

  /** Adds a number to its point. Calls must come in the order of the slots. */
  add({ point, number, place, count }: RecordedNumber): void {
    const known = this.#counts.get(point);
    const counts = known ?? new Map<number, { number: number; count: number }>();
    if (!known) this.#counts.set(point, counts);
    const before = counts.get(place)?.count ?? 0;
    counts.set(place, { number, count: this.#combine(before, count) });
  }

  /**
   * Returns the cell as one row, or no row if it has no numbers. `lasts`: the last slot of each point. A gauge without
   * a number in that slot was zero then.
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
