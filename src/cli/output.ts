/** Formats the results of operators' commands as `--output` says: `table`, `json`, `jsonl` or `ids`. */
import { isRecord } from '../protocol/json.ts';
import { alignedText, headOf, cellOf, cellsOf, type OutputRow, memberOf } from './columns.ts';

export const OUTPUTS = ['table', 'json', 'jsonl', 'ids'] as const;
export type Output = (typeof OUTPUTS)[number];

/**
 * `shown`: the members that a table shows. `id`: the members that together identify a row. A member of a nested object
 * is written `outer.inner`.
 */
export type Columns = { readonly shown: readonly string[]; readonly id: readonly string[] };
/** The columns of a list of items. `row`: converts an item to a row; absent: the item is the row. */
export type ItemColumns<Item> = Columns & { readonly row?: (item: Item) => object };

/** Returns the text of a listing. In the format `json` the whole page is written, even if it has no rows. */
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

/** Returns the line of one row, in a format other than `table`. */
export function rowText(row: OutputRow, output: Exclude<Output, 'table'>, { id }: Pick<Columns, 'id'>): string {
  return output === 'ids' ? `${idOf(row, id)}\n` : jsonLine(row);
}

/** Returns the text of one object: one line per member, or JSON. Members that are lists are written as JSON. */
export function objectText(value: object, output: Output, { id }: Pick<Columns, 'id'>): string {
  const row: OutputRow = { ...value };
  if (output !== 'table') return rowText(row, output, { id });
  return alignedText(linesOf(row, ''));
}

/** Returns one line for each member, including those of nested objects. */
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
