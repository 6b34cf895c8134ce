/**
 * Paging by position. A row's position is its sort tuple, and a page starts after a position, not at an offset. So rows
 * that are added or removed between two pages neither repeat nor hide other rows.
 */
import type { ObservedSource, Completeness } from './completeness.ts';
import type { DocumentReading } from './document-reading.ts';

/** The sort tuple of a row, as texts that are compared one by one by UTF-16 code units. */
export type Position = readonly string[];

export type PageRequest = {
  /** The most rows of the page, 1 to 1000. */
  readonly first: number;
  /** The position after which the page starts; null: it starts at the first row. */
  readonly after: Position | null;
  /**
   * The reads of the document that this page is for. A store that needs several calls for a page checks it before each
   * of them. Absent: the answer is never given up.
   */
  readonly reading?: DocumentReading | undefined;
};

/**
 * One page of rows from a store. `next` is the position where the next page continues; null at the end of the rows. It
 * is the position of the last row that was scanned, which a filter may have skipped. A page may therefore be short or
 * empty although more rows follow.
 */
export type Scan<T> = {
  readonly rows: readonly { readonly row: T; readonly position: Position }[];
  readonly next: Position | null;
  /**
   * The reasons why rows may be missing from this answer, such as silent nodes and evicted rows. Empty if nothing is
   * missing.
   */
  readonly gaps: readonly ObservedSource[];
  /** True if the page ended before it was full because SCAN_BUDGET rows had been read. */
  readonly cut?: boolean;
};

/** The opaque cursors of a page. Each is made on demand, since signing costs more than most rows do. */
export type PageCursors = {
  /** Returns the cursor of the row at this index, which must exist. */
  at(index: number): string;
  /**
   * Returns the cursor of the page's end, to be given as `after` for the next page. Null if the page is empty and
   * nothing follows.
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

/** Returns the earlier one of the ends of two pages that are merged; null if both reach the end of their rows. */
export function nearerEnd(a: Position | null, b: Position | null): Position | null {
  if (a === null || b === null) return a ?? b;
  return comparePositions(a, b) <= 0 ? a : b;
}

/**
 * Writes a number as a text that sorts as the number does, for positions. `value` is 0 to Number.MAX_SAFE_INTEGER; a
 * fraction is dropped.
 */
export function sortable(value: number): string {
  return Math.max(0, Math.floor(value)).toString(36).padStart(11, '0');
}

/** The most rows that a filtered scan may read before it returns with the position that it reached. */
export const SCAN_BUDGET = 10_000;

/**
 * Fills one page from rows that are already sorted. `keep` is the filter. At most SCAN_BUDGET rows are read: if few of
 * many rows match, the page is short and the time is bounded.
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

/** The first rows of a listing, and the number of all its rows. */
export type FirstRows<T> = {
  readonly total: number;
  readonly rows: readonly T[];
  readonly gaps?: readonly ObservedSource[];
};

/** The first page of a listing, with the cursors that the listing itself would give, and the total number of rows. */
export type Summary<T> = Page<T> & { readonly total: number };
