/** Labels of connections: the short values of a client's metadata, by which listings can be filtered. */
import { invalid } from '../errors.ts';
import { hasAtMost } from '../ids.ts';
import { isRecord } from '../json.ts';
import { LABELS_PER_CLIENT, LABELS_PER_FILTER, LABEL_MAX_CHARS } from '../limits.ts';
import type { Connection } from './connection.ts';

/** A value of a client's metadata, as text. */
export type Label = { readonly key: string; readonly value: string };

const FORM = `expected at most ${LABELS_PER_FILTER} texts of the form key=value, each of at most ${LABEL_MAX_CHARS} characters`;

/**
 * Parses labels given as `key=value`. Each is returned once, in a fixed order. The key ends at the first `=`. Returns
 * null if `texts` is null or undefined. Throws `invalid_argument` naming the parameter.
 */
export function checkLabels(parameter: string, texts: readonly string[] | null | undefined): readonly Label[] | null {
  if (texts === null || texts === undefined) return null;
  if (texts.length === 0 || texts.length > LABELS_PER_FILTER) invalid(parameter, FORM);
  return [...new Set(texts)].sort().map((text) => {
    const cut = text.indexOf('=');
    if (cut < 1 || !hasAtMost(text, LABEL_MAX_CHARS)) invalid(parameter, FORM);
    return { key: text.slice(0, cut), value: text.slice(cut + 1) };
  });
}

/** The labels of connections, computed when a filter first needs them. */
const LABEL_CACHE = new WeakMap<Labelled, ReadonlyMap<string, string>>();

type Labelled = Pick<Connection, 'metadata'>;

/**
 * Returns the labels of a connection: the top-level members of its metadata that are texts, numbers or booleans, and
 * those of its member `labels`, if that is an object. A member of `labels` takes precedence over one of the same name.
 * At most LABELS_PER_CLIENT labels are returned. A label of more than LABEL_MAX_CHARS characters as `key=value` is left
 * out.
 */
export function labelsOf(connection: Labelled): ReadonlyMap<string, string> {
  const known = LABEL_CACHE.get(connection);
  if (known) return known;
  const found = new Map<string, string>();
  const metadata: unknown = connection.metadata === null ? null : JSON.parse(connection.metadata);
  if (isRecord(metadata)) {
    const { labels, ...members } = metadata;
    if (isRecord(labels)) addLabels(found, labels);
    addLabels(found, members);
  }
  LABEL_CACHE.set(connection, found);
  return found;
}

/**
 * Matches metadata that may spell a value otherwise than labels do: with an escape, or as a number such as `1e3`. Other
 * metadata need not be parsed to know that they lack a value which their text does not contain.
 */
const OTHER_SPELLING = /\\|\d[.eE]|\d{16}/;

/** Whether a connection has every one of these labels. A client without a connection has no labels. */
export function hasLabels(connection: Labelled | null, wanted: readonly Label[]): boolean {
  if (!connection?.metadata) return wanted.length === 0;
  const { metadata } = connection;
  if (wanted.some(({ value }) => !metadata.includes(value)) && !OTHER_SPELLING.test(metadata)) return false;
  const labels = labelsOf(connection);
  return wanted.every(({ key, value }) => labels.get(key) === value);
}

/** Whether the value of a label of the connection contains this text, which is in lower case. */
export function hasLabelWith(connection: Labelled, text: string): boolean {
  const { metadata } = connection;
  if (metadata === null || (!metadata.toLowerCase().includes(text) && !OTHER_SPELLING.test(metadata))) return false;
  return labelsOf(connection)
    .values()
    .some((value) => value.toLowerCase().includes(text));
}

function addLabels(found: Map<string, string>, members: Readonly<Record<string, unknown>>): void {
  for (const [key, value] of Object.entries(members)) {
    if (found.size === LABELS_PER_CLIENT) return;
    const text = textOf(value);
    if (text !== null && !found.has(key) && key.length + text.length < LABEL_MAX_CHARS) found.set(key, text);
  }
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? String(value) : null;
}
