import { CallboardError } from '../core/errors.ts';
import { completenessOf } from '../core/cursor.ts';
import { ANSWER_BYTES, ANSWER_PAGE_BYTES, ANSWER_ROW_BYTES } from '../core/limits.ts';
import type { Completeness, Page } from '../core/page.ts';

/** The names of the fields that an operation asks for and that may be large; null: not known, so any of them. */
export type Asks = ReadonlySet<string> | null;

/** What of a row may be large: the fields that show it, and its bytes where some of these are asked for. */
export type RowSize<Row> = {
  readonly fields: readonly string[];
  /** About as many bytes as the asked fields have as JSON, from lengths that are known: cheap, and called once for each row. */
  readonly bytes: (row: Row, asks: (field: string) => boolean) => number;
};

/**
 * The bytes that all lists of one answer may hold together. A list that meets the bound of a page, or the end of the budget, ends early and
 * says so. While anything is left a list has at least one row, so that paging makes progress; after that lists are empty.
 */
export class AnswerBudget {
  readonly #asks: Asks;
  readonly #kept = new Map<object, number>();
  #left = ANSWER_BYTES;

  constructor(asks: Asks) {
    this.#asks = asks;
  }

  /** The page, or the beginning of it that there is room for. The same page is always answered alike, and counted once. */
  page<Row>(page: Page<Row>, size: RowSize<Row> | null): Page<Row> {
    const kept = this.#take(page, page.nodes, size);
    if (kept === page.nodes.length) return page;
    const { cursors } = page;
    return {
      nodes: page.nodes.slice(0, kept),
      cursors: { at: cursors.at, end: () => (kept === 0 ? null : cursors.at(kept - 1)) },
      hasNextPage: true,
      completeness: cutShort(page.completeness, kept),
    };
  }

  /** The same of a list that has no pages. */
  list<Row, List extends { readonly items: readonly Row[]; readonly completeness: Completeness }>(
    list: List,
    size: RowSize<Row>,
  ): Pick<List, 'items' | 'completeness'> {
    const kept = this.#take(list, list.items, size);
    if (kept === list.items.length) return list;
    return { items: list.items.slice(0, kept), completeness: cutShort(list.completeness, kept) };
  }

  /** Counts a row that stands alone. Throws `too_complex` where nothing is left: what has no list cannot end early. */
  row<Row>(row: Row, size: RowSize<Row>): Row {
    if (this.#left <= 0) {
      throw new CallboardError('too_complex', `The answer exceeds ${ANSWER_BYTES} bytes. Ask for shorter lists.`);
    }
    this.#left -= this.#bytesOf(row, this.#sizeOf(size));
    return row;
  }

  /** Begins anew, for an operation that is run again from its start. */
  restart(): void {
    this.#left = ANSWER_BYTES;
    this.#kept.clear();
  }

  #take<Row>(key: object, rows: readonly Row[], given: RowSize<Row> | null): number {
    const known = this.#kept.get(key);
    if (known !== undefined) return known;
    const size = given && this.#sizeOf(given);
    const kept = size ? this.#fit(rows, size) : this.#fitPlain(rows.length);
    this.#kept.set(key, kept);
    return kept;
  }

  #fitPlain(rows: number): number {
    if (this.#left <= 0) return 0;
    const room = Math.min(this.#left, ANSWER_PAGE_BYTES);
    const kept = Math.min(rows, Math.max(1, Math.floor(room / ANSWER_ROW_BYTES)));
    this.#left -= kept * ANSWER_ROW_BYTES;
    return kept;
  }

  #fit<Row>(rows: readonly Row[], size: RowSize<Row>): number {
    if (this.#left <= 0) return 0;
    const room = Math.min(this.#left, ANSWER_PAGE_BYTES);
    let used = 0;
    let kept = 0;
    for (const row of rows) {
      const bytes = this.#bytesOf(row, size);
      if (kept > 0 && used + bytes > room) break;
      used += bytes;
      kept++;
    }
    this.#left -= used;
    return kept;
  }

  #bytesOf<Row>(row: Row, size: RowSize<Row> | null): number {
    return ANSWER_ROW_BYTES + (size ? size.bytes(row, this.#isAsked) : 0);
  }

  /** Null: nothing that may be large is asked for. */
  #sizeOf<Row>(size: RowSize<Row>): RowSize<Row> | null {
    return size.fields.some(this.#isAsked) ? size : null;
  }

  readonly #isAsked = (field: string): boolean => this.#asks === null || this.#asks.has(field);
}

/** An operation is run from its start, in a context in which it may have been run in part before. */
export function restartBudget(context: unknown): void {
  if (typeof context !== 'object' || context === null || !('budget' in context)) return;
  if (context.budget instanceof AnswerBudget) context.budget.restart();
}

function cutShort({ sources }: Completeness, kept: number): Completeness {
  const [own, ...gaps] = sources;
  if (!own) return { complete: false, sources };
  return completenessOf([{ ...own, complete: false, observed: kept, limit: kept, reason: 'limit_reached' }, ...gaps]);
}
