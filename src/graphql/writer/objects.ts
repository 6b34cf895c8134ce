/**
 * Resolves fields, writes their values, objects and lists as JSON text, and caches the texts of entities and of lists
 * of entities.
 */
import {
  GraphQLID,
  GraphQLString,
  defaultFieldResolver,
  getNullableType,
  isEnumType,
  isLeafType,
  isListType,
  isNonNullType,
  type FieldNode,
  type GraphQLField,
  type GraphQLLeafType,
  type GraphQLOutputType,
  type VariableValues,
} from 'graphql';
import type { MaybePromise } from '../../core/maybe-promise.ts';
import type { Clock } from '../../core/ports.ts';
import { insertMark } from '../../web/reply.ts';
import { isJsonScalar } from '../schema/builder-json.ts';
import { createArguments, type Values } from '../variables.ts';
import type { JsonCache, JsonCaches } from './cache-hints.ts';

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
   * The bytes that the text refers to (web/reply.ts). Absent: the text must not refer to bytes. Null: the part that
   * is written now must not refer to bytes, because it is cached.
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

/**
 * One member of an object. `pure`: depends on the object alone. `derived`: depends on the object and the time, and is
 * cheap. `live`: may depend on anything.
 */
export type Member = Part & { readonly cacheHint: 'pure' | 'derived' | 'live' };

/** A part of an object's text: a prefix and a value. */
type Part = {
  /** The text before the value, such as `"key":`. */
  readonly prefix: string;
  /** Resolves the value. Throws what the resolver throws. */
  readonly peek: (parent: unknown, run: Run) => unknown;
  readonly write: WriteValue;
  /** Whether the values are strings that are written unchanged. */
  readonly texts: boolean;
};

/**
 * Creates the writer of an object with these members, as `membersWriter` does. Writes null for an Error, which
 * graphql-js must report.
 */
export function objectWriter(members: readonly Member[], caching: Caching | null): ObjectWriter {
  const { write, listCache } = membersWriter(members, caching);
  return { listCache, write: (value, run) => (value instanceof Error ? null : write(value, run)) };
}

/**
 * Creates the writer of an object with these members. For an entity without live members, the whole text is cached; so
 * are lists of the entity, if it has no derived members or its type declares `changesAt`. With live members, only
 * adjacent pure members are cached. `caching` null: nothing is cached.
 */
function membersWriter(members: readonly Member[], caching: Caching | null): ObjectWriter {
  if (!caching) return { write: joinedWriter(members, BRACES), listCache: null };
  const { stores } = caching;
  if (members.length === 0 || members.some(({ cacheHint }) => cacheHint === 'live'))
    return { write: joinedWriter(merged(members, stores), BRACES), listCache: null };
  const derived = members.filter(({ cacheHint }) => cacheHint === 'derived').map(({ peek }) => peek);
  return {
    write: cacheEntity(flatWriter(members, BRACES), derived, stores.create()),
    listCache: listCacheOf(derived.length > 0, caching),
  };
}

/**
 * What caching needs. `changesAt`: when a derived field of the entity may next change; null when the type does not
 * declare it.
 */
type Caching = { readonly stores: JsonCaches; readonly changesAt: ChangesAt | null };

function listCacheOf(timed: boolean, { stores, changesAt }: Caching): ObjectWriter['listCache'] {
  if (timed && !changesAt) return null;
  return (writeList) => cacheList(writeList, { changesAt: timed ? changesAt : null, cache: stores.create() });
}

/** Merges adjacent pure members into one cached part. */
function merged(members: readonly Member[], stores: JsonCaches): readonly Part[] {
  const parts: Part[] = [];
  let pure: Member[] = [];
  const close = (): void => {
    if (pure.length > 1) parts.push(selfPart(cacheEntity(flatWriter(pure), [], stores.create())));
    else parts.push(...pure);
    pure = [];
  };
  for (const member of members) {
    if (member.cacheHint === 'pure') pure.push(member);
    else (close(), parts.push(member));
  }
  close();
  return parts;
}

/** Returns a part that writes several members of an object at once. `write` receives the object itself. */
function selfPart(write: WriteValue): Part {
  return { prefix: '', peek: (parent) => parent, write, texts: false };
}

type CachedEntity = { readonly text: string; readonly nonAscii: boolean; readonly derived: readonly unknown[] };

/**
 * Caches the text of an entity together with the values of its derived members. Writes the text again when one of these
 * values differs.
 */
