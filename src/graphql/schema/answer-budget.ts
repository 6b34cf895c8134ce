/** Limits the bytes of all lists of one answer together. */
import { completenessOf, type Completeness } from '../../core/completeness.ts';
import { CallboardError } from '../../core/errors.ts';
import { ANSWER_BYTES, ANSWER_PAGE_BYTES, ANSWER_ROW_BYTES } from '../../core/limits.ts';
import type { Page } from '../../core/page.ts';

/** The names of the fields that an operation may select. Null: unknown, which counts as all fields. */
export type Asks = ReadonlySet<string> | null;

/** Measures the part of a row that may be large. `fields`: the fields that show this part. */
export type RowSize<Row> = {
  readonly fields: readonly string[];
  /**
   * Returns the approximate JSON size in bytes of those fields that the operation selects. It must be computed from
   * known lengths, because it is called for every row, up to twice for one answer.
   */
  readonly bytes: (row: Row, asks: (field: string) => boolean) => number;
};

/**
 * Returns the bytes that one list may take: a whole page while more than three quarters of the budget are left, and
 * after that an eighth of the rest, so that some budget always remains for later lists.
 */
function roomOf(left: number): number {
  return left > (ANSWER_BYTES * 3) / 4 ? ANSWER_PAGE_BYTES : left / 8;
}

/**
 * The number of bytes that all lists of one answer may take together. A list that reaches the limit of a page or the
 * end of the budget ends early, and its `completeness` says so. While any budget is left, a list has at least one row,
 * so that paging makes progress. After that, lists are empty.
 */
export class AnswerBudget {
  readonly #asks: Asks;
  readonly #parts = new Map<object, Part>();
  #left = ANSWER_BYTES;

  constructor(asks: Asks) {
    this.#asks = asks;
  }

  /**
   * Returns the page, or as many of its first rows as fit into the budget. Repeated calls for the same page return the
   * same rows.
   */
  page<Row>(page: Page<Row>, size: RowSize<Row> | null): Page<Row> {
    const { kept } = this.#partOf(page, page.nodes, size);
    if (kept === page.nodes.length) return page;
    const { cursors } = page;
    return {
      nodes: page.nodes.slice(0, kept),
      cursors: { at: cursors.at, end: () => (kept === 0 ? null : cursors.at(kept - 1)) },
      hasNextPage: true,
      completeness: cutShort(page.completeness, kept),
    };
  }

  /**
   * Like `page`, for a field whose rows are written into the text of the answer at each call. If an answer contains one
   * page several times, each repetition takes the page's bytes from the budget again.
   */
  written<Row>(page: Page<Row>, size: RowSize<Row> | null): Page<Row> {
    this.#write(this.#partOf(page, page.nodes, size));
    return this.page(page, size);
  }

  /** Like `page`, for a list without pages. */
  list<Row, List extends { readonly items: readonly Row[]; readonly completeness: Completeness }>(
    list: List,
    size: RowSize<Row>,
  ): Pick<List, 'items' | 'completeness'> {
    const { kept } = this.#partOf(list, list.items, size);
    if (kept === list.items.length) return list;
    return { items: list.items.slice(0, kept), completeness: cutShort(list.completeness, kept) };
  }

  /** Like `written`, for a list without pages. */
  items<Row>(list: { readonly items: readonly Row[]; readonly completeness: Completeness }, size: RowSize<Row>) {
    this.#write(this.#partOf(list, list.items, size));
    return this.list(list, size).items;
  }

  /**
   * Counts a single row. Throws `too_complex` if no budget is left, because a single row cannot be shortened as a list
   * can.
   */
  row<Row>(row: Row, size: RowSize<Row>): Row {
    this.#spend(this.#bytesOf(row, this.#sizeOf(size)));
    return row;
  }

  /** Resets the budget for an operation that is executed again from its start. */
  restart(): void {
    this.#left = ANSWER_BYTES;
    this.#parts.clear();
  }

  #partOf<Row>(key: object, rows: readonly Row[], given: RowSize<Row> | null): Part {
    const known = this.#parts.get(key);
    if (known) return known;
    const size = given && this.#sizeOf(given);
    const room = roomOf(this.#left);
    const part = room <= 0 ? { ...NOTHING } : size ? this.#fit(rows, size, room) : fitPlain(rows.length, room);
    this.#left -= part.bytes;
    this.#parts.set(key, part);
    return part;
  }

  #fit<Row>(rows: readonly Row[], size: RowSize<Row>, room: number): Part {
    const whole = rows.length < MIN_MEASURED_ROWS ? Infinity : this.#wholeBytes(rows, size);
    if (whole <= room) return { kept: rows.length, bytes: whole, written: false };
    let bytes = 0;
    let kept = 0;
    for (const row of rows) {
      const more = this.#bytesOf(row, size);
      if (kept > 0 && bytes + more > room) break;
      bytes += more;
      kept++;
    }
    return { kept, bytes, written: false };
  }

  /**
   * Returns the bytes of all rows. The result is cached by list, because several answers may show one list with the
   * same fields.
   */
  #wholeBytes<Row>(rows: readonly Row[], size: RowSize<Row>): number {
    const before = measured.get(rows);
    if (before && before.size === size && before.asks === this.#asks) return before.bytes;
    const bytes = rows.reduce((sum, row) => sum + this.#bytesOf(row, size), 0);
    measured.set(rows, { size, asks: this.#asks, bytes });
    return bytes;
  }

  #write(part: Part): void {
    if (part.written && part.bytes > 0) this.#spend(part.bytes);
    part.written = true;
  }

  #spend(bytes: number): void {
    if (this.#left <= 0) {
      throw new CallboardError('too_complex', `The answer exceeds ${ANSWER_BYTES} bytes. Ask for shorter lists.`);
    }
    this.#left -= bytes;
  }

  #bytesOf<Row>(row: Row, size: RowSize<Row> | null): number {
    return ANSWER_ROW_BYTES + (size ? size.bytes(row, this.#isAsked) : 0);
  }

  /** Returns the given size; null if the operation selects none of the fields that may be large. */
  #sizeOf<Row>(size: RowSize<Row>): RowSize<Row> | null {
    return size.fields.some(this.#isAsked) ? size : null;
  }

  readonly #isAsked = (field: string): boolean => this.#asks === null || this.#asks.has(field);
}

/** The minimum number of rows of a list whose bytes are cached. */
const MIN_MEASURED_ROWS = 8;
/** The last measured bytes of whole lists. This is safe because a list is never modified after it was returned. */
const measured = new WeakMap<object, { readonly size: object; readonly asks: Asks; readonly bytes: number }>();

/**
 * How many rows of a list are shown, and their bytes. `written`: whether the rows were already written once; only
 * further times take bytes from the budget again.
 */
type Part = { readonly kept: number; readonly bytes: number; written: boolean };
const NOTHING: Part = { kept: 0, bytes: 0, written: false };

function fitPlain(rows: number, room: number): Part {
  const kept = Math.min(rows, Math.max(1, Math.floor(room / ANSWER_ROW_BYTES)));
  return { kept, bytes: kept * ANSWER_ROW_BYTES, written: false };
}

function cutShort({ sources }: Completeness, kept: number): Completeness {
  const [own, ...gaps] = sources;
  if (!own) return { complete: false, sources };
  return completenessOf([{ ...own, complete: false, observed: kept, limit: kept, reason: 'limit_reached' }, ...gaps]);
}
