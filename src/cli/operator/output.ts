/** Prints the answers of operators' commands: `table`, `json`, `jsonl` or `ids`. */
import { cellOf, tableText, widthOf } from './table.ts';

export const OUTPUTS = ['table', 'json', 'jsonl', 'ids'] as const;
export type Output = (typeof OUTPUTS)[number];

/** The members of a JSON object. */
export type OutputRow = Readonly<Record<string, unknown>>;
/** Which members a table shows, and which together are the address of a row. A member of a member is `outer.inner`. */
export type Columns = { readonly shown: readonly string[]; readonly id: readonly string[] };

/** The text of one listing. `page` is printed whole as `json`, also when it is empty. */
export function listText(page: Readonly<{ items: readonly object[] }>, output: Output, columns: Columns): string {
  const rows = page.items.map((item): OutputRow => ({ ...item }));
  if (output === 'json') return jsonLine(page);
  if (output === 'table')
    return tableText(
      columns.shown,
      rows.map((row) => cellsOf(row, columns.shown)),
    );
  return rows.map((row) => rowText(row, output, columns)).join('');
}

/** The line of one row, without a table. */
export function rowText(row: OutputRow, output: Exclude<Output, 'table'>, { id }: Pick<Columns, 'id'>): string {
  return output === 'ids' ? `${idOf(row, id)}\n` : jsonLine(row);
}

/** The text of one object: a line for each member, or JSON. Members that hold lists are shown as JSON. */
export function objectText(value: object, output: Output, { id }: Pick<Columns, 'id'>): string {
  const row: OutputRow = { ...value };
  if (output !== 'table') return rowText(row, output, { id });
  const lines = linesOf(row, '');
  const width = Math.max(0, ...lines.map(([name]) => widthOf(name)));
  return lines.map(([name, text]) => `${name.padEnd(width)}  ${text}\n`).join('');
}

/** The cells of a row, in the order of the columns. */
export function cellsOf(row: OutputRow, names: readonly string[]): readonly string[] {
  return names.map((name) => cellOf(memberOf(row, name)));
}

/** Objects are shown member by member, so that a person can read what is proven about a command. */
function linesOf(row: OutputRow, prefix: string): (readonly [string, string])[] {
  return Object.entries(row).flatMap(([name, value]) =>
    isRow(value) && Object.keys(value).length > 0
      ? linesOf(value, `${prefix}${name}.`)
      : [[cellOf(prefix + name), cellOf(value)] as const],
  );
}

function idOf(row: OutputRow, id: readonly string[]): string {
  return id.map((name) => cellOf(memberOf(row, name))).join('/');
}

function memberOf(row: OutputRow, name: string): unknown {
  return name.split('.').reduce<unknown>((value, part) => (isRow(value) ? value[part] : undefined), row);
}

function jsonLine(value: object): string {
  return `${JSON.stringify(value)}\n`;
}

function isRow(value: unknown): value is OutputRow {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
