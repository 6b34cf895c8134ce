/** Lays out columns of text for a terminal. */
import { visibleLine } from '../protocol/visible-text.ts';
import { isRecord } from '../protocol/json.ts';

/** Formats lines of cells. Each column is as wide as its widest cell. */
export function alignedText(lines: readonly (readonly string[])[]): string {
  const columns = Math.max(0, ...lines.map(({ length }) => length));
  const widths = Array.from({ length: columns }, (_, column) =>
    Math.max(...lines.map((line) => widthOf(line[column] ?? ''))),
  );
  return lines.map((line) => lineText(line, widths)).join('');
}

/** The usual widths of columns. With them, rows that are printed one by one are aligned from the first row on. */
const USUAL_WIDTHS: Readonly<Record<string, number>> = {
  at: 24,
  event: 12,
  user_id: 12,
  client_id: 16,
  command_id: 36,
  action: 16,
  outcome: 15,
  stream: 24,
};

/**
 * Creates a function that formats rows that are printed one by one. Each column is as wide as its widest cell so far.
 */
export function growingTable(names: readonly string[]): (row: OutputRow) => string {
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

/** Returns a value as text on one line. Hidden characters are replaced by their codes. */
export function cellOf(value: unknown): string {
  if (value === null || value === undefined) return '-';
  // People read tables, so a fraction is rounded: 0.182 instead of 0.18181818181818182.
  const shown = typeof value === 'number' && !Number.isInteger(value) ? Number(value.toFixed(3)) : value;
  return visibleLine(typeof shown === 'string' ? shown : JSON.stringify(shown));
}

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' });

/** Returns the number of characters as a person counts them (graphemes). */
function widthOf(text: string): number {
  let width = 0;
  for (const _ of graphemes.segment(text)) width++;
  return width;
}

/** Returns the column headers: only the last part of each member's name, because `connection.status` would be wide. */
export function headOf(names: readonly string[]): readonly string[] {
  return names.map((name) => (name.split('.').at(-1) ?? name).toUpperCase());
}

function lineText(cells: readonly string[], widths: readonly number[]): string {
  const padded = cells.map((cell, column) => cell + ' '.repeat(Math.max(0, (widths[column] ?? 0) - widthOf(cell))));
  return `${padded.join('  ').trimEnd()}\n`;
}

/** A row: the members of a JSON object. */
export type OutputRow = Readonly<Record<string, unknown>>;

/** Returns the cells of a row, in the order of the columns. */
export function cellsOf(row: OutputRow, names: readonly string[]): readonly string[] {
  return names.map((name) => cellOf(memberOf(row, name)));
}

export function memberOf(row: OutputRow, name: string): unknown {
  return name.split('.').reduce<unknown>((value, part) => (isRecord(value) ? value[part] : undefined), row);
}
