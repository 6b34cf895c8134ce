/**
 * Writes leaves (scalars and enums) as JSON text, and caches the texts of entities and of their lists, so that
 * unchanged data is written once. A writer must never throw or reject, and a cached text must not outlive a change of a
 * derived field.
 */
import {
  GraphQLID,
  GraphQLString,
  getNullableType,
  isEnumType,
  type GraphQLLeafType,
  type GraphQLOutputType,
} from 'graphql';
import type { MaybePromise } from '../../core/maybe-promise.ts';
import type { Clock } from '../../core/ports.ts';
import { insertMark } from '../../web/reply.ts';
import { isJsonScalar } from '../schema/scalars.ts';
import type { Values } from '../variables-coercion.ts';

/** The state of one execution of an operation. */
export type Run = {
  readonly context: unknown;
  readonly variables: Values;
  /** The arguments of fields, by the number of the field. Each is computed when it is first needed. */
  readonly args: unknown[];
  readonly note: TextInfo;
};

/** Facts about a text that was written. `nonAscii`: whether the text may contain characters beyond ASCII. */
export type TextInfo = {
  nonAscii: boolean;
  chosen?: Chosen;
  /**
   * The buffers to which marks in the text refer (web/reply.ts). Absent: the text must not contain marks. Null: the
   * part that is being written must not contain marks, because it is cached.
   */
  inserts?: Buffer[] | null;
};

/**
 * The object type of the first value of a union or interface type, and a function that returns the values of its
 * members.
 */
export type Chosen = { readonly type: string; member(key: string): unknown };

/** A piece of JSON text. Null: graphql-js must execute the operation. */
export type Text = string | null;

/** Writes a value that a resolver has returned. Never throws and never rejects. */
export type WriteValue = (value: unknown, run: Run) => MaybePromise<Text>;

/**
 * Writes an object type. `listCache` adds a cache to the writer of a list of this type; null if such lists cannot be
 * cached.
 */
export type ObjectWriter = {
  readonly write: WriteValue;
  readonly listCache: ((writeList: WriteValue) => WriteValue) | null;
};

export function leafWriter(type: GraphQLLeafType): WriteValue {
  if (isJsonScalar(type)) return writeJsonText;
  const write: WriteValue = (value, run) => {
    if (value === null || value === undefined || value instanceof Error) return null;
    try {
      return textOf(type.coerceOutputValue(value), run);
    } catch {
      return null;
    }
  };
  return isEnumType(type) ? enumWriter(write) : write;
}

/** A value of the JSON scalar is already JSON text and is written unchanged. */
const writeJsonText: WriteValue = (value, { note }) => {
  if (typeof value !== 'string') return null;
  note.nonAscii ||= isNonAscii(value);
  return value;
};

/** Returns the text that JSON.stringify returns. Null for null and undefined, which graphql-js reports as errors. */
function textOf(coerced: unknown, { note }: Run): Text {
  if (coerced === null || coerced === undefined) return null;
  if (typeof coerced === 'string' && isPlain(coerced)) return `"${coerced}"`;
  if (typeof coerced === 'boolean') return coerced ? 'true' : 'false';
  const text = JSON.stringify(coerced) ?? null;
  if (typeof coerced !== 'number' && text !== null) note.nonAscii ||= isNonAscii(text);
  return text;
}

/** Whether a text contains characters beyond ASCII. */
function isNonAscii(text: string): boolean {
  return Buffer.byteLength(text) !== text.length;
}

/** Creates a writer that caches the text of each value. Used for enums, which have few values with fixed texts. */
function enumWriter(write: WriteValue): WriteValue {
  const texts = new Map<unknown, string>();
  return (value, run) => {
    const known = texts.get(value);
    if (known !== undefined) return known;
    const text = write(value, run);
    if (typeof text === 'string' && typeof value === 'string' && !isNonAscii(text)) texts.set(value, text);
    return text;
  };
}

/** Whether string values of a type are written without conversion, except for JSON quoting. */
export function holdsTexts(type: GraphQLOutputType): boolean {
  const named = getNullableType(type);
  return named === GraphQLString || named === GraphQLID;
}

