/** Reads labels from a client's metadata. Labels are short values by which listings of connections can be filtered. */
import { invalid } from '../errors.ts';
import { hasAtMost } from '../ids.ts';
import { isRecord } from '../json.ts';
import { LABELS_PER_CLIENT, LABELS_PER_FILTER, LABEL_MAX_CHARS } from '../limits.ts';
import type { Connection } from './connection.ts';

/** A label: a key and a value, both as text. */
export type Label = { readonly key: string; readonly value: string };

const FORM = `expected at most ${LABELS_PER_FILTER} texts of the form key=value, each of at most ${LABEL_MAX_CHARS} characters`;

/**
 * Parses labels in the form `key=value`. The key ends at the first `=`. Returns each label once, in a fixed order.
 * Returns null if `texts` is null or undefined. Throws `invalid_argument` with the parameter's name.
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

/** The labels of connections. They are computed when a filter first needs them. */
const LABEL_CACHE = new WeakMap<Labelled, ReadonlyMap<string, string>>();

type Labelled = Pick<Connection, 'metadata'>;

/**
 * Returns the labels of a connection: the top-level members of its metadata that are texts, numbers or booleans, and
 * the members of `labels`, if that is an object. If both have a member with the same name, the one in `labels` wins.
 * Returns at most LABELS_PER_CLIENT labels. Leaves out labels of more than LABEL_MAX_CHARS characters in the form
 * `key=value`.
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
 * Matches metadata in which a value may be written differently than in its label: with an escape, or as a number such
 * as `1e3`. If metadata does not match this, a value that does not occur in its text is not among its labels, and it
 * need not be parsed.
 */
const OTHER_SPELLING = /\\|\d[.eE]|\d{16}/;

/** Whether a connection has all of these labels. A client without a connection has no labels. */
export function hasLabels(connection: Labelled | null, wanted: readonly Label[]): boolean {
  if (!connection?.metadata) return wanted.length === 0;
  const { metadata } = connection;
  if (wanted.some(({ value }) => !metadata.includes(value)) && !OTHER_SPELLING.test(metadata)) return false;
  const labels = labelsOf(connection);
  return wanted.every(({ key, value }) => labels.get(key) === value);
}

/** Whether the value of any label of the connection contains the text. `text`: in lower case. */
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
