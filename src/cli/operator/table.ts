/** Lays out columns of text for a terminal. */
import { visibleLine } from '../../protocol/visible-text.ts';

/** Returns a table with a header. The header is there even without rows. */
export function tableText(names: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [headOf(names), ...rows];
  const widths = names.map((_, column) => Math.max(...lines.map((line) => widthOf(line[column] ?? ''))));
  return lines.map((line) => lineText(line, widths)).join('');
}

/**
 * Returns a function that lays out rows that come one at a time: the header first, and each column as wide as its
 * widest cell so far.
 */
export function growingTable(names: readonly string[]): (cells: readonly string[]) => string {
  const head = headOf(names);
  const widths = head.map(widthOf);
  let begun = false;
  return (cells) => {
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
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return visibleLine(text);
}

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' });

/** Returns the number of characters as a person counts them. */
export function widthOf(text: string): number {
  let width = 0;
  for (const _ of graphemes.segment(text)) width++;
  return width;
}

/**
 * Returns the column headers: the last word of each member's name, since `connection.status` would make a wide column.
 */
function headOf(names: readonly string[]): readonly string[] {
  return names.map((name) => (name.split('.').at(-1) ?? name).toUpperCase());
}

function lineText(cells: readonly string[], widths: readonly number[]): string {
  const padded = cells.map((cell, column) => cell + ' '.repeat(Math.max(0, (widths[column] ?? 0) - widthOf(cell))));
  return `${padded.join('  ').trimEnd()}\n`;
}
