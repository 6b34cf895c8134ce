/**
 * Writes the answers of operators' commands in the form that `--output` names: `table`, `json`, `jsonl` or `ids`. Also
 * lays out columns, prints listings page by page and events line by line, reads durations, times and counts from flags,
 * and defines the type of a verb.
 */
import type { Clock } from '../clients/link/platform.ts';
import { isRecord } from '../protocol/json.ts';
import { visibleLine } from '../protocol/visible-text.ts';
import { usageFailure, type ExitCode, type Io } from './io.ts';
import { followStream } from './follow.ts';
import { type OperatorRelay, badAnswer, type RelayQuery } from './relay.ts';
import type { TypedDocumentString } from '../../generated/cli.ts';

export const OUTPUTS = ['table', 'json', 'jsonl', 'ids'] as const;
export type Output = (typeof OUTPUTS)[number];

/** The members of a JSON object. */
export type OutputRow = Readonly<Record<string, unknown>>;
/**
 * `shown`: the names of the members that a table shows. `id`: the names of the members that together identify a row. A
 * member of a nested object is written `outer.inner`.
 */
type Columns = { readonly shown: readonly string[]; readonly id: readonly string[] };
/** The columns of items. `row`: returns the row of a table for an item; absent: the item itself. */
type ItemColumns<Item> = Columns & { readonly row?: (item: Item) => object };

/** Returns the text of one listing. As `json` the page is written whole, even when it has no rows. */
export function listText<Item extends object>(
  page: Readonly<{ items: readonly Item[] }>,
  output: Output,
  columns: ItemColumns<Item>,
): string {
  const { shown } = columns;
  const row = columns.row ?? ((item: Item): object => item);
  if (output === 'json') return jsonLine(page);
  if (output === 'table')
    return alignedText([headOf(shown), ...page.items.map((item) => cellsOf(rowOf(row(item)), shown))]);
  return page.items.map((item) => rowText(rowOf(item), output, columns)).join('');
}

function rowOf(item: object): OutputRow {
  return { ...item };
}

/** Returns the line of one row, for the forms other than `table`. */
function rowText(row: OutputRow, output: Exclude<Output, 'table'>, { id }: Pick<Columns, 'id'>): string {
  return output === 'ids' ? `${idOf(row, id)}\n` : jsonLine(row);
}

/** Returns the text of one object: a line for each member, or JSON. Members that hold lists are written as JSON. */
export function objectText(value: object, output: Output, { id }: Pick<Columns, 'id'>): string {
  const row: OutputRow = { ...value };
  if (output !== 'table') return rowText(row, output, { id });
  return alignedText(linesOf(row, ''));
}

/** Returns the cells of a row, in the order of the columns. */
function cellsOf(row: OutputRow, names: readonly string[]): readonly string[] {
  return names.map((name) => cellOf(memberOf(row, name)));
}

/** Returns a line for each member, also of nested objects, so that a person can read what is proven about a command. */
function linesOf(row: OutputRow, prefix: string): (readonly [string, string])[] {
  return Object.entries(row).flatMap(([name, value]) =>
    isRecord(value) && Object.keys(value).length > 0
      ? linesOf(value, `${prefix}${name}.`)
      : [[cellOf(prefix + name), cellOf(value)] as const],
  );
}

function idOf(row: OutputRow, id: readonly string[]): string {
  return id.map((name) => cellOf(memberOf(row, name))).join('/');
}

function memberOf(row: OutputRow, name: string): unknown {
  return name.split('.').reduce<unknown>((value, part) => (isRecord(value) ? value[part] : undefined), row);
}

function jsonLine(value: object): string {
  return `${JSON.stringify(value)}\n`;
}

// Lays out columns of text for a terminal.

/** Returns lines of cells, each column as wide as its widest cell. */
export function alignedText(lines: readonly (readonly string[])[]): string {
  const columns = Math.max(0, ...lines.map(({ length }) => length));
  const widths = Array.from({ length: columns }, (_, column) =>
    Math.max(...lines.map((line) => widthOf(line[column] ?? ''))),
  );
  return lines.map((line) => lineText(line, widths)).join('');
}

/** The usual widths of columns, so that rows that come one by one are aligned from the first one on. */
const USUAL_WIDTHS: Readonly<Record<string, number>> = {
  ...{ at: 24, event: 12, user_id: 12, client_id: 16, command_id: 36, action: 16, outcome: 15, stream: 24 },
};

