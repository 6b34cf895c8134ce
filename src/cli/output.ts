/** Writes the answers of operators' commands in the form that `--output` names: `table`, `json`, `jsonl` or `ids`. */
import { isRecord } from '../protocol/json.ts';
import { alignedText, headOf, cellOf, cellsOf, type OutputRow, memberOf } from './columns.ts';

export const OUTPUTS = ['table', 'json', 'jsonl', 'ids'] as const;
export type Output = (typeof OUTPUTS)[number];

/**
 * `shown`: the names of the members that a table shows. `id`: the names of the members that together identify a row. A
 * member of a nested object is written `outer.inner`.
 */
export type Columns = { readonly shown: readonly string[]; readonly id: readonly string[] };
/** The columns of items. `row`: returns the row of a table for an item; absent: the item itself. */
export type ItemColumns<Item> = Columns & { readonly row?: (item: Item) => object };

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
export function rowText(row: OutputRow, output: Exclude<Output, 'table'>, { id }: Pick<Columns, 'id'>): string {
  return output === 'ids' ? `${idOf(row, id)}\n` : jsonLine(row);
}

/** Returns the text of one object: a line for each member, or JSON. Members that hold lists are written as JSON. */
export function objectText(value: object, output: Output, { id }: Pick<Columns, 'id'>): string {
  const row: OutputRow = { ...value };
  if (output !== 'table') return rowText(row, output, { id });
  return alignedText(linesOf(row, ''));
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

function jsonLine(value: object): string {
  return `${JSON.stringify(value)}\n`;
}
