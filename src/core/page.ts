/**
 * Paging by position: a row's position is the tuple that it sorts by, so a page begins after a position and not at an offset, and rows
 * that come or go between two pages neither repeat nor hide the ones that stay.
 */

/** The sort tuple of a row, as texts; compared element by element by UTF-16 code units. */
export type Position = readonly string[];

export type PageRequest = {
  /** 1 to 1000. */
  readonly first: number;
  /** Exclusive; null begins at the start. */
  readonly after: Position | null;
};

export type IncompleteReason = 'limit_reached' | 'node_silent' | 'store_unavailable' | 'evicted' | 'not_supported';
export type EvidenceSource =
  'connections' | 'streams' | 'pending_rpcs' | 'actions' | 'messages' | 'delivery' | 'contexts' | 'windows' | 'sites';

/** What one source contributed to an answer, and why not more. */
export type ObservedSource = {
  readonly source: EvidenceSource;
  /** Null when the source is not one node's. */
  readonly nodeId: string | null;
  readonly complete: boolean;
  readonly observed: number;
  readonly limit: number | null;
  readonly reason: IncompleteReason | null;
  /** Epoch milliseconds. */
  readonly asOf: number;
};

export type Completeness = { readonly complete: boolean; readonly sources: readonly ObservedSource[] };

/**
 * One page out of a store. `next` is the position to go on from, null only at the end. It is the last row's position, or, where a
 * filter left rows out, the position scanned to: a page may be short or empty although more follows.
 */
export type Scan<T> = {
  readonly rows: readonly { readonly row: T; readonly position: Position }[];
  readonly next: Position | null;
  /** What was not seen beside the page itself: silent nodes, evicted rows. Empty when nothing. */
  readonly gaps: readonly ObservedSource[];
};

/** The opaque cursors of a page. Signing costs more than most rows do, so each is made when it is asked for. */
export type PageCursors = {
  /** The cursor of the row at this index, which the page must have. */
  at(index: number): string;
  /** Where the page ends: what to give as `after` for the next one. Null when nothing was found. */
  end(): string | null;
};

/** A page as the faces show it. */
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

/** A number as a text that sorts as the number does: for positions. Takes 0 to Number.MAX_SAFE_INTEGER. */
export function sortable(value: number): string {
  return Math.max(0, Math.floor(value)).toString(36).padStart(11, '0');
}

/** How many rows a filtered scan may look at before it answers with the position it came to. */
export const SCAN_BUDGET = 10_000;

/**
 * Fills one page from rows that are already in order. `keep` is the filter; at most SCAN_BUDGET rows are looked at, so that a rare
 * match in a large set costs bounded time and a short page instead.
 */
export function scanSorted<T>(
  rows: Iterable<T>,
  request: PageRequest,
  position: (row: T) => Position,
  keep: (row: T) => boolean = () => true,
): Scan<T> {
  const found: { row: T; position: Position }[] = [];
  let scanned = 0;
  let last: Position | null = null;
  for (const row of rows) {
    if (found.length === request.first || scanned === SCAN_BUDGET) return { rows: found, next: last, gaps: [] };
    scanned++;
    const at = position(row);
    last = at;
    if (keep(row)) found.push({ row, position: at });
  }
  return { rows: found, next: null, gaps: [] };
}

/** The first rows of a listing and how many there are in all, as the page that the listing begins with. */
export function summaryScan<T>(
  found: { readonly total: number; readonly rows: readonly T[]; readonly gaps?: readonly ObservedSource[] },
  position: (row: T) => Position,
): Scan<T> {
  const rows = found.rows.map((row) => ({ row, position: position(row) }));
  const last = rows.at(-1);
  return { rows, next: last && found.total > rows.length ? last.position : null, gaps: found.gaps ?? [] };
}
