/**
 * What writers of JSON text give each other: the types, the texts of leaves (scalars and enums), and the caches of the
 * texts of entities and of lists of entities, so that what has not changed is written once. A writer must not throw or
 * reject, and a cached text must not outlive a change of a derived field.
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

/** The state of one execution of one operation. */
export type Run = {
  readonly context: unknown;
  readonly variables: Values;
  /** The arguments of fields by field number, each created when it is first needed. */
  readonly args: unknown[];
  readonly note: TextInfo;
};

/** What is known of a text that was written. `nonAscii`: it may contain characters beyond ASCII. */
export type TextInfo = {
  nonAscii: boolean;
  chosen?: Chosen;
  /**
   * Buffers that are sent in place of marks in the text (web/reply.ts). Absent: the text can hold no marks. Null: the
   * part that is written now can hold none, because it is cached.
   */
  inserts?: Buffer[] | null;
};

/** The object type of the first value of a union or interface type, and what its members resolve to. */
export type Chosen = { readonly type: string; member(key: string): unknown };

/** A piece of JSON text. Null: the operation must be executed by graphql-js. */
export type Text = string | null;

/** Writes a value that a resolver returned. Never throws and never rejects. */
export type WriteValue = (value: unknown, run: Run) => MaybePromise<Text>;

/**
 * How an object type is written. `listCache` adds a cache to the writer of a list of the type; null when such lists
 * cannot be cached.
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
  return isEnumType(type) ? wordWriter(write) : write;
}

/** A value of the JSON scalar is JSON text already, and is written unchanged. */
const writeJsonText: WriteValue = (value, { note }) => {
  if (typeof value !== 'string') return null;
  note.nonAscii ||= isNonAscii(value);
  return value;
};

/** Returns the text that JSON.stringify gives. Null for null and undefined, which graphql-js reports as errors. */
function textOf(coerced: unknown, { note }: Run): Text {
  if (coerced === null || coerced === undefined) return null;
  if (typeof coerced === 'string' && isPlain(coerced)) return `"${coerced}"`;
  if (typeof coerced === 'boolean') return coerced ? 'true' : 'false';
  const text = JSON.stringify(coerced) ?? null;
  if (typeof coerced !== 'number' && text !== null) note.nonAscii ||= isNonAscii(text);
  return text;
}

/** Whether a text holds characters beyond ASCII. */
function isNonAscii(text: string): boolean {
  return Buffer.byteLength(text) !== text.length;
}

/**
 * Creates a writer that caches the text of each value: an enum has few values, and the text of a value never changes.
 */
function wordWriter(write: WriteValue): WriteValue {
  const words = new Map<unknown, string>();
  return (value, run) => {
    const known = words.get(value);
    if (known !== undefined) return known;
    const text = write(value, run);
    if (typeof text === 'string' && typeof value === 'string' && !isNonAscii(text)) words.set(value, text);
    return text;
  };
}

/** Whether a type's string values are written unchanged, apart from JSON quoting. */
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

/** A cache of the texts of entities; each lives as long as its entity. */
type JsonCache<T> = {
  get(entity: object): T | undefined;
  /** Caches the text of an entity. `chars`: the length of the texts in `kept`. */
  set(entity: object, kept: T, chars: number): void;
};

/** Creates caches that share one bound. */
export type JsonCaches = { create<T>(): JsonCache<T> };

/** The cost of an entry besides its text, in characters. */
const OVERHEAD = 200;

/**
 * Creates caches of the texts of entities. An entity is immutable, so its text is valid while the entity lives and is
 * freed with it. At most `chars` characters are cached in all; when they are used up, every cache is cleared at once.
 * Text that was freed with its entity still counts until then.
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

/** Resolves a derived member of an entity. Throws what the resolver throws. */
type Peek = (entity: unknown, run: Run) => unknown;

type CachedEntity = { readonly text: string; readonly nonAscii: boolean; readonly derived: readonly unknown[] };

/**
 * Caches the text of an entity together with the values of its derived members. Writes the text again when one of these
 * values differs.
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
 * The earliest time, in epoch milliseconds and later than `now`, at which any derived field of an entity may change
 * while the entity stays the same object. It may be earlier than the actual change, never later. Infinity: never.
 */
export type ChangesAt = (entity: unknown, now: number) => number;

/** The fewest items of a list that is cached: shorter lists are written about as fast as they are looked up. */
const MIN_CACHED_ITEMS = 2;

/**
 * The fewest characters of a text that is also kept as bytes: from that length on, copying the text into a socket's
 * buffer costs more than a separate write of the bytes.
 */
const INSERTED_CHARS = 8 * 1024;

type CachedList = {
  readonly text: string;
  /** The same text as bytes, created when they are first needed. Only for a text of ASCII characters. */
  bytes: Buffer | null;
  readonly nonAscii: boolean;
  readonly from: number;
  readonly until: number;
};
type ListCaching = {
  /** The function that tells when the text of the list may change. Null when nothing in it changes with time. */
  readonly changesAt: ChangesAt | null;
  readonly cache: JsonCache<CachedList>;
};

/**
 * Caches the text of a list of entities, until a derived field of one of them may change. An array that was handed out
 * is never modified: a changed list is a new array.
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
    // A derived field may have changed while the list was written.
    if ((clock?.now() ?? 0) < until) cache.set(list, made, text.length);
    return made.text;
  };
}

/** Returns a reference to the list's bytes if the answer may contain one. Otherwise returns the list's text. */
function inserted(list: CachedList, { note: { inserts } }: Run): string {
  if (!inserts || list.nonAscii || list.text.length < INSERTED_CHARS) return list.text;
  list.bytes ??= Buffer.from(list.text, 'latin1');
  return insertMark(inserts.push(list.bytes) - 1);
}

/** Runs `write` so that its text contains no references to bytes, because the text is cached. */
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
 * Returns the same text as one flat string. Concatenation leaves a tree of pieces; only joining two strings makes V8
 * copy the pieces.
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
