/** Prints listings, page by page. */
import { listText, type Columns } from './output.ts';
import { readCount } from './times.ts';
import { usageFailure } from './failure.ts';
import type { OperatorRun } from './verb.ts';

/** The cursor where a page begins, and the most rows that the page may have. */
export type Paging = { readonly cursor?: string; readonly limit?: number };

type Seen = { readonly complete: boolean; readonly sources: readonly object[] };

/** One page of a listing, as REST answers it. */
export type ListedPage = {
  readonly items: readonly object[];
  readonly next_cursor?: string | null;
  readonly completeness: Seen;
};

const ROWS_MAX = 1000;
/**
 * The number of rows that each page of `--all` reads. A page of more messages would exceed the relay's limit of cost
 * for one operation.
 */
const ALL_ROWS = 500;

/**
 * Prints the page that `--cursor` and `--limit` name, or with `--all` all pages. With `-o json`, all pages are printed
 * as one document. Standard error says what is missing, and where the next page begins.
 */
export async function printListing(
  run: OperatorRun,
  columns: Columns,
  read: (paging: Paging) => Promise<ListedPage>,
): Promise<void> {
  const { flags, io, output } = run;
  const paging = pagingOf(run);
  const page = flags['all'] === undefined ? await read(paging) : await readAll(paging, read);
  io.print(listText(page, output, columns));
  sayWhatIsMissing(run, page);
}

/** Writes to standard error where the next page begins, and that the answer is incomplete. */
export function sayWhatIsMissing({ io }: OperatorRun, { next_cursor, completeness }: Omit<ListedPage, 'items'>): void {
  if (typeof next_cursor === 'string')
    io.complain(`There are more rows: add --cursor ${next_cursor}, or --all for all pages.\n`);
  if (!completeness.complete) io.complain('The answer is incomplete; -o json shows what is missing and why.\n');
}

/** Reads all pages, each with ALL_ROWS rows unless a limit is given. */
async function readAll(
  { cursor, limit = ALL_ROWS }: Paging,
  read: (paging: Paging) => Promise<ListedPage>,
): Promise<ListedPage> {
  const items: object[] = [];
  const sources: object[] = [];
  let complete = true;
  let from = cursor;
  for (;;) {
    const page = await read(from === undefined ? { limit } : { limit, cursor: from });
    items.push(...page.items);
    // A page that ended only at its limit of rows counts as complete, because the next page continues it.
    complete &&= page.completeness.complete;
    sources.push(...page.completeness.sources);
    if (typeof page.next_cursor !== 'string') break;
    from = page.next_cursor;
  }
  return { items, next_cursor: null, completeness: { complete, sources } };
}

function pagingOf({ flags }: OperatorRun): Paging {
  const { cursor } = flags;
  const limit = readCount(flags['limit'], '--limit');
  if (limit !== undefined && limit > ROWS_MAX) throw usageFailure(`--limit: expected 1 to ${ROWS_MAX}`);
  return { ...(cursor !== undefined && { cursor }), ...(limit !== undefined && { limit }) };
}
