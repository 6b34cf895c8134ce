/** Prints listings, page by page. */
import { GetStatusDocument, type GetStatusQuery, type TypedDocumentString } from '../../generated/cli.ts';
import { usageFailure } from './failure.ts';
import {
  cellsOf,
  growingTable,
  listText,
  readCount,
  rowText,
  type Columns,
  type OperatorRun,
  type OutputRow,
} from './output.ts';
import { followStream, type OperatorRelay } from './relay.ts';

/** The cursor where a page begins, and the most rows that the page may have. */
type Paging = { readonly cursor?: string; readonly limit?: number };

type Seen = { readonly complete: boolean; readonly sources: readonly object[] };

/** One page of a listing, as REST answers it. */
type ListedPage = {
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

// Prints the events of a subscription, one line each, until the operator interrupts it or `--count` lines were printed.

type Watching<Data, Variables> = Columns & {
  readonly document: TypedDocumentString<Data, Variables>;
  readonly variables: Variables;
  /**
   * Returns the row of the event in the data. `missed` is the number of events that were dropped before this one,
   * because they came too fast.
   */
  readonly event: (data: Data) => OutputRow & { readonly missed: number };
};

/**
 * Prints events. Resolves after `--count` lines. Rejects when the operator interrupts it, and with the relay's refusal.
 */
export async function printEvents<Data, Variables extends object>(
  run: OperatorRun,
  { document, variables, event, ...columns }: Watching<Data, Variables>,
): Promise<void> {
  const { io, clock } = run;
  const print = linePrinter(run, columns);
  const enough = new AbortController();
  const operation = await run.relay.prepare(document, variables);
  const signal = AbortSignal.any([run.stopped, enough.signal]);
  let left = readCount(run.flags['count'], '--count') ?? Infinity;
  const followed = followStream<Data>(operation, {
    clock,
    signal,
    onGap: () => io.complain('The stream broke; events may be missing until it is open again.\n'),
    onData(data) {
      if (left === 0) return;
      const row = event(data);
      if (row.missed > 0) io.complain(`${row.missed} events were missed: they came too fast.\n`);
      print(row);
      if (--left === 0) enough.abort();
    },
  });
  await followed.catch((error: unknown) => {
    if (!enough.signal.aborted) throw error;
  });
}

/** Returns a function that prints one row after the other in the chosen form. */
export function linePrinter({ io, output }: OperatorRun, columns: Columns): (row: OutputRow) => void {
  const lineOf = growingTable(columns.shown);
  return (row) => io.print(output === 'table' ? lineOf(cellsOf(row, columns.shown)) : rowText(row, output, columns));
}

// Reads the state of a deployment for `status`, `top` and `doctor`: figures, and what needs a person's attention.

const WINDOW_SECONDS = 60;
const SERIES = ['commands_ended', 'command_p50', 'command_p99'];
/**
 * The age from which a waiting caller needs attention, in milliseconds. Callers wait at most ten minutes; this is half
 * of that.
 */
const LONG_WAIT_MS = 300_000;

type Ends = Readonly<Record<string, number>>;

export type DeploymentReport = {
  readonly label: string | null;
  readonly version: string;
  readonly mode: string;
  readonly node_id: string;
  readonly nodes: number;
  readonly links: number;
  readonly unfinished_commands: number;
  /** The number of commands that ended per second, averaged over the last minute. */
  readonly calls_per_second: number;
  readonly ended_last_minute: Ends;
  /**
   * The median duration of calls in milliseconds, over the latest seconds in which commands ended; null if none ended
   * within a minute.
   */
  readonly p50_ms: number | null;
  readonly p99_ms: number | null;
  readonly waits: number;
  readonly oldest_wait_ms: number | null;
  readonly oldest_wait: string | null;
  /** What a person should look at; empty if all is well. */
  readonly needs_attention: readonly string[];
};

/** Reads the state of the deployment from the relay. Administrators only. Throws OperatorFailure. */
export async function readReport(relay: OperatorRelay): Promise<DeploymentReport> {
  const variables = { series: SERIES, window_seconds: WINDOW_SECONDS, step_seconds: WINDOW_SECONDS };
  return reportOf(await relay.query(GetStatusDocument, variables));
}

function reportOf(status: GetStatusQuery): DeploymentReport {
  const { server, delivery, waits, oldest_wait, series } = status;
  const nodes = delivery.nodes.items;
  const ends = endsOf(series.items);
  const [oldest] = oldest_wait.items;
  const { label, version, mode, node_id } = server;
  return {
    ...{ label, version, mode, node_id },
    nodes: nodes.length,
    links: sum(nodes.map(({ links }) => links)),
    unfinished_commands: sum(nodes.map(({ unfinished_commands }) => unfinished_commands)),
    calls_per_second: rounded(sum(Object.values(ends)) / WINDOW_SECONDS, 2),
    ended_last_minute: ends,
    p50_ms: quantileOf(series.items, 'command_p50'),
    p99_ms: quantileOf(series.items, 'command_p99'),
    waits: waits.count,
    oldest_wait_ms: oldest?.age_ms ?? null,
    oldest_wait: oldest ? `${oldest.user_id}/${oldest.client_id}/${oldest.command_id}` : null,
    needs_attention: [...nodeFaults(status), ...deliveryFaults(status)],
  };
}

function nodeFaults({ delivery }: GetStatusQuery): readonly string[] {
  return delivery.nodes.items.flatMap(({ node_id, stale, mailbox_listener_alive, reconciliation_alive }) => [
    ...(stale ? [`node ${node_id} is silent`] : []),
    ...(!stale && !mailbox_listener_alive ? [`node ${node_id} does not read its mailbox`] : []),
    ...(!stale && !reconciliation_alive ? [`node ${node_id} does not end overdue commands`] : []),
  ]);
}

function deliveryFaults({ delivery, oldest_wait, series, waits }: GetStatusQuery): readonly string[] {
  const full = delivery.tenants.items.filter(
    ({ limit, reserved_commands }) => limit !== null && reserved_commands >= limit,
  );
  const [oldest] = oldest_wait.items;
  const seen = [delivery.nodes.completeness, waits.completeness, series.completeness];
  return [
    ...full.map(({ scope_id, limit }) => `the admission scope ${scope_id} is full (${limit})`),
    ...(delivery.summary.due_commands > 0 ? [`${delivery.summary.due_commands} commands are overdue`] : []),
    ...(oldest && oldest.age_ms >= LONG_WAIT_MS ? [`a caller has waited ${Math.round(oldest.age_ms / 1000)} s`] : []),
    ...(seen.every(({ complete }) => complete) ? [] : ['a part of the deployment did not answer']),
  ];
}

type SeriesItem = GetStatusQuery['series']['items'][number];

function endsOf(items: readonly SeriesItem[]): Ends {
  const ended = items.filter(({ name }) => name === 'commands_ended');
  const counts = ended.map(({ label, points }) => [label ?? 'ended', sum(points.map((point) => point ?? 0))] as const);
  return Object.fromEntries(counts.filter(([, count]) => count > 0));
}

function quantileOf(items: readonly SeriesItem[], name: string): number | null {
  const points = items.find((item) => item.name === name)?.points ?? [];
  const seconds = points.findLast((point) => typeof point === 'number');
  return seconds === undefined ? null : rounded(seconds * 1000, 1);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

function rounded(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}
