/** Reports the contexts and windows of a client to the relay, at a limited rate. */
import { deeperThan, longerThan, utf8Length } from '../../protocol/bounds.ts';
import { ID, type FieldsOf, type RowTable } from '../../protocol/fields.ts';
import {
  CONTEXT,
  CONTEXTS_MAX,
  METADATA_MAX_BYTES,
  WINDOW,
  WINDOWS_MAX,
  parseRow,
  type WireContext,
  type WireWindow,
} from '../../protocol/report-rows.ts';
import { isRecord } from '../../protocol/json.ts';
import { ANY, checkMembers } from '../link/options.ts';
import { elapsed, type Clock } from '../link/platform.ts';
import { retryMs, type Refused } from './deliverer.ts';
import { toJson } from './end-reports.ts';

/**
 * How many reports of contexts and windows are sent per second without delay. Beyond this, changes wait for
 * REPORT_WAIT_MS and are combined, because the relay closes links that send too many frames.
 */
const REPORT_RATE = 20;
/** How many removed rows are remembered, in addition to those that were reported again. The relay remembers as many. */
const LEFT_ROWS = 256;
const REPORT_WAIT_MS = 100;

/** The codes of refusals because a share of the relay has no room. The relay may accept the report later. */
const NO_ROOM: ReadonlySet<string> = new Set(['share_exceeded', 'store_full']);

type ReporterOptions = {
  readonly clock: Clock;
  /** Sends a report. Returns false if there is no link. */
  send(payload: string): boolean;
};

/** All rows, as a list, or only the changes. */
export type RowsUpdate<T> = readonly T[] | ReportChanges<T>;

/**
 * Reports the current contexts and windows to the relay: a snapshot on each new link, and then changes. All changes in
 * one turn of the event loop go into one report. Beyond REPORT_RATE, changes are delayed and combined.
 */
export class Reporter {
  readonly #options: ReporterOptions;
  readonly #contexts = new ReportState<ReportedContext>({ kind: 'contexts', max: CONTEXTS_MAX, row: contextRow });
  readonly #windows = new ReportState<ReportedWindow>({ kind: 'windows', max: WINDOWS_MAX, row: windowRow });
  readonly #mayReport: () => boolean;
  #maxFrame: number | null = null;
  #due = false;

  constructor(options: ReporterOptions) {
    this.#options = options;
    this.#mayReport = createThrottle(options.clock, REPORT_RATE);
  }

  /** Replaces or changes the contexts. If a member is wrong, throws TypeError with its name and changes nothing. */
  contexts(update: RowsUpdate<ReportedContext>): void {
    this.#contexts.update(update);
    this.#schedule();
  }

  /** Replaces or changes the windows. Throws like `contexts`. */
  windows(update: RowsUpdate<ReportedWindow>): void {
    this.#windows.update(update);
    this.#schedule();
  }

  /** Whether the context is reported as not closed, and was never removed since it was first reported. */
  hasContext(contextId: string): boolean {
    return this.#contexts.has(contextId);
  }

  /** Called for each new link, on which nothing was reported yet. */
  welcomed(maxFrame: number): void {
    this.#maxFrame = maxFrame;
    this.#forget();
    this.#send();
  }

