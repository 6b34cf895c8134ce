/**
 * Prints the events of a subscription, one line each, until the operator interrupts it or `--count` lines were printed.
 */
import type { TypedDocumentString } from '../../generated/cli.ts';
import { cellsOf, rowText, type Columns, type OutputRow } from './output.ts';
import { followStream } from './stream.ts';
import { growingTable } from './table.ts';
import { readCount } from './times.ts';
import type { OperatorRun } from './verb.ts';

export type Watching<Data, Variables> = Columns & {
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
