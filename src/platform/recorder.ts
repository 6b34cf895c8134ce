/**
 * Records counters and gauges as time series: in slots of 5 s for the last hour, and in slots of a minute for the last
 * day.
 */
import type { NodeReading, ReadingQuery } from '../core/metrics/reading.ts';
import { COARSE, FINE } from '../core/metrics/slots.ts';
import type { Cell, Counts } from './counts.ts';
import type { Gauges } from './gauges.ts';
import { CellReading, type Mode } from './recorder-row.ts';
import { Slots } from './slots.ts';

/** The most bytes of all fine slots, and of all coarse slots. Beyond them the oldest slots are dropped early. */
const SLOTS_BYTES = { fine: 448 * 1024, coarse: 576 * 1024 } as const;

export class Recorder {
  readonly #counts: Counts;
  readonly #gauges: Gauges;
  readonly #fine = new Slots({ most: FINE.slots, maxBytes: SLOTS_BYTES.fine });
  readonly #coarse = new Slots({ most: COARSE.slots, maxBytes: SLOTS_BYTES.coarse });
  /** The number of the open slot; null before the first call of `closeSlot`. */
  #open: number | null = null;
  /**
   * The combined numbers of the closed slots of the current minute, by index: sums of counters, and the last or the
   * highest samples of gauges.
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