  /**
   * Reports everything again after a temporary refusal, because the refused report is lost and the relay does not say
   * which one it was.
   */
  refused(refusal: Refused): void {
    const ms = refusal.frame === 'report' ? retryMs(refusal, NO_ROOM) : null;
    if (ms === null) return;
    this.#forget();
    if (this.#due) return;
    this.#due = true;
    this.#options.clock.after(ms, () => this.#send());
  }

  #schedule(): void {
    if (this.#due) return;
    this.#due = true;
    queueMicrotask(() => {
      if (this.#mayReport()) this.#send();
      else this.#options.clock.after(REPORT_WAIT_MS, () => this.#send());
    });
  }

  #forget(): void {
    this.#contexts.forget();
    this.#windows.forget();
  }

  /**
   * Sends the waiting reports. Sends nothing before the first `welcome`. On a new link the first report is a snapshot.
   */
  #send(): void {
    this.#due = false;
    if (this.#maxFrame === null) return;
    const parts = { contexts: this.#contexts.take(), windows: this.#windows.take() };
    for (const payload of reportPayloads(parts, this.#maxFrame)) this.#options.send(payload);
  }
}

function isList<T>(update: RowsUpdate<T>): update is readonly T[] {
  return Array.isArray(update);
}

type ReportKind = 'contexts' | 'windows';
type ReportParts = Readonly<Partial<Record<ReportKind, Part | null>>>;

type Piece = { readonly kind: ReportKind; readonly list: 'set' | 'removed'; readonly json: string };
type Draft = { bytes: number; readonly pieces: Piece[]; readonly snapshots: ReadonlySet<ReportKind> };

const KINDS: readonly ReportKind[] = ['contexts', 'windows'];
/** The number of bytes of a frame that are reserved for its header and for the JSON around the rows. */
const AROUND_BYTES = 256;

/**
 * Splits the parts into the payloads of reports, in order. A large snapshot continues in the next reports. Returns
 * nothing if there are no parts.
 */
function reportPayloads(parts: ReportParts, maxFrameBytes: number): readonly string[] {
  const present = KINDS.filter((kind) => parts[kind]);
  let draft = begin(present.filter((kind) => parts[kind]?.snapshot));
  const payloads: string[] = [];
  for (const piece of present.flatMap((kind) => piecesOf(kind, parts[kind]))) {
    const bytes = utf8Length(piece.json) + 1;
    if (draft.pieces.length > 0 && draft.bytes + bytes > maxFrameBytes) {
      payloads.push(payloadOf(draft));
      draft = begin([]);
    }
    draft.pieces.push(piece);
    draft.bytes += bytes;
  }
  return present.length === 0 ? [] : [...payloads, payloadOf(draft)];
}

function begin(snapshots: readonly ReportKind[]): Draft {
  return { bytes: AROUND_BYTES, pieces: [], snapshots: new Set(snapshots) };
}

function piecesOf(kind: ReportKind, part: Part | null | undefined): Piece[] {
  const removed = (part?.removed ?? []).map((id) => ({ kind, list: 'removed' as const, json: JSON.stringify(id) }));
  const set = (part?.set ?? []).map((json) => ({ kind, list: 'set' as const, json }));
  return [...removed, ...set];
}

function payloadOf({ pieces, snapshots }: Draft): string {
  const parts = KINDS.flatMap((kind) => {
    const own = pieces.filter((piece) => piece.kind === kind);
    const members = [
      ...(snapshots.has(kind) ? ['"snapshot":true'] : []),
      ...(['set', 'removed'] as const).flatMap((list) => listOf(own, list)),
    ];
    return members.length === 0 ? [] : [`"${kind}":{${members.join(',')}}`];
  });
  return `{${parts.join(',')}}`;
}

function listOf(pieces: readonly Piece[], list: Piece['list']): string[] {
  const json = pieces.filter((piece) => piece.list === list).map((piece) => piece.json);
  return json.length === 0 ? [] : [`"${list}":[${json.join(',')}]`];
}

/**
 * Creates a token bucket that holds at most `perSecond` tokens and gains as many each second. The returned function
 * takes one token; it returns false if there is none.
 */
export function createThrottle(clock: Clock, perSecond: number): () => boolean {
  let tokens = perSecond;
  let at = elapsed(clock);
  return () => {
    const now = elapsed(clock);
    tokens = Math.min(perSecond, tokens + (Math.max(0, now - at) * perSecond) / 1000);
    at = now;
    if (tokens < 1) return false;
    tokens -= 1;
    return true;
  };
}

// Checks contexts and windows, and writes them as JSON rows with the names of the protocol.

type Camel<S extends string> = S extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : S;
/** The type of a protocol row with its names in camel case. A null member counts as absent. */
type Camelized<T> = { readonly [K in keyof T as Camel<K & string>]: undefined extends T[K] ? T[K] | null : T[K] };

/**
 * An execution context of this client: a place where it can run something now. `taskId`: the task to which the context
 * is assigned now. `metadata`: any JSON of at most 16 KiB and 190 levels.
 */
export type ReportedContext = Camelized<WireContext> & { readonly metadata?: unknown };
/**
 * A browser window. The relay shows its counts of workers, idle workers and busy workers only if the client reports no
 * contexts.
 */
export type ReportedWindow = Camelized<WireWindow>;

type ReportRow = { readonly id: string; readonly json: string };

/**
 * The deepest nesting of metadata. The relay accepts 200 levels in a payload, and the JSON around the metadata needs
 * some of them.
 */
export const METADATA_DEPTH = 190;

/** Returns a context as a row. If a member is wrong, throws TypeError with its name: `contexts[3].title: ...`. */
function contextRow(context: ReportedContext, where: string): ReportRow {
  const row = wireOf(CONTEXT, context, where, ['metadata']);
  const json = metadataJson(context.metadata, `${where}.metadata`);
  const text = JSON.stringify(row);
  return { id: row.context_id, json: json === 'null' ? text : `${text.slice(0, -1)},"metadata":${json}}` };
}

/** Returns a window as a row. Throws like `contextRow`. */
function windowRow(window: ReportedWindow, where: string): ReportRow {
  const row = wireOf(WINDOW, window, where);
  return { id: row.window_id, json: JSON.stringify(row) };
}

/** Checks the members of a row. `others`: names of members that are not in the table. */
function wireOf<T extends RowTable>(
  table: T,
  given: unknown,
  where: string,
  others: readonly string[] = [],
): FieldsOf<T> {
  if (!isRecord(given)) throw new TypeError(`${where}: an object was expected`);
  const known = [...Object.keys(table).map(camel), ...others];
  checkMembers(`${where}.`, given, [{}, Object.fromEntries(known.map((name) => [name, ANY]))]);
  const members = new Map<string, unknown>(Object.entries(given));
  const row = parseRow(table, Object.fromEntries(Object.keys(table).map((name) => [name, members.get(camel(name))])));
  if (typeof row === 'string') throw new TypeError(`${where}.${row.replace(/^\w+/, camel)}`);
  return row;
}

/**
 * Returns metadata as JSON text. Throws TypeError, with the name `where`, if it is not JSON, too large or nested too
 * deeply.
 */
export function metadataJson(metadata: unknown, where: string): string {
  const json = toJson(metadata ?? null);
  if (typeof json !== 'string' || longerThan(json, METADATA_MAX_BYTES) || deeperThan(json, METADATA_DEPTH)) {
    throw new TypeError(`${where}: JSON of at most ${METADATA_MAX_BYTES} bytes, ${METADATA_DEPTH} deep, was expected`);
  }
  return json;
}

function camel(name: string): string {
  return name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/**
 * Changes of the reported rows of one kind. `set`: rows to add or replace. `removed`: ids of rows to remove. All other
 * rows stay.
 */
export type ReportChanges<T> = { readonly set?: readonly T[]; readonly removed?: readonly string[] };

/** The part of a report about one kind of rows. `set`: the rows as JSON texts. */
type Part = { readonly snapshot: boolean; readonly set: readonly string[]; readonly removed: readonly string[] };

type ReportStateOptions<T> = {
  /** The name of the kind of rows in error messages. */
  readonly kind: string;
  readonly max: number;
  row(given: T, where: string): ReportRow;
};

/** The current rows of one kind, and which of them must still be reported to the relay. */
class ReportState<T> {
  readonly #options: ReportStateOptions<T>;
  #rows = new Map<string, string>();
  readonly #changed = new Set<string>();
  /**
   * The ids of rows that were removed or closed recently. A later row with such an id is in a second life: it is not
   * the row that callers named.
   */
  readonly #left = new Set<string>();
  /** Whether the client has reported this kind of rows. If not, reports do not mention it. */
  #reported = false;
  /** Whether the relay has a snapshot on this link. Only then are changes enough. */
  #hasSnapshot = false;

  constructor(options: ReportStateOptions<T>) {
    this.#options = options;
  }

  /** Replaces all rows or applies changes. If a row is invalid, throws TypeError and changes nothing. */
  update(update: RowsUpdate<T>): void {
    if (isList(update)) this.#keep(this.#read(update, 'rows'), [...this.#rows.keys()]);
    else this.#change(update);
  }

  #change({ set = [], removed = [] }: ReportChanges<T>): void {
    for (const [i, id] of removed.entries()) {
      if (typeof id !== 'string' || !ID.test(id)) throw new TypeError(`${this.#options.kind}.removed[${i}]: not an id`);
    }
    const rows = this.#read(set, 'set');
    const both = removed.find((id) => rows.has(id));
    if (both !== undefined) throw new TypeError(`${this.#options.kind}: ${both} is both set and removed`);
    this.#keep(rows, removed);
  }

  /** Whether there is a row with this id in its first life. */
  has(id: string): boolean {
    return this.#rows.has(id) && !this.#left.has(id);
  }

  /** Makes the next report a snapshot, because the relay no longer has one. */
  forget(): void {
    this.#hasSnapshot = false;
  }

  /** Returns what must be reported now and marks it as reported; null if there is nothing. */
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
    for (const id of [...removed, ...set.keys()]) {
      const json = rows.get(id);
      if (json === this.#rows.get(id)) continue;
      this.#changed.add(id);
      if (json === undefined || json.startsWith(`{"context_id":"${id}","status":"closed"`)) this.#left.add(id);
    }
    for (const id of this.#left) if (this.#left.size > LEFT_ROWS && !rows.has(id)) this.#left.delete(id);
    this.#rows = rows;
    this.#reported = true;
  }
}