const PLAIN = /^[ !#-[\]-\x7f]*$/;

/** Whether a text consists of ASCII characters that JSON does not escape. */
export function isPlain(text: string): boolean {
  return PLAIN.test(text);
}

/** Whether graphql-js would await the value. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}

/** A cache of the JSON texts of entities. Each text is kept at most as long as its entity. */
type JsonCache<T> = {
  get(entity: object): T | undefined;
  /** Stores the cached text of an entity. `chars`: the length of the texts in `kept`. */
  set(entity: object, kept: T, chars: number): void;
};

/** Creates caches that share one limit on their size. */
export type JsonCaches = { create<T>(): JsonCache<T> };

/** The cost of a cache entry besides its text, in characters. */
const OVERHEAD = 200;

/**
 * Creates caches of the JSON texts of entities. An entity is immutable, so its text is valid while the entity lives,
 * and is freed with it. All caches together hold at most `chars` characters. When that is reached, all are cleared at
 * once. Until then, texts that were freed with their entity still count.
 */
export function createJsonCaches(chars: number): JsonCaches {
  let generation = 0;
  let used = 0;
  const pay = (cost: number): void => {
    used += cost + OVERHEAD;
    if (used <= chars) return;
    generation++;
    used = 0;
  };
  return {
    create<T>(): JsonCache<T> {
      let kept = new WeakMap<object, T>();
      let ofGeneration = generation;
      const renew = (): void => {
        kept = new WeakMap();
        ofGeneration = generation;
      };
      return {
        get: (entity) => (ofGeneration === generation ? kept.get(entity) : undefined),
        set(entity, value, cost) {
          pay(cost);
          if (ofGeneration !== generation) renew();
          kept.set(entity, value);
        },
      };
    },
  };
}

/** Returns the value of a derived member of an entity. Throws the error of the resolver. */
type Peek = (entity: unknown, run: Run) => unknown;

type CachedEntity = { readonly text: string; readonly nonAscii: boolean; readonly derived: readonly unknown[] };

/**
 * Creates a writer that caches the text of an entity together with the values of its derived members. It writes the
 * text again when one of these values has changed.
 */
export function cacheEntity(write: WriteValue, derived: readonly Peek[], cache: JsonCache<CachedEntity>): WriteValue {
  const still = (values: readonly unknown[], entity: object, run: Run): boolean =>
    derived.every((peek, i) => Object.is(peek(entity, run), values[i]));
  return (entity, run) => {
    if (typeof entity !== 'object' || entity === null) return null;
    try {
      const known = cache.get(entity);
      if (known && (derived.length === 0 || still(known.derived, entity, run))) {
        run.note.nonAscii ||= known.nonAscii;
        return known.text;
      }
      const values = derived.map((peek) => peek(entity, run));
      const text = withoutInserts(run.note, () => write(entity, run));
      if (typeof text === 'string' && still(values, entity, run)) {
        cache.set(entity, { text, nonAscii: isNonAscii(text), derived: values }, text.length);
      }
      return text;
    } catch {
      return null;
    }
  };
}

/**
 * Returns the earliest time, in epoch milliseconds and later than `now`, at which a derived field of an entity may
 * change while the entity stays the same object. The returned time may be earlier than the change, but never later.
 * Infinity: never.
 */
export type ChangesAt = (entity: unknown, now: number) => number;

/** The minimum number of items of a cached list. Writing a shorter list is about as fast as a look-up. */
const MIN_CACHED_ITEMS = 2;

/**
 * The minimum length of a text that is also kept as bytes. For such lengths, copying the text into a socket's buffer
 * costs more than a separate write of the bytes.
 */
const INSERTED_CHARS = 8 * 1024;

type CachedList = {
  readonly text: string;
  /** The text as bytes, created when they are first needed. Only for a text of ASCII characters. */
  bytes: Buffer | null;
  readonly nonAscii: boolean;
  readonly from: number;
  readonly until: number;
};
type ListCaching = {
  /** Returns when the text of the list may next change. Null: nothing in it changes with time. */
  readonly changesAt: ChangesAt | null;
  readonly cache: JsonCache<CachedList>;
};

/**
 * Creates a writer that caches the text of a list of entities until a derived field of one of them may change. An array
 * is never modified after it was returned: a changed list is a new array.
 */
export function cacheList(write: WriteValue, { changesAt, cache }: ListCaching): WriteValue {
  return (list, run) => {
    if (!Array.isArray(list) || list.length < MIN_CACHED_ITEMS) return write(list, run);
    const clock = changesAt ? clockOf(run) : null;
    if (changesAt && !clock) return write(list, run);
    const from = clock?.now() ?? 0;
    const known = cache.get(list);
    if (known && from >= known.from && from < known.until) {
      run.note.nonAscii ||= known.nonAscii;
      return inserted(known, run);
    }
    const text = withoutInserts(run.note, () => write(list, run));
    if (typeof text !== 'string') return text;
    const until = changesAt ? soonest(list, (entity) => changesAt(entity, from)) : Infinity;
    const made = { text: flat(text), bytes: null, nonAscii: isNonAscii(text), from, until };
    // A derived field may have changed while the list was being written.
    if ((clock?.now() ?? 0) < until) cache.set(list, made, text.length);
    return made.text;
  };
}

/** Returns a mark that refers to the list's bytes if the answer may contain one. Otherwise returns the list's text. */
function inserted(list: CachedList, { note: { inserts } }: Run): string {
  if (!inserts || list.nonAscii || list.text.length < INSERTED_CHARS) return list.text;
  list.bytes ??= Buffer.from(list.text, 'latin1');
  return insertMark(inserts.push(list.bytes) - 1);
}

/** Runs `write` in such a way that its text contains no marks, because the text is cached. */
function withoutInserts<T>(note: TextInfo, write: () => T): T {
  const { inserts } = note;
  if (!inserts) return write();
  note.inserts = null;
  try {
    return write();
  } finally {
    note.inserts = inserts;
  }
}

function soonest(list: readonly unknown[], of: (entity: unknown) => number): number {
  let least = Infinity;
  for (const entity of list) least = Math.min(least, of(entity));
  return least;
}

/**
 * Returns the same text as a flat string. V8 represents concatenated text as a tree of pieces; joining two strings
 * makes it copy the pieces.
 */
export function flat(text: string): string {
  return [text.slice(0, 1), text.slice(1)].join('');
}

function clockOf({ context }: Run): Clock | null {
  return isTimed(context) ? context.core.clock : null;
}

function isTimed(context: unknown): context is { readonly core: { readonly clock: Clock } } {
  if (typeof context !== 'object' || context === null || !('core' in context)) return false;
  const { core } = context;
  return typeof core === 'object' && core !== null && 'clock' in core;
}
