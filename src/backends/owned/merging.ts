/** Merges the answers of several partitions into one: pages, samples, counts and sums. */
import type { CapacityScope, DeliverySummary } from '../../core/commands/delivery-inspector.ts';
import type { WaitCounts } from '../../core/commands/waiter-store.ts';
import type { Leading } from '../../core/connections/connection-store.ts';
import type { RowCount } from '../../core/contexts/context.ts';
import type { DedupStats } from '../../core/dedup/dedup.ts';
import { CallboardError } from '../../core/errors.ts';
import { Sampling } from '../../core/history/raw-sample.ts';
import type { RawSample, SampleBounds } from '../../core/history/message.ts';
import type { CommandKey } from '../../core/ids.ts';
import type { ObservedSource } from '../../core/completeness.ts';
import { comparePositions, nearerEnd, type PageRequest, type Position, type Scan } from '../../core/page.ts';
import type { ListedPauses, Pause } from '../../core/pauses/pause.ts';

// Pages.

/** The order of positions: negative if `a` comes first. */
export type Order = (a: Position, b: Position) => number;

/** The order of pages that are read from the greatest position down. */
export const falling: Order = (a, b) => comparePositions(b, a);

/** A page of one source. `chars`: the length of the text that was transferred for it. */
type SourcePage = { readonly scan: Scan<unknown>; readonly chars: number };

/** A source of rows. `read` reads a page; it resolves with null if the source does not answer. */
export type PageSource = { read(page: PageRequest): Promise<SourcePage | null> };

type Row = Scan<unknown>['rows'][number];

/** A source, with the rows that were read from it so far. */
class Reading {
  readonly #source: PageSource;
  /** The rows that were read. The first `#taken` of them are in the page already. */
  #rows: readonly Row[] = [];
  #taken = 0;
  #started = false;
  #silent = false;
  /** The position after which unread rows begin; null before the first read, and if there are no more rows. */
  next: Position | null;
  /** Whether the source stopped because it had scanned the most rows that one page allows. */
  cut = false;
  gaps: readonly ObservedSource[] = [];

  constructor(source: PageSource, after: Position | null) {
    this.#source = source;
    this.next = after;
  }

  /** The next row that was read but is not in the page yet. */
  get head(): Row | undefined {
    return this.#rows[this.#taken];
  }

  take(): void {
    this.#taken++;
  }

  /** Whether all rows that were read are in the page, and the source may have more. */
  get open(): boolean {
    return this.head === undefined && !this.#silent && (!this.#started || this.next !== null);
  }