/** Returns a function that lays out rows that come one by one: each column is as wide as its widest cell so far. */
function growingTable(names: readonly string[]): (row: OutputRow) => string {
  const head = headOf(names);
  const widths = head.map((word) => Math.max(widthOf(word), USUAL_WIDTHS[word.toLowerCase()] ?? 0));
  let begun = false;
  return (row) => {
    const cells = cellsOf(row, names);
    cells.forEach((cell, column) => (widths[column] = Math.max(widths[column] ?? 0, widthOf(cell))));
    const line = lineText(cells, widths);
    if (begun) return line;
    begun = true;
    return lineText(head, widths) + line;
  };
}

/** Returns one value as text on one line, with hidden characters as their codes. */
export function cellOf(value: unknown): string {
  if (value === null || value === undefined) return '-';
  // A table is for people: 0.182 in place of 0.18181818181818182.
  const shown = typeof value === 'number' && !Number.isInteger(value) ? Number(value.toFixed(3)) : value;
  return visibleLine(typeof shown === 'string' ? shown : JSON.stringify(shown));
}

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' });

/** Returns the number of characters as a person counts them. */
function widthOf(text: string): number {
  let width = 0;
  for (const _ of graphemes.segment(text)) width++;
  return width;
}

/** Returns the column headers: the last word of each member's name, since `connection.status` would be wide. */
function headOf(names: readonly string[]): readonly string[] {
  return names.map((name) => (name.split('.').at(-1) ?? name).toUpperCase());
}

function lineText(cells: readonly string[], widths: readonly number[]): string {
  const padded = cells.map((cell, column) => cell + ' '.repeat(Math.max(0, (widths[column] ?? 0) - widthOf(cell))));
  return `${padded.join('  ').trimEnd()}\n`;
}

// Reads durations, times and whole numbers from the values of flags.

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Returns the milliseconds of a duration such as `500ms`, `30s`, `2m`, `1h` or `7d`. */
export function readMs(text: string | undefined, preset: number, name: string): number {
  if (text === undefined) return preset;
  const ms = durationOf(text);
  if (ms === null) throw usageFailure(`${name}: expected a duration such as 500ms, 30s, 2m or 1h`);
  return ms;
}

