/** Prints listings page by page, and events line by line. */
import type { TypedDocumentString } from '../../generated/cli.ts';
import { readCount } from './amounts.ts';
import { growingTable, type OutputRow } from './columns.ts';
import { followStream } from './follow.ts';
import { usageFailure } from './exit-codes.ts';
import { type ItemColumns, listText, type Columns, rowText } from './output.ts';
import { badAnswer, type RelayQuery } from './relay.ts';
import type { OperatorRun, RunVerb } from './verb.ts';

/** The cursor at which a page begins, and the most rows of the page. */
type Paging = { readonly cursor?: string; readonly limit?: number };

/** One page of a listing, in the format of REST. */
type ListedPage<Item extends object = object> = {
  readonly items: readonly Item[];
  readonly next_cursor?: string | null;
  readonly completeness: { readonly complete: boolean; readonly sources: readonly object[] };
};

/** Returns the items as one complete page. For listings that do not come from a relay. */
export function wholePage(items: readonly object[]): ListedPage {
  return { items, next_cursor: null, completeness: { complete: true, sources: [] } };
}

const ROWS_MAX = 1000;
/**
 * The rows of each page with `--all`. A page with more messages would exceed the relay's cost limit for one operation.
 */
const ALL_ROWS = 500;

/**
 * Creates a verb that lists a REST route. `filters`: converts the flags to the parameters of the route. It is not
 * checked that the items have the type `Item`.
 */
export function listing<Item extends object = object>(
  path: string,
  columns: ItemColumns<Item>,
  filters: (run: OperatorRun) => RelayQuery = () => ({}),
): RunVerb {
  return (run) => {
    const given = filters(run);
    return printListing(run, columns, async ({ cursor, limit }) => {
      const page = await run.relay.read(path, { query: { ...given, cursor, limit: limit?.toString() } });
      if (!isPage<Item>(page)) throw badAnswer('The relay answered without a page.');
      return page;
    });
  };
}

function isPage<Item extends object>(body: object): body is ListedPage<Item> {
  return 'items' in body && Array.isArray(body.items) && 'completeness' in body;
}

type Queried<Data, Filters, Item extends object> = ItemColumns<Item> & {
  readonly document: TypedDocumentString<Data, Filters & Paging>;
  readonly variables: (run: OperatorRun) => Filters;
  readonly page: (data: Data) => ListedPage<Item>;
};

/**
 * Creates a verb that lists the rows of a GraphQL query. For listings for which the REST route refuses some requesters
 * whom GraphQL permits, such as users who list their own data.
 */
export function queryListing<Data, Filters extends object, Item extends object>(
  queried: Queried<Data, Filters, Item>,
): RunVerb {
  const { document, variables, page } = queried;
  return (run) => {
    const given = variables(run);
    return printListing(run, queried, async (paging) => page(await run.relay.query(document, { ...given, ...paging })));
  };
}

/**
 * Prints one page (`--cursor`, `--limit`), or all pages with `--all`. With `-o json`, all pages are printed as one
 * document. What is missing, and where the next page begins, is written to standard error.
 */
async function printListing<Item extends object>(
  run: OperatorRun,
  columns: ItemColumns<Item>,
  read: (paging: Paging) => Promise<ListedPage<Item>>,
): Promise<void> {
  const { flags, io, output } = run;
  const paging = pagingOf(run);
  const page = flags['all'] === undefined ? await read(paging) : await readAll(paging, read);
  io.print(listText(page, output, columns));
  sayWhatIsMissing(run, page);
}

/** Writes to standard error where the next page begins, if there is one, and what is missing from the answer. */
export function sayWhatIsMissing({ io }: OperatorRun, page: Omit<ListedPage, 'items'>): void {
  const { next_cursor, completeness } = page;
  if (typeof next_cursor === 'string')
    io.complain(`There are more rows: add --cursor ${next_cursor}, or --all for all pages.\n`);
  if (!completeness.complete) io.complain('The answer is incomplete; -o json shows what is missing and why.\n');
}

/** Reads all pages, with ALL_ROWS rows each unless a limit is given. */
async function readAll<Item extends object>(
  { cursor, limit = ALL_ROWS }: Paging,
  read: (paging: Paging) => Promise<ListedPage<Item>>,
): Promise<ListedPage<Item>> {
  const items: Item[] = [];
  const sources: object[] = [];
  let complete = true;
  let from = cursor;
  for (;;) {
    const page = await read(from === undefined ? { limit } : { limit, cursor: from });
    items.push(...page.items);
    // If a page ended only because of its row limit, it counts as complete, because the next page continues it.
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

type Watching<Data, Variables> = Columns & {
  readonly document: TypedDocumentString<Data, Variables>;
  readonly variables: Variables;
  /** Returns the row of an event. `missed`: how many events before it were dropped because they came too fast. */
  readonly event: (data: Data) => OutputRow & { readonly missed: number };
};

/**
 * Prints events. Resolves after `--count` lines. Rejects if the operator interrupts it, or if the relay refuses the
 * subscription.
 */
export async function printEvents<Data, Variables extends object>(
  run: OperatorRun,
  { document, variables, event, ...columns }: Watching<Data, Variables>,
): Promise<void> {
  const { io, clock } = run;
  const print = countedPrinter(run, columns);
  const enough = new AbortController();
  const operation = await run.relay.prepare(document, variables);
  const followed = followStream<Data>(operation, {
    clock,
    signal: AbortSignal.any([run.stopped, enough.signal]),
    onGap: () => io.complain('The stream broke; events may be missing until it is open again.\n'),
    onData(data) {
      if (enough.signal.aborted) return;
      const row = event(data);
      if (row.missed > 0) io.complain(`${row.missed} events were missed: they came too fast.\n`);
      if (print(row)) enough.abort();
    },
  });
  await followed.catch((error: unknown) => {
    if (!enough.signal.aborted) throw error;
  });
}

/**
 * Creates a function that prints rows one by one in the chosen format. It returns whether `--count` rows were printed;
 * further rows are not printed.
 */
export function countedPrinter(run: OperatorRun, columns: Columns): (row: OutputRow) => boolean {
  const { io, output, flags } = run;
  const lineOf = growingTable(columns.shown);
  let left = readCount(flags['count'], '--count') ?? Infinity;
  return (row) => {
    if (left-- > 0) io.print(output === 'table' ? lineOf(row) : rowText(row, output, columns));
    return left <= 0;
  };
}