function cacheEntity(
  write: WriteValue,
  derived: readonly Member['peek'][],
  cache: JsonCache<CachedEntity>,
): WriteValue {
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

type Around = { readonly open: string; readonly close: string };
const BRACES: Around = { open: '{', close: '}' };
const NOTHING: Around = { open: '', close: '' };

/** Creates a writer whose text is one flat string, because cached text must not be a tree of its pieces. */
function flatWriter(parts: readonly Part[], around: Around = NOTHING): WriteValue {
  const write = joinedWriter(parts, around);
  return (parent, run) => {
    const text = write(parent, run);
    return typeof text === 'string' ? flat(text) : text;
  };
}

/**
 * Creates a writer that starts all members before it waits for any, so that nested fields can be loaded in one batch.
 */
function joinedWriter(parts: readonly Part[], { open, close }: Around): WriteValue {
  const writers = parts.map((part, i) => partWriter(part, i === 0 ? open : ','));
  const empty = parts.length === 0 ? open : '';
  return (parent, run) => {
    let text = empty;
    let pieces: MaybePromise<Text>[] | null = null;
    try {
      for (const write of writers) {
        const piece = write(parent, run);
        if (piece === null) return null;
        if (pieces) pieces.push(piece);
        else if (typeof piece !== 'string') pieces = text === '' ? [piece] : [text, piece];
        else text += piece;
      }
    } catch {
      return null;
    }
    return pieces ? joinLater(pieces, close) : text + close;
  };
}

/** Creates the writer of one part. The writer throws what the resolver throws. */
function partWriter({ prefix, peek, write, texts }: Part, before: string): WriteValue {
  const lead = before + prefix;
  const quoted = `${lead}"`;
  return (parent, run) => {
    const value = peek(parent, run);
    if (texts && typeof value === 'string' && isPlain(value)) return `${quoted}${value}"`;
    const piece = isThenable(value) ? settle(value, write, run) : write(value, run);
    if (typeof piece === 'string') return lead + piece;
    return piece === null ? null : piece.then((later) => (later === null ? null : lead + later));
  };
}

function joinLater(pieces: readonly MaybePromise<Text>[], close: string): Promise<Text> {
  const [first] = pieces;
  if (pieces.length === 1 && first instanceof Promise)
    return first.then((text) => (text === null ? null : text + close));
  return Promise.all(pieces).then((texts) => (texts.includes(null) ? null : texts.join('') + close));
}

// Caches the JSON text of lists of entities. A cached text must not outlive a change of a derived field.

/**
 * The earliest time, in epoch milliseconds and later than `now`, at which any derived field of an entity may change
 * while the entity stays the same object. It may be earlier than the actual change, never later. Infinity: never.
 */
type ChangesAt = (entity: unknown, now: number) => number;

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
function cacheList(write: WriteValue, { changesAt, cache }: ListCaching): WriteValue {
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
function flat(text: string): string {
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

// Resolves fields and starts the execution of an operation.

/**
 * Executes an operation and returns its data as JSON text, identical to what JSON.stringify gives for graphql-js's
 * data. Null when the answer would contain an error or something that cannot be written here; the operation must then
 * be executed by graphql-js with the same context. Never throws and never rejects. `note` receives what is known of the
 * text.
 */
export type Prepared = (context: unknown, note?: TextInfo) => MaybePromise<Text>;

/**
 * Prepares the execution of an operation with these variables. Null: graphql-js must execute it, because they select
 * something that cannot be written here.
 */
export type Prepare = (variables: VariableValues, root: RootValue) => Prepared | null;

/** Prepares the execution of an operation with these variables. `object` writes its root type. */
export function preparedWriter(object: ObjectWriter, { coerced }: VariableValues, root: RootValue): Prepared {
  const args: unknown[] = [];
  return (context, note = { nonAscii: false }) => object.write(root, { context, variables: coerced, args, note });
}

/**
 * The root value of an operation. A mutation is resolved once: if its answer cannot be written here, graphql-js reads
 * the outcome of its resolver from the root value.
 */
export class RootValue {
  /** Returns what the resolver of the mutation returned, or throws what it threw; null: it was not called. */
  outcome: (() => unknown) | null = null;
}

/**
 * A resolver. Declared with method syntax because a resolver's `info` parameter has a narrower type than the value
 * passed here.
 */
export interface Resolves {
  resolve(parent: unknown, args: unknown, context: unknown, info: unknown): unknown;
}

/**
 * The value that is passed to resolvers as `info`. A resolver that reads it throws; graphql-js then executes the query,
 * and there `info` is available.
 */
export const NO_INFO = new Proxy(
  {},
  {
    get() {
      throw new Error('`info` is unavailable on the fast path.');
    },
  },
);
const NO_ARGUMENTS = Object.freeze({});
export const NO_VARIABLES: VariableValues = { sources: {}, coerced: {} };

/**
 * Creates the function that resolves a field with `resolve`. `number`: the place of its arguments in `Run.args`; null
 * when they use no variables. It throws if the arguments do not fit.
 */
export function resolverOf(
  field: GraphQLField<unknown, unknown>,
  { resolve }: Resolves,
  { node, number }: { readonly node: FieldNode; readonly number: number | null },
): Member['peek'] {
  if (field.args.length === 0) return (parent, { context }) => resolve(parent, NO_ARGUMENTS, context, NO_INFO);
  const create = createArguments(field, node);
  const read = (variables: Values): Values => create(variables) ?? refuse();
  if (number === null) {
    let fixed: Values | null = null;
    return (parent, { context }) => resolve(parent, (fixed ??= Object.freeze(read({}))), context, NO_INFO);
  }
  return (parent, { context, args, variables }) =>
    resolve(parent, (args[number] ??= read(variables)), context, NO_INFO);
}

function refuse(): never {
  throw new TypeError('The arguments do not fit.');
}

/** The number of a resolver's parameters before `info`: the parent, the arguments and the context. */
const PARAMETERS_BEFORE_INFO = 3;

/** The resolvers of mutations as the schema declares them. */
const resolvers = new WeakMap<GraphQLField<unknown, unknown>, Resolves>();

/**
 * Returns a resolver of a mutation that notes its outcome in the root value. The field's own resolver is replaced by
 * one that returns the noted outcome instead of resolving again. Null if the resolver needs `info`: it would fail here,
 * and must not be called again with `info`, because it may have had effects.
 */
export function resolverOnce(field: GraphQLField<unknown, unknown>): Resolves | null {
  const { resolve } = ownResolver(field);
  if (resolve.length > PARAMETERS_BEFORE_INFO) return null;
  return {
    resolve(root, args, context, info) {
      if (!(root instanceof RootValue)) throw new TypeError('A mutation needs a root value.');
      try {
        const value = resolve(undefined, args, context, info);
        root.outcome = () => value;
        return value;
      } catch (error) {
        root.outcome = () => {
          throw error;
        };
        throw error;
      }
    },
  };
}

function ownResolver(field: GraphQLField<unknown, unknown>): Resolves {
  const known = resolvers.get(field);
  if (known) return known;
  const own: Resolves = { resolve: field.resolve ?? defaultFieldResolver };
  resolvers.set(field, own);
  field.resolve = (root, args, context, info) => {
    if (root instanceof RootValue && root.outcome) return root.outcome();
    return own.resolve(root, args, context, info);
  };
  return own;
}

/** Returns the default resolver. A property that is a function is called, as graphql-js does. */
export function propertyOf(name: string): Member['peek'] {
  return (parent, { context }) => {
    if (!isObject(parent)) return undefined;
    const value = parent[name];
    return typeof value === 'function' ? value.call(parent, NO_ARGUMENTS, context, NO_INFO) : value;
  };
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

// Writes resolved values as JSON text. A writer must not throw or reject.

/**
 * Creates the writer of a type's values. It completes values as graphql-js does and returns null for whatever
 * graphql-js would report as an error. `ofObject` creates the writers of the object types within. Null when one of them
 * cannot be written.
 */
export function valueWriter(
  type: GraphQLOutputType,
  ofObject: (type: GraphQLOutputType) => ObjectWriter | null,
): WriteValue | null {
  if (isNonNullType(type)) return nullableWriter(type.ofType, ofObject);
  const some = nullableWriter(type, ofObject);
  return some && ((value, run) => (value === null || value === undefined ? 'null' : some(value, run)));
}

function nullableWriter(
  type: GraphQLOutputType,
  ofObject: (type: GraphQLOutputType) => ObjectWriter | null,
): WriteValue | null {
  if (isListType(type)) {
    let listCache: ObjectWriter['listCache'] = null;
    const item = valueWriter(type.ofType, (below) => {
      const object = ofObject(below);
      if (object && getNullableType(type.ofType) === below) listCache = object.listCache;
      return object;
    });
    return item && cachedList(listWriter(item), listCache);
  }
  return isLeafType(type) ? leafWriter(type) : (ofObject(type)?.write ?? null);
}

function cachedList(write: WriteValue, listCache: ObjectWriter['listCache']): WriteValue {
  return listCache ? listCache(write) : write;
}

function listWriter(writeItem: WriteValue): WriteValue {
  return (value, run) => {
    if (!Array.isArray(value)) return null;
    const pieces: MaybePromise<Text>[] = [];
    let text = '[';
    let later = false;
    for (let i = 0; i < value.length; i++) {
      const item: unknown = value[i];
      const piece = isThenable(item) ? settle(item, writeItem, run) : writeItem(item, run);
      if (piece === null) return null;
      later ||= typeof piece !== 'string';
      if (later) pieces.push(piece);
      else text += i === 0 ? piece : `,${piece}`;
    }
    if (!later) return `${text}]`;
    const start = value.length > pieces.length ? `${text},` : text;
    return Promise.all(pieces).then((texts) => (texts.includes(null) ? null : `${start}${texts.join(',')}]`));
  };
}

function leafWriter(type: GraphQLLeafType): WriteValue {
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
function isPlain(text: string): boolean {
  return PLAIN.test(text);
}

/** Whether graphql-js would await the value. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}

/** Awaits the value, then writes it. A rejection gives null. */
function settle(value: PromiseLike<unknown>, write: WriteValue, run: Run): Promise<Text> {
  return Promise.resolve(value).then(
    (settled) => write(settled, run),
    () => null,
  );
}
