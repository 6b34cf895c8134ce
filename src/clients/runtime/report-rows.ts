/** Checks reported contexts and windows, and writes them as JSON rows with the names of the protocol. */
import { ID, type FieldsOf, type Table } from '../../protocol/fields.ts';
import {
  CONTEXT,
  METADATA_MAX_BYTES,
  WINDOW,
  parseRow,
  type WireContext,
  type WireWindow,
} from '../../protocol/frames.ts';
import { fits, toJson } from './ends.ts';

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
type ReportRow = { readonly id: string; readonly json: string };

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

// Keeps the reported rows of one kind, and which changes the relay does not have yet. Sends nothing.

/**
 * A change of the reported rows of one kind. `set` adds or replaces rows and `removed` removes rows by id. All other
 * rows stay.
 */
export type ReportChanges<T> = { readonly set?: readonly T[]; readonly removed?: readonly string[] };

/** The part of a report about one kind of rows. `set` holds JSON texts. */
export type Part = { readonly snapshot: boolean; readonly set: readonly string[]; readonly removed: readonly string[] };

type ReportStateOptions<T> = {
  /** The name of the rows in error messages. */
  readonly kind: string;
  readonly max: number;
  row(given: T, where: string): ReportRow;
};

/** The current rows of one kind, and which of them have not been reported to the relay. */
export class ReportState<T> {
  readonly #options: ReportStateOptions<T>;
  #rows = new Map<string, string>();
  readonly #changed = new Set<string>();
  /** Whether the client has reported this kind. If not, nothing is sent about it. */
  #reported = false;
  /** Whether the relay has a snapshot, so that changes are enough. */
  #hasSnapshot = false;

  constructor(options: ReportStateOptions<T>) {
    this.#options = options;
  }

  /** Replaces all rows. If one of them is invalid, throws TypeError and changes nothing. */
  replace(given: readonly T[]): void {
    this.#keep(this.#read(given, 'rows'), [...this.#rows.keys()]);
  }

  /** Applies changes. If one of them is invalid, throws TypeError and changes nothing. */
  change({ set = [], removed = [] }: ReportChanges<T>): void {
    for (const [i, id] of removed.entries()) {
      if (typeof id !== 'string' || !ID.test(id)) throw new TypeError(`${this.#options.kind}.removed[${i}]: not an id`);
    }
    const rows = this.#read(set, 'set');
    const both = removed.find((id) => rows.has(id));
    if (both !== undefined) throw new TypeError(`${this.#options.kind}: ${both} is both set and removed`);
    this.#keep(rows, removed);
  }

  /** Makes the next report a snapshot, because the relay has none any more. */
  forget(): void {
    this.#hasSnapshot = false;
  }

  /** Returns what is to be reported now and marks it as reported; null when there is nothing. */
  take(): Part | null {
    if (!this.#reported || (this.#hasSnapshot && this.#changed.size === 0)) return null;
    const changed = [...this.#changed];
    this.#changed.clear();
    if (this.#hasSnapshot) return this.#delta(changed);
    this.#hasSnapshot = true;
    return { snapshot: true, set: [...this.#rows.values()], removed: [] };
  }

  #delta(changed: readonly string[]): Part {
    const set: string[] = [];
    const removed: string[] = [];
    for (const id of changed) {
      const json = this.#rows.get(id);
      if (json === undefined) removed.push(id);
      else set.push(json);
    }
    return { snapshot: false, set, removed };
  }

  #read(given: readonly T[], list: 'rows' | 'set'): Map<string, string> {
    const { kind, row } = this.#options;
    const rows = new Map<string, string>();
    for (const [i, one] of given.entries()) {
      const { id, json } = row(one, `${list === 'rows' ? kind : `${kind}.set`}[${i}]`);
      if (rows.has(id)) throw new TypeError(`${kind}: ${id} appears twice`);
      rows.set(id, json);
    }
    return rows;
  }

  #keep(set: ReadonlyMap<string, string>, removed: readonly string[]): void {
    const { kind, max } = this.#options;
    const rows = new Map(this.#rows);
    for (const id of removed) rows.delete(id);
    for (const [id, json] of set) rows.set(id, json);
    if (rows.size > max) throw new TypeError(`${kind}: more than ${max}`);
    for (const id of [...removed, ...set.keys()]) if (rows.get(id) !== this.#rows.get(id)) this.#changed.add(id);
    this.#rows = rows;
    this.#reported = true;
  }
}
