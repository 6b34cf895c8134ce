/** Resolves the fields of objects, and writes objects and lists as JSON text. A writer must never throw or reject. */
import {
  defaultFieldResolver,
  getNullableType,
  isLeafType,
  isListType,
  isNonNullType,
  type FieldNode,
  type GraphQLField,
  type GraphQLOutputType,
  type VariableValues,
} from 'graphql';
import type { MaybePromise } from '../../core/maybe-promise.ts';
import { createArguments } from '../variables-arguments.ts';
import type { Values } from '../variables-coercion.ts';
import {
  cacheEntity,
  cacheList,
  flat,
  isPlain,
  isThenable,
  leafWriter,
  type ChangesAt,
  type JsonCaches,
  type ObjectWriter,
  type Run,
  type Text,
  type TextInfo,
  type WriteValue,
} from './texts.ts';
import { NO_INFO, takesInfo } from './no-info.ts';

/**
 * One member of an object. `cacheHint`: `pure` members depend only on the object; `derived` ones on the object and the
 * time, and are cheap; `live` ones may depend on anything.
 */
export type Member = Part & { readonly cacheHint: 'pure' | 'derived' | 'live' };

/** A part of an object's text: a fixed prefix and a value. */
type Part = {
  /** The text before the value, such as `"key":`. */
  readonly prefix: string;
  /** Returns the value. Throws the error of the resolver. */
  readonly peek: (parent: unknown, run: Run) => unknown;
  readonly write: WriteValue;
  /** Whether the values are strings that are written without conversion. */
  readonly texts: boolean;
};

/**
 * Creates the writer of an object with these members, like `membersWriter`. For an Error instead of an object, the
 * writer returns null, because graphql-js must report the error.
 */
export function objectWriter(members: readonly Member[], caching: Caching | null): ObjectWriter {
  const { write, listCache } = membersWriter(members, caching);
  return { listCache, write: (value, run) => (value instanceof Error ? null : write(value, run)) };
}

/**
 * Creates the writer of an object with these members. The text of an entity without live members is cached as a whole.
 * Lists of the entity are cached too, if it has no derived members or its type declares `changesAt`. With live members,
 * only adjacent pure members are cached. `caching` null: nothing is cached.
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

/** `changesAt`: returns when a derived field of the entity may next change; null if the type does not declare it. */
type Caching = { readonly stores: JsonCaches; readonly changesAt: ChangesAt | null };

function listCacheOf(timed: boolean, { stores, changesAt }: Caching): ObjectWriter['listCache'] {
  if (timed && !changesAt) return null;
  return (writeList) => cacheList(writeList, { changesAt: timed ? changesAt : null, cache: stores.create() });
}

/** Combines adjacent pure members into one cached part. */
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

/** Returns a part that writes several members of an object together. `write` receives the object itself. */
function selfPart(write: WriteValue): Part {
  return { prefix: '', peek: (parent) => parent, write, texts: false };
}

type Around = { readonly open: string; readonly close: string };
const BRACES: Around = { open: '{', close: '}' };
const NOTHING: Around = { open: '', close: '' };

/**
 * Creates a writer that returns flat strings. V8 represents concatenated text as a tree of its pieces, which a cache
 * must not keep.
 */
function flatWriter(parts: readonly Part[], around: Around = NOTHING): WriteValue {
  const write = joinedWriter(parts, around);
  return (parent, run) => {
    const text = write(parent, run);
    return typeof text === 'string' ? flat(text) : text;
  };
}

/**
 * Creates a writer that starts all members before it waits for any of them, so that nested fields can be loaded in one
 * batch.
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

/** Creates the writer of one part. It throws the error of the resolver. */
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

// Resolves fields and starts the execution of an operation.

/**
 * Executes an operation and returns its data as JSON text, identical to the result of JSON.stringify for graphql-js's
 * data. Null if the answer would contain an error or something that the writer does not support: then graphql-js must
 * execute the operation with the same context. Never throws and never rejects. `note` receives facts about the text.
 */
export type Prepared = (context: unknown, note?: TextInfo) => MaybePromise<Text>;

/**
 * Prepares the execution of an operation with these variables. Null: graphql-js must execute it, because with these
 * variables it selects something that the writer does not support.
 */
export type Prepare = (variables: VariableValues, root: RootValue) => Prepared | null;

/** Prepares the execution of an operation with these variables. `object` writes its root type. */
export function preparedWriter(object: ObjectWriter, { coerced }: VariableValues, root: RootValue): Prepared {
  const args: unknown[] = [];
  return (context, note = { nonAscii: false }) => object.write(root, { context, variables: coerced, args, note });
}

/**
 * The root value of an operation. A mutation must be resolved only once. If the writer called its resolver but cannot
 * write the answer, graphql-js takes the resolver's outcome from this object.
 */
export class RootValue {
  /** Returns what the mutation's resolver returned, or throws what it threw; null: the resolver was not called. */
  outcome: (() => unknown) | null = null;
}

/**
 * A resolver. Declared with method syntax, because the `info` parameter of a resolver has a narrower type than the
 * value that is passed here.
 */
export interface Resolves {
  resolve(parent: unknown, args: unknown, context: unknown, info: unknown): unknown;
}

const NO_ARGUMENTS = Object.freeze({});
export const NO_VARIABLES: VariableValues = { sources: {}, coerced: {} };

/**
 * Creates the function that resolves a field with `resolve`. `number`: the index of the field's arguments in
 * `Run.args`; null if they use no variables. The function throws if the arguments do not fit.
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

/** The original resolvers of mutations, by field. */
const resolvers = new WeakMap<GraphQLField<unknown, unknown>, Resolves>();

/**
 * Returns a resolver of a mutation that stores its outcome in the root value. In the schema, the field's resolver is
 * replaced by one that returns a stored outcome instead of resolving again. Null if the resolver needs `info`. Such a
 * resolver would fail here, and must not be called again with `info`, because it may have had effects.
 */
export function resolverOnce(field: GraphQLField<unknown, unknown>): Resolves | null {
  const { resolve } = ownResolver(field);
  if (takesInfo(resolve)) return null;
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

/** Returns the default resolver. A property that is a function is called, as in graphql-js. */
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

// Writes the values of a field: objects, lists of values, and leaves.

/**
 * Creates the writer of a type's values. It completes values as graphql-js does, and returns null for every value that
 * graphql-js would report as an error. `ofObject` creates the writers of the object types within. Null if one of those
 * cannot be created.
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

/** Awaits the value and writes it. If the value rejects, the result is null. */
function settle(value: PromiseLike<unknown>, write: WriteValue, run: Run): Promise<Text> {
  return Promise.resolve(value).then(
    (settled) => write(settled, run),
    () => null,
  );
}