/** Returns a duration as text: `84 ms`, `1.3 s`, `2 m 41 s`, `3 h 12 m`, `5 d 3 h`. */
export function durationText(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} m ${Math.floor((ms % 60_000) / 1000)} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} m` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** Returns a time in the form of ISO 8601, from a time such as `2026-01-31T12:00:00Z` or an age such as `10m`. */
export function readTime(text: string | undefined, name: string, clock: Clock): string | undefined {
  if (text === undefined) return undefined;
  const age = durationOf(text);
  const at = age === null ? Date.parse(text) : clock.now() - age;
  // Date.parse alone would accept many forms that depend on the engine and on the time zone of this machine.
  if (Number.isNaN(at) || (age === null && !/^\d{4}-\d\d-\d\d/.test(text)))
    throw usageFailure(`${name}: expected a time such as 2026-01-31T12:00:00Z, or an age such as 10m`);
  return new Date(at).toISOString();
}

/** Reads a whole number of at least 1. */
export function readCount(text: string | undefined, name: string): number | undefined {
  if (text === undefined) return undefined;
  if (!/^[1-9]\d{0,8}$/.test(text)) throw usageFailure(`${name}: expected a whole number from 1 on`);
  return Number(text);
}

function durationOf(text: string): number | null {
  const [, amount, unit = ''] = /^(\d{1,8})(ms|s|m|h|d)$/.exec(text) ?? [];
  return amount === undefined ? null : Number(amount) * (UNITS[unit] ?? 1);
}

// Defines the type of a verb of the command line: its words, its arguments and flags, and the function that runs it.

/** One flag of a verb: its help text if it takes any text, otherwise an object that also says what it takes. */
export type Flag =
  | string
  | { readonly help: string; readonly values: readonly string[]; readonly many?: true }
  | { readonly help: string; readonly many: true; readonly values?: undefined }
  | { readonly help: string; readonly on: true };

/** The flags that are common to all verbs that talk to a relay, with their help texts. */
export const SHARED_FLAGS = {
  context: 'Name of the context to use (CALLBOARD_CONTEXT; default the current one)',
  url: 'Address of the relay (CALLBOARD_URL)',
  tokenFile: 'File with the token',
  tokenCommand: 'Shell command that prints the token',
};

/** What the function that runs a verb receives. */
export type OperatorRun = {
  readonly io: Io;
  readonly clock: Clock;
  /** The relay, opened when it is first used. Its requests reject with OperatorFailure, for example without a token. */
  readonly relay: OperatorRelay;
  readonly output: Output;
  /** The flags that take one value, by name: 'true' for a switch that is given, undefined for a flag that is not. */
  readonly flags: Readonly<Record<string, string | undefined>>;
  /** The flags that take several values, by name; undefined for one that is not given. */
  readonly lists: Readonly<Record<string, string[] | undefined>>;
  readonly args: readonly string[];
  /** A signal that is aborted, with an OperatorFailure as reason, when the operator interrupts the command. */
  readonly stopped: AbortSignal;
};

/** Runs a verb and returns its exit code; no code means success. Throws OperatorFailure. */
export type RunVerb = (run: OperatorRun) => Promise<ExitCode | void>;

export type Verb = {
  /** The words after `callboard`, such as `clients ls`. */
  readonly name: string;
  readonly brief: string;
  /** The arguments of the verb in order. `name?` is optional. `name...` may be repeated, and is the last one. */
  readonly args?: readonly string[];
  readonly flags?: Readonly<Record<string, Flag>>;
  /** The shared flags that the verb has; by default all. */
  readonly shared?: readonly (keyof typeof SHARED_FLAGS)[];
  /** False if the verb prints text of its own, so that it has no `--output`. */
  readonly output?: false;
  /** Example lines for the help of the verb, without `callboard`. */
  readonly examples?: readonly string[];
  /** Loads the function that runs the verb. No other verb loads that code. */
  readonly load: () => Promise<RunVerb>;
};

/** The cursor where a page begins, and the most rows that the page may have. */
type Paging = { readonly cursor?: string; readonly limit?: number };

/** One page of a listing, as REST answers it. */
type ListedPage<Item extends object = object> = {
  readonly items: readonly Item[];
  readonly next_cursor?: string | null;
  readonly completeness: { readonly complete: boolean; readonly sources: readonly object[] };
};

/** Returns the items as one complete page, for listings that need no relay. */
export function wholePage(items: readonly object[]): ListedPage {
  return { items, next_cursor: null, completeness: { complete: true, sources: [] } };
}

const ROWS_MAX = 1000;
/** The rows of each page of `--all`. A page of more messages would exceed the relay's limit of cost of an operation. */
const ALL_ROWS = 500;

/**
 * Returns a verb that lists a REST route, whose parameters `filters` makes from the flags. Nothing checks that the route
 * answers items of the type `Item`.
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
 * Returns a verb that lists the rows of a GraphQL query. It is for listings that REST refuses to some who may ask, such
 * as users who ask about their own data.
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
 * Prints the page that `--cursor` and `--limit` name, or with `--all` all pages. With `-o json`, all pages are printed
 * as one document. Standard error says what is missing, and where the next page begins.
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

/** Writes to standard error where the next page begins, if there is one, and whether the answer is incomplete. */
export function sayWhatIsMissing({ io }: OperatorRun, page: Omit<ListedPage, 'items'>): void {
  const { next_cursor, completeness } = page;
  if (typeof next_cursor === 'string')
    io.complain(`There are more rows: add --cursor ${next_cursor}, or --all for all pages.\n`);
  if (!completeness.complete) io.complain('The answer is incomplete; -o json shows what is missing and why.\n');
}

/** Reads all pages, each with ALL_ROWS rows unless a limit is given. */
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

type Watching<Data, Variables> = Columns & {
  readonly document: TypedDocumentString<Data, Variables>;
  readonly variables: Variables;
  /** Returns the row of the event. `missed`: how many events before it were dropped, because they came too fast. */
  readonly event: (data: Data) => OutputRow & { readonly missed: number };
};

/** Prints events. Resolves after `--count` lines. Rejects when it is interrupted, and with the relay's refusal. */
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
 * Returns a function that prints one row after the other in the chosen form, and says whether `--count` rows have been
 * printed. Further rows are not printed.
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
