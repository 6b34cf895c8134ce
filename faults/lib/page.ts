/** Writes the tables of fault, fuzz and other runs into pages of docs/, between markers. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { format, resolveConfig } from 'prettier';

const ROOT = join(import.meta.dirname, '..', '..');

/**
 * Returns the text with a new part between the markers of this name. Throws unless each marker occurs exactly once, in
 * the right order.
 */
export function replacePart(text: string, name: string, part: string): string {
  const { begin, from, to } = placeOf(text, name);
  return `${text.slice(0, from)}${begin}\n\n${part.trim()}\n\n${text.slice(to)}`;
}

/** Returns the text between the markers of this name. */
export function readPart(text: string, name: string): string {
  const { begin, from, to } = placeOf(text, name);
  return text.slice(from + begin.length, to).trim();
}

function placeOf(text: string, name: string) {
  const begin = `<!-- ${name}: begin -->`;
  const end = `<!-- ${name}: end -->`;
  if (text.split(begin).length !== 2 || text.split(end).length !== 2 || text.indexOf(end) < text.indexOf(begin))
    throw new Error(`the page needs ${begin} and ${end}, once each and in this order`);
  return { begin, from: text.indexOf(begin), to: text.indexOf(end) };
}

/** Returns the rows of a Markdown table as lists of cells, without the two lines of the head. */
export function rowsOf(table: string): readonly (readonly string[])[] {
  const lines = table.split('\n').filter((line) => line.startsWith('|'));
  return lines.slice(2).map((line) =>
    line
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim()),
  );
}

/**
 * Returns the new table together with those rows of the old table that it does not replace, in the order of `keys`. A
 * row is replaced by a row with the same key. Rows of the old table whose key is not in `keys` are dropped.
 */
export function mergeTables(
  old: string,
  now: string,
  { keyOf, keys }: { readonly keyOf: (cells: readonly string[]) => string; readonly keys: readonly string[] },
): string {
  const rows = new Map([...rowsOf(old), ...rowsOf(now)].map((cells) => [keyOf(cells), cells]));
  const head = now.split('\n').slice(0, 2);
  const lines = keys.flatMap((key) => {
    const cells = rows.get(key);
    return cells ? [`| ${cells.join(' | ')} |`] : [];
  });
  return [...head, ...lines].join('\n');
}

/**
 * Replaces the part of this name in a page of docs/, and formats the page. `change`: returns the new part for the
 * present one.
 */
export async function writePart(page: string, name: string, change: (part: string) => string): Promise<void> {
  const file = join(ROOT, page);
  const text = readFileSync(file, 'utf8');
  const changed = replacePart(text, name, change(readPart(text, name)));
  writeFileSync(file, await format(changed, { ...(await resolveConfig(file)), filepath: file }));
}