  /** Whether an unread row may come before this row. */
  mayPrecede({ position }: Row, order: Order): boolean {
    return this.open && (!this.#started || this.next === null || order(position, this.next) > 0);
  }

  /** Reads the next page. Returns how many characters were transferred. */
  async read(page: PageRequest): Promise<number> {
    const found = await this.#source.read({ ...page, after: this.next });
    this.#started = true;
    this.#silent = found === null;
    if (found === null) return 0;
    const { rows, next, gaps, cut = false } = found.scan;
    [this.#rows, this.#taken] = [rows, 0];
    [this.next, this.cut] = [next, cut];
    this.gaps = [...this.gaps, ...gaps];
    return found.chars;
  }
}

/**
 * A page ends early after this many characters. It is more than SCAN_BUDGET records of commands take, the most that one
 * page contains.
 */
const MERGED_CHARS = 16 * 1024 * 1024;
/** Each source is first asked for its even part of the page and this many rows more. */
const SPARE_ROWS = 2;

/**
 * Reads one page from several sorted sources, in order. Reads each source only as far as the page needs. The page ends
 * early if the next row is unknown: after a source that stopped at its scan limit, or once MERGED_CHARS characters were
 * transferred. Positions are those of the sources, so a page can begin after any row of any source.
 */
export async function mergePages(
  sources: readonly PageSource[],
  page: PageRequest,
  order: Order,
): Promise<Scan<unknown>> {
  const readings = sources.map((source) => new Reading(source, page.after));
  const taken: Row[] = [];
  let first = Math.min(page.first, Math.ceil(page.first / sources.length) + SPARE_ROWS);
  let chars = 0;
  while (takeKnown(readings, taken, page.first, order) && chars <= MERGED_CHARS) {
    // A source that stopped at its scan limit is not read again for this page.
    const needed = readings.filter(({ open, cut }) => open && !cut);
    if (needed.length === 0) break;
    page.reading?.check();
    const read = await Promise.all(
      needed.map((reading) => reading.read({ ...page, first: Math.min(first, page.first - taken.length) })),
    );
    chars += sum(read);
    first = Math.min(page.first, 2 * first);
  }
  const isFull = taken.length >= page.first;
  return {
    rows: taken,
    next: endOf(readings, isFull ? (taken.at(-1)?.position ?? null) : null, order),
    gaps: joinGaps(readings.flatMap(({ gaps }) => gaps)),
    ...(!isFull && readings.some(({ cut }) => cut) && { cut: true }),
  };
}

/** Takes rows as long as the next row is known. Returns whether the page has room for more rows. */
function takeKnown(readings: readonly Reading[], taken: Row[], most: number, order: Order): boolean {
  while (taken.length < most) {
    const least = leastOf(readings, order);
    const row = least?.head;
    if (!row || readings.some((other) => other.mayPrecede(row, order))) return true;
    taken.push(row);
    least?.take();
  }
  return false;
}

function leastOf(readings: readonly Reading[], order: Order): Reading | undefined {
  let least: Reading | undefined;
  for (const reading of readings) {
    const { head } = reading;
    if (head && (!least?.head || order(head.position, least.head.position) < 0)) least = reading;
  }
  return least;
}

/**
 * Returns the position after which the next page begins; null if there are no more rows. `last`: the last row of a full
 * page; null if the page is not full.
 */
function endOf(readings: readonly Reading[], last: Position | null, order: Order): Position | null {
  if (last !== null) return readings.some(({ head, open }) => head || open) ? last : null;
  // The page contains all rows before the nearest of the positions that the sources were read to.
  const ends = readings.filter(({ open }) => open).map(({ next }) => next);
  return ends.reduce((nearest, end) => {
    if (nearest === null || end === null) return nearest ?? end;
    return order(nearest, end) <= 0 ? nearest : end;
  }, null);
}

/** Merges first pages of several partitions. */
export function joinPages<T>(parts: readonly Scan<T>[], first: number, gaps: readonly ObservedSource[]): Scan<T> {
  const bound = parts.reduce<Position | null>((least, { next }) => nearerEnd(least, next), null);
  const known = parts
    .flatMap(({ rows }) => rows)
    .filter(({ position }) => bound === null || comparePositions(position, bound) <= 0)
    .sort((a, b) => comparePositions(a.position, b.position));
  const rows = known.slice(0, first);
  const isCut = rows.length < first && parts.some(({ cut }) => cut);
  return {
    rows,
    next: known.length > first ? (rows.at(-1)?.position ?? null) : bound,
    gaps: joinGaps([...parts.flatMap((part) => part.gaps), ...gaps]),
    ...(isCut && { cut: true }),
  };
}

/** Removes duplicates among gaps: several partitions may report the same source, node and reason. */
export function joinGaps(gaps: readonly ObservedSource[]): readonly ObservedSource[] {
  const known = new Map(gaps.map((gap) => [JSON.stringify([gap.source, gap.nodeId, gap.reason, gap.limit]), gap]));
  return [...known.values()];
}

// Samples, counts and sums.

/** The part of an answer that names the gaps left by owners that did not answer. */
function lacking(gaps: readonly ObservedSource[]): { readonly gaps?: readonly ObservedSource[] } {
  return gaps.length === 0 ? {} : { gaps };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

function least(numbers: readonly (number | null)[]): number | null {
  const known = numbers.filter((number) => number !== null);
  return known.length === 0 ? null : Math.min(...known);
}

/** Returns the sum of the numbers; null if one of them is unknown. */
function sumOf(numbers: readonly (number | null)[]): number | null {
  return numbers.includes(null) ? null : sum(numbers.filter((number) => number !== null));
}

/** Merges lists of the rows with the greatest values of a measure. Each row belongs to one partition. */
export function joinLeading<Row>(compare: (a: Row, b: Row) => number) {
  return (
    parts: readonly Leading<Row>[],
    [first]: readonly [number],
    gaps: readonly ObservedSource[],
  ): Leading<Row> => ({
    rows: parts
      .flatMap(({ rows }) => rows)
      .sort(compare)
      .slice(0, first),
    complete: gaps.length === 0 && parts.every(({ complete }) => complete),
    ...lacking(gaps),
  });
}

export function addCounts(parts: readonly RowCount[], _: unknown, gaps: readonly ObservedSource[]): RowCount {
  const complete = parts.every((part) => part.complete);
  return { count: sum(parts.map(({ count }) => count)), complete, ...lacking(gaps) };
}

export function addWaits(parts: readonly WaitCounts[], _: unknown, gaps: readonly ObservedSource[]): WaitCounts {
  const counts = new Map<string | null, number>();
  for (const [node, count] of parts.flatMap((part) => [...part.counts]))
    counts.set(node, (counts.get(node) ?? 0) + count);
  return { counts, complete: parts.every(({ complete }) => complete), ...lacking(gaps) };
}

/** Adds up summaries. The sample is taken over all partitions together. */
export function addSummaries(
  parts: readonly DeliverySummary[],
  _: unknown,
  gaps: readonly ObservedSource[],
): DeliverySummary {
  return {
    trackedCommands: sum(parts.map(({ trackedCommands }) => trackedCommands)),
    dueCommands: sum(parts.map(({ dueCommands }) => dueCommands)),
    sampledOldestDeadline: least(parts.map(({ sampledOldestDeadline }) => sampledOldestDeadline)),
    sampledOldestQueuedAgeMs: greatest(parts.map(({ sampledOldestQueuedAgeMs }) => sampledOldestQueuedAgeMs)),
    sampleSize: sum(parts.map(({ sampleSize }) => sampleSize)),
    legacyCommandStreamDepth: null,
    pendingCommandDepth: null,
    ...lacking(gaps),
  };
}

function greatest(numbers: readonly (number | null)[]): number | null {
  const known = numbers.filter((number) => number !== null);
  return known.length === 0 ? null : Math.max(...known);
}

/** Adds up counters. The result is not exact if an owner did not answer. */
export function addDedup(parts: readonly DedupStats[], [windowSeconds]: readonly [number], gaps: readonly unknown[]) {
  const [one] = parts;
  if (!one) throw new CallboardError('store_unavailable', 'No owner answers.', { retryAfterMs: 1_000 });
  const isWhole = gaps.length === 0;
  return {
    windowSeconds,
    seen: sum(parts.map(({ seen }) => seen)),
    unique: sum(parts.map(({ unique }) => unique)),
    duplicates: sum(parts.map(({ duplicates }) => duplicates)),
    exact: isWhole && parts.every(({ exact }) => exact),
    grainSeconds: one.grainSeconds,
    liveKeys: isWhole ? sumOf(parts.map(({ liveKeys }) => liveKeys)) : null,
  };
}

/**
 * Returns the scope for each id, from the partition that has it; null if none has it. Callers must pass the answers of
 * all partitions, because a missing answer could contain the scope.
 */
export function findScopes(
  parts: readonly (readonly (CapacityScope | null)[])[],
  [scopeIds]: readonly [readonly string[]],
): readonly (CapacityScope | null)[] {
  return scopeIds.map((_, i) => parts.map((scopes) => scopes[i]).find((scope) => scope != null) ?? null);
}

/** Merges samples of the newest messages, within the same bounds. Null if no partition has the stream. */
export function joinSamples(
  parts: readonly (RawSample | null)[],
  [stream, bounds]: readonly [unknown, SampleBounds],
  gaps: readonly ObservedSource[],
): RawSample | null {
  const found = parts.filter((part) => part !== null);
  if (stream !== null && found.length === 0) return null;
  const sampling = new Sampling(bounds);
  const newestFirst = found.flatMap(({ rows }) => rows).sort((a, b) => b.message.at - a.message.at);
  for (const { message, stored } of newestFirst) if (!sampling.offer(message, () => stored)) break;
  const { rows, cut } = sampling.sample;
  return {
    rows,
    cut: cut || found.some((part) => part.cut),
    gaps: joinGaps([...found.flatMap((part) => part.gaps), ...gaps]),
  };
}

/** Removes duplicates: a pause that covers all users is in all partitions. */
export function oncePaused(rows: readonly Pause[]): readonly Pause[] {
  return [...new Map(rows.map((pause) => [pause.pauseId, pause])).values()];
}

export function joinPauses(parts: readonly ListedPauses[], _: unknown, gaps: readonly ObservedSource[]): ListedPauses {
  return { rows: oncePaused(parts.flatMap(({ rows }) => rows)), ...lacking(gaps) };
}

/**
 * Merges the commands that are due in several partitions. Takes one of each partition in turn, oldest first, so that no
 * partition waits for all commands of another one.
 */
export function takeTurns(parts: readonly (readonly CommandKey[])[], most: number): readonly CommandKey[] {
  const longest = Math.max(0, ...parts.map((part) => part.length));
  const found: CommandKey[] = [];
  for (let i = 0; i < longest && found.length < most; i++)
    for (const part of parts) {
      const key = part[i];
      if (key && found.length < most) found.push(key);
    }
  return found;
}
