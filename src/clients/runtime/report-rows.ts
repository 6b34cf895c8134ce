/** Checks reported contexts and windows, and writes them as JSON rows with the names of the protocol. */
import type { FieldsOf, Table } from '../../protocol/fields.ts';
import {
  CONTEXT,
  METADATA_MAX_BYTES,
  parseRow,
  WINDOW,
  type WireContext,
  type WireWindow,
} from '../../protocol/report.ts';
import { toJson } from './ends.ts';
import { fits } from './limits.ts';

type Camel<S extends string> = S extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : S;
/** The form of a protocol row in which its names are in camel case. A member that is null counts as absent. */
type Camelized<T> = { readonly [K in keyof T as Camel<K & string>]: undefined extends T[K] ? T[K] | null : T[K] };

/**
 * An execution context of this client: a place where it can execute something now. `taskId`: the task to which it is
 * assigned now. `metadata`: any JSON of at most 16 KiB and 190 levels.
 */
export type ReportedContext = Camelized<WireContext> & { readonly metadata?: unknown };
/**
 * A browser window. The relay shows its counts of workers, idle workers and busy workers only while the client reports
 * no contexts.
 */
export type ReportedWindow = Camelized<WireWindow>;

/** One row as JSON text for the relay. */
export type ReportRow = { readonly id: string; readonly json: string };

/**
 * The most levels of nesting in reported metadata. The relay accepts 200 levels in a report, and the report around the
 * metadata needs some of them.
 */
const DEPTH = 190;
const STRINGS = /"(?:[^"\\]|\\.)*"/g;

/** Returns a context as a row. Throws TypeError, naming the wrong member: `contexts[3].title: ...`. */
export function contextRow(context: ReportedContext, where: string): ReportRow {
  const row = wireOf(CONTEXT, context, where);
  const json = metadataJson(context.metadata, `${where}.metadata`);
  const text = JSON.stringify(row);
  return { id: row.context_id, json: json === 'null' ? text : `${text.slice(0, -1)},"metadata":${json}}` };
}

/** Returns a window as a row. Throws like `contextRow`. */
export function windowRow(window: ReportedWindow, where: string): ReportRow {
  const row = wireOf(WINDOW, window, where);
  return { id: row.window_id, json: JSON.stringify(row) };
}

function wireOf<T extends Table>(table: T, given: unknown, where: string): FieldsOf<T> {
  if (typeof given !== 'object' || given === null) throw new TypeError(`${where}: an object was expected`);
  const members = new Map<string, unknown>(Object.entries(given));
  const row = parseRow(table, Object.fromEntries(Object.keys(table).map((name) => [name, members.get(camel(name))])));
  if (typeof row === 'string') throw new TypeError(`${where}.${row.replace(/^\w+/, camel)}`);
  return row;
}

function metadataJson(metadata: unknown, where: string): string {
  const json = toJson(metadata ?? null);
  if (typeof json !== 'string' || !fits(json, METADATA_MAX_BYTES) || nesting(json) > DEPTH) {
    throw new TypeError(`${where}: JSON of at most ${METADATA_MAX_BYTES} bytes, ${DEPTH} deep, was expected`);
  }
  return json;
}

function nesting(json: string): number {
  let depth = 0;
  let deepest = 0;
  for (const mark of json.replace(STRINGS, '')) {
    if (mark === '{' || mark === '[') deepest = Math.max(deepest, ++depth);
    else if (mark === '}' || mark === ']') depth--;
  }
  return deepest;
}

function camel(name: string): string {
  return name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}
