/**
 * Paging by position. The position of a row is its sort tuple, and a page starts after a position instead of at an
 * offset. So rows that are added or removed between two pages do not repeat or hide other rows.
 */
import type { ObservedSource, Completeness } from './completeness.ts';
import type { DocumentReading } from './document-reading.ts';

/** The sort tuple of a row. Its texts are compared one by one, by UTF-16 code units. */
export type Position = readonly string[];

export type PageRequest = {
  /** The most rows of the page, 1 to 1000. */
  readonly first: number;
  /** The position after which the page starts; null: at the first row. */
  readonly after: Position | null;
  /**
   * The document for which the page is read. A store that needs several calls for a page checks it before each call.
   * Absent: the read is never given up.
   */
  readonly reading?: DocumentReading | undefined;
};

/**
 * One page of rows from a store. `next`: the position after which the next page continues; null at the end of the rows.
 * This is the position of the last row that was scanned, even if a filter skipped it. So a page may be short or empty
 * although more rows follow.
 */
export type Scan<T> = {
  readonly rows: readonly { readonly row: T; readonly position: Position }[];
  readonly next: Position | null;
  /** Why rows may be missing, for example silent nodes or evicted rows. Empty if nothing is missing. */
  readonly gaps: readonly ObservedSource[];
  /** True if the page ended before it was full because SCAN_BUDGET rows had been read. */
  readonly cut?: boolean;
};

/** The opaque cursors of a page. Each is made on demand, because signing a cursor costs more than reading most rows. */
export type PageCursors = {
  /** Returns the cursor of the row at this index. The row must exist. */
  at(index: number): string;
  /**
   * Returns the cursor of the page's end, which is the `after` of the next page. Null if the page is empty and nothing
   * follows.
   */
  end(): string | null;
};

/** A page of a listing, with its cursors and its completeness. */
export type Page<T> = {
  readonly nodes: readonly T[];
  readonly cursors: PageCursors;
  readonly hasNextPage: boolean;
  readonly completeness: Completeness;
};

export function comparePositions(a: Position, b: Position): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const left = a[i] ?? '';
    const right = b[i] ?? '';
    if (left !== right) return left < right ? -1 : 1;
  }
  return a.length - b.length;
}

/** Returns the earlier one of the ends of two pages that are merged. Null if both pages reach the end of their rows. */
export function nearerEnd(a: Position | null, b: Position | null): Position | null {
  if (a === null || b === null) return a ?? b;
  return comparePositions(a, b) <= 0 ? a : b;
}

/**
 * Writes a number as text that sorts like the number, for positions. `value`: 0 to Number.MAX_SAFE_INTEGER; a fraction
 * is dropped.
 */
export function sortable(value: number): string {
  return Math.max(0, Math.floor(value)).toString(36).padStart(11, '0');
}

/** The most rows that a filtered scan reads before it returns the position that it has reached. */
export const SCAN_BUDGET = 10_000;

/**
 * Fills one page from sorted rows. `keep`: the filter. Reads at most SCAN_BUDGET rows, so the time is bounded; if few
 * of many rows match, the page is short.
 */
export function scanSorted<T>(
  rows: Iterable<T>,
  request: PageRequest,
  position: (row: T) => Position,
  keep: (row: T) => boolean = () => true,
): Scan<T> {
  const found: { row: T; position: Position }[] = [];
  let scanned = 0;
  let last: T | null = null;
  const end = (): Position | null => last && position(last);
  for (const row of rows) {
    if (found.length === request.first) return { rows: found, next: end(), gaps: [] };
    if (scanned === SCAN_BUDGET) return { rows: found, next: end(), gaps: [], cut: true };
    scanned++;
    last = row;
    if (keep(row)) found.push({ row, position: position(row) });
  }
  return { rows: found, next: null, gaps: [] };
}

/** The first rows of a listing, and the total number of its rows. */
export type FirstRows<T> = {
  readonly total: number;
  readonly rows: readonly T[];
  readonly gaps?: readonly ObservedSource[];
};

/**
 * The first page of a listing with its total number of rows. Its cursors are the same as those of the listing itself.
 */
export type Summary<T> = Page<T> & { readonly total: number };
