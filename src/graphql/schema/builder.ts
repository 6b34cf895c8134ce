/**
 * The schema builder, to which each room adds its types and fields, and what all rooms declare with it: the scalars, the
 * enums of wire words, the options of numbers, fields declared as a table, the hints for caching, and the interface Node
 * with its opaque ids. `schema.ts` builds the schema.
 */
import SchemaBuilder, { type FieldRef, type OutputType, type SchemaTypes, type TypeParam } from '@pothos/core';
import ComplexityPlugin from '@pothos/plugin-complexity';
import { GraphQLError, Kind, type GraphQLNamedInputType, type GraphQLNamedOutputType, type ValueNode } from 'graphql';
import { invalid } from '../../core/errors.ts';
import { isSuffix } from '../../core/history/message.ts';
import { isCanonicalUser, isId } from '../../core/ids.ts';
import { RawJson, checkedJson, toJson, writeJson, type JsonText } from '../../core/json.ts';
import { FIRST_EPOCH_MS, JSON_DEPTH, NODE_ID_CHARS } from '../../core/limits.ts';
import type { LiveEvent } from '../../core/live.ts';
import type { Context } from './context.ts';

// The GraphQL scalar DateTime: prints and parses times.

const RFC_3339 = /^(\d{4})-(\d{2})-(\d{2})T\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-]\d{2}:\d{2})$/i;
const MAX_EPOCH_MS = 8.64e15;

/**
 * Formats epoch milliseconds as RFC 3339 in UTC with milliseconds. Throws a RangeError for a value that is not a time.
 */
export function printTime(epochMs: number): string {
  if (epochMs >= last.from && epochMs < last.from + HOUR_MS && Number.isInteger(epochMs)) return inHour(epochMs);
  const text = new Date(epochMs).toISOString();
  last = { from: Math.floor(epochMs / HOUR_MS) * HOUR_MS, head: text.slice(0, -'00:00.000Z'.length) };
  return text;
}

const HOUR_MS = 3_600_000;
const MINUTES = numbered(60, 2, ':');
const SECONDS = numbered(60, 2, '.');
const MILLISECONDS = numbered(1_000, 3, 'Z');

/** The text before the minutes, cached: most times of one answer fall into the same hour. */
let last = { from: 0, head: '1970-01-01T00:' };

function inHour(epochMs: number): string {
  const ms = epochMs - last.from;
  const seconds = Math.floor(ms / 1_000);
  const minute = MINUTES[Math.floor(seconds / 60)] ?? '';
  return last.head + minute + (SECONDS[seconds % 60] ?? '') + (MILLISECONDS[ms % 1_000] ?? '');
}

function numbered(count: number, digits: number, end: string): readonly string[] {
  return Array.from({ length: count }, (_, n) => String(n).padStart(digits, '0') + end);
}

/**
 * Parses RFC 3339 with any offset, or epoch milliseconds (0, or FIRST_EPOCH_MS and later), to epoch milliseconds.
 * Throws a GraphQLError for anything else.
 */
function parseTime(value: unknown): number {
  if (typeof value === 'number' && value !== 0 && Math.abs(value) < FIRST_EPOCH_MS)
    throw new GraphQLError('Expected an RFC 3339 time or epoch milliseconds; the number looks like seconds.');
  const time = typeof value === 'string' ? parseText(value) : value;
  if (typeof time === 'number' && Number.isInteger(time) && Math.abs(time) <= MAX_EPOCH_MS) return time;
  throw new GraphQLError('Expected an RFC 3339 time or epoch milliseconds.');
}

function parseText(text: string): number {
  const [, year, month, day] = RFC_3339.exec(text) ?? [];
  if (year === undefined) return Number.NaN;
  // Date.parse accepts a day that the month does not have, and moves it into the next month.
  const inMonth = Number(day) <= new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate();
  return inMonth ? Date.parse(text) : Number.NaN;
}

// The GraphQL scalar JSON: payloads pass through as text, so numbers and the order of members stay as they were sent.

/**
 * The scalar `JSON`, whose text passes through unchanged. Resolvers receive a RawJson and return JSON text. In results
 * of graphql-js the value is a RawJson, which `writeJson` serializes; the writer (writer/compile.ts) writes the text
 * directly.
 */
const jsonScalar = {
  extensions: { jsonText: true },
  serialize: (text: JsonText): RawJson => new RawJson(text),
  parseValue: (value: unknown): RawJson => (value instanceof RawJson ? value : rawOf(textOfValue(value))),
  parseLiteral: (node: ValueNode, variables?: Variables | null): RawJson =>
    rawOf(literalText(node, variables) ?? 'null'),
};

type Variables = Readonly<Record<string, unknown>>;

/** Whether this is the scalar `JSON`, of the GraphQL schema or of that for REST. */
export function isJsonScalar({ extensions }: GraphQLNamedInputType | GraphQLNamedOutputType): boolean {
  return extensions['jsonText'] === true;
}

/** Returns the JSON text of an input; null if it was omitted or null. */
export function textOfJson(given: RawJson | null | undefined): JsonText | null {
  return given?.text ?? null;
}

/** Returns the JSON text of a variable's value. Empty, so invalid, for a value that cannot be serialized. */
function textOfValue(value: unknown): string {
  try {
    return toJson(value) ?? 'null';
  } catch {
    // The value is cyclic, or nested deeper than the stack allows.
    return '';
  }
}

/**
 * Returns the text as RawJson. Throws a GraphQLError for JSON nested deeper than JSON_DEPTH, which could overflow the
 * stack of a program that reads it later, and for a text that is not JSON.
 */
function rawOf(text: string): RawJson {
  const json = checkedJson(text);
  if (json === null) throw new GraphQLError(`JSON may be nested at most ${JSON_DEPTH} levels deep.`);
  return new RawJson(json);
}

/**
 * Returns a literal as JSON text, with numbers as the document spells them. Undefined for a variable without a value.
 */
function literalText(node: ValueNode, variables: Variables | null | undefined): string | undefined {
  switch (node.kind) {
    case Kind.INT:
    case Kind.FLOAT:
      return node.value;
    case Kind.LIST:
      return `[${node.values.map((item) => literalText(item, variables) ?? 'null').join(',')}]`;
    case Kind.OBJECT: {
      const members = node.fields.map(({ name, value }) => memberText(name.value, literalText(value, variables)));
      return `{${members.filter((text) => text !== null).join(',')}}`;
    }
    case Kind.VARIABLE:
      return writeJson(variables?.[node.name.value]);
    case Kind.NULL:
      return 'null';
    case Kind.STRING:
    case Kind.BOOLEAN:
    case Kind.ENUM:
      return JSON.stringify(node.value);
  }
}

function memberText(name: string, text: string | undefined): string | null {
  return text === undefined ? null : `${JSON.stringify(name)}:${text}`;
}

/**
 * Fields are non-null unless they say otherwise, and declare their cost. The plan counts the cost from the document
 * before anything runs, so the complexity plugin's own counting in resolvers is disabled.
 */
export const builder = new SchemaBuilder<{
  Context: Context;
  DefaultFieldNullability: false;
  Scalars: {
    /** Resolvers use epoch milliseconds. */
    DateTime: { Input: number; Output: number };
    /** JSON text passes through unchanged. */
    JSON: { Input: RawJson; Output: JsonText };
  };
}>({ plugins: [ComplexityPlugin], defaultFieldNullability: false, complexity: { disabled: true } });

builder.scalarType('DateTime', {
  description:
    'An RFC 3339 time in UTC with milliseconds, such as `2026-01-31T12:00:00.000Z`. Input may have any RFC 3339 offset, or be epoch milliseconds.',
  specifiedByURL: 'https://scalars.graphql.org/andimarek/date-time.html',
  serialize: printTime,
  parseValue: parseTime,
  parseLiteral: (node) => {
    if (node.kind === Kind.STRING) return parseTime(node.value);
    if (node.kind === Kind.INT) return parseTime(Number(node.value));
    throw new GraphQLError('Expected an RFC 3339 string or epoch milliseconds.', { nodes: node });
  },
});

builder.scalarType('JSON', {
  description:
    'Any JSON value. The relay passes it through unchanged and does not interpret it. Input may be nested up to 200 levels deep.',
  specifiedByURL: 'https://www.rfc-editor.org/rfc/rfc8259',
  ...jsonScalar,
});

builder.queryType({
  description: 'The current state, as far as it was observed. Reading never changes, renews or releases any work.',
});
builder.mutationType({
  description:
    'Invoke, await and cancel commands; ingest events; manage sites and their sessions; and, for operators, disconnect clients and drain nodes. Each answers a union: its result, or a `Refusal`.',
});
builder.subscriptionType({
  description:
    'Live changes from now on, without replay. A subscription queues up to 100 events, then drops the oldest ones; `missed` of the next event says how many.',
});

// Makes enums of the schema from the words that frames and stores use.

/**
 * Returns the GraphQL name of a wire word, the form of an enum value in frames, stores and REST: `user-owned` becomes
 * USER_OWNED.
 */
export function enumName(word: string): string {
  return word.toUpperCase().replaceAll('-', '_');
}

/**
 * Makes an enum whose internal values are core's own wire words. So resolvers return wire words unchanged, and the
 * schema of REST serializes them as they are. `words` maps each wire word to its description. A word of core's type
 * that `words` lacks is a compile error. `nameOf` returns the GraphQL name of a word.
 */
export function wireEnum<Word extends string>(
  name: string,
  description: string,
  words: Readonly<Record<Word, string>>,
  nameOf: (word: Word) => string = enumName,
) {
  const values: Record<string, { readonly value: Word; readonly description: string }> = {};
  for (const word of keysOf(words)) values[nameOf(word)] = { value: word, description: words[word] };
  return builder.enumType(name, { description, values });
}

/** Returns the typed keys of a record. The record must have no other keys, so use it only on object literals. */
export function keysOf<Key extends string>(record: Readonly<Record<Key, unknown>>): readonly Key[] {
  return Object.keys(record) as Key[];
}

type Range = { readonly min: number; readonly max: number; readonly default: number };

/** Returns the options of a number that has a default and a range. */
export function ranged({ min, max, default: defaultValue }: Range) {
  return { required: true, defaultValue, extensions: { minimum: min, maximum: max } } as const;
}

// Makes each event of a subscription read its nested fields again.

/** Resolves one event of a subscription. What was loaded for an earlier event is forgotten, so that it is not shown. */
export function fresh<T>(live: LiveEvent<T>, _args: unknown, context: Context): LiveEvent<T> {
  context.forget();
  return live;
}

export type Types = typeof builder extends PothosSchemaTypes.SchemaBuilder<infer T> ? T : SchemaTypes;
type FieldBuilder<Row> = PothosSchemaTypes.ObjectFieldBuilder<Types, Row>;
type Ref = FieldRef<Types>;

/** What a field may declare besides its type and description: its cost, and hints for its plan. */
type More = { readonly complexity?: unknown; readonly extensions?: object };

/** A field that shows a member of its row unchanged. `Value`: what the member may be. */
class Shown<Value> {
  readonly options: object;
  declare readonly holds?: (value: Value) => void;

  constructor(type: TypeParam<Types>, nullable: boolean, described: More & { readonly description: string }) {
    this.options = { type, nullable, ...described };
  }
}

function declare<Value>(type: TypeParam<Types>, nullable = false) {
  return (description: string, more?: More) => new Shown<Value>(type, nullable, { description, ...more });
}

export const id = declare<string>('ID');
export const text = declare<string>('String');
export const int = declare<number>('Int');
export const float = declare<number>('Float');
export const flag = declare<boolean>('Boolean');
/** A time as epoch milliseconds. */
export const time = declare<number>('DateTime');
export const json = declare<JsonText>('JSON');
export const texts = declare<readonly string[]>(['String']);

/** An enum or object type, with the type of the values that its fields return. */
type Typed<Value> = OutputType<Types> & { readonly $inferType: Value };

/** Declares a field of an enum or object type. */
export function typed<Value>(type: Typed<Value>, description: string, more?: More) {
  return declare<Value>(type)(description, more);
}

/** Declares a field with a list of an enum or object type. */
export function list<Value>(type: Typed<Value>, description: string, more?: More) {
  return declare<readonly Value[]>([type])(description, more);
}

type Nullish = null | undefined;

/** Declares fields whose member may be null or absent. */
export const nullable = {
  id: declare<string | Nullish>('ID', true),
  text: declare<string | Nullish>('String', true),
  int: declare<number | Nullish>('Int', true),
  float: declare<number | Nullish>('Float', true),
  flag: declare<boolean | Nullish>('Boolean', true),
  time: declare<number | Nullish>('DateTime', true),
  json: declare<JsonText | Nullish>('JSON', true),
  texts: declare<readonly string[] | Nullish>(['String'], true),
  typed: <Value>(type: Typed<Value>, description: string, more?: More) =>
    declare<Value | Nullish>(type, true)(description, more),
};

/** A table of fields. A field that shows a member has the member's name. */
type Table<Row, Names> = {
  readonly [Name in keyof Names]: Ref | (Name extends keyof Row ? Shown<Row[Name]> : never);
};

type Fields = Readonly<Record<string, Ref>>;

/** The methods of Pothos that make a field. `Table` has checked that the options fit the row. */
type Makes<Row> = {
  expose(name: string, options: object): Ref;
  field(options: object & { readonly resolve: (row: Row) => unknown }): Ref;
};

/** Makes the fields of a type from their table. */
export function fieldsOf<Row, Names extends object>(table: (t: FieldBuilder<Row>) => Names & Table<Row, Names>) {
  return (t: FieldBuilder<Row>): Fields => {
    const makes = t as unknown as Makes<Row>;
    return made(table(t), (name, options) => makes.expose(name, options));
  };
}

/** Makes fields that show the members of a part of the row, for the table of the row's type. */
export function fieldsOfPart<Row, Part extends keyof Row, Names extends object>(
  t: FieldBuilder<Row>,
  part: Part,
  table: Names & Table<Row[Part], Names>,
): Fields {
  const makes = t as unknown as Makes<Row>;
  return made(table, (name, options) =>
    makes.field({ ...options, resolve: (row) => (row[part] as Record<string, unknown>)[name] }),
  );
}

function made(table: object, make: (name: string, options: object) => Ref): Fields {
  const fields = Object.entries(table as Record<string, Ref | Shown<never>>);
  return Object.fromEntries(
    fields.map(([name, field]) => [name, field instanceof Shown ? make(name, field.options) : field]),
  );
}

/*
 * Hints that types and fields give in `extensions`, so that the text of an entity can be cached (writer/texts.ts). A
 * resolver without a hint, and any field with arguments, may depend on anything.
 */

/**
 * The values of the type are core's immutable entities: a change creates a new object, also when it changes something
 * reached through exposed fields.
 */
export const ENTITY = { entity: true } as const;

/** The resolver reads only its parent: no context, no clock. Exposed fields do not need this hint. */
export const PURE = { pure: true } as const;

/**
 * A leaf that the resolver computes cheaply and synchronously from its parent and the time. It is resolved each time,
 * also when the text of its entity is cached.
 */
export const DERIVED = { derived: true } as const;

/**
 * Makes the hint of an entity with derived fields. `changesAt` returns the earliest time after `now` at which any of
 * them may change while the entity stays the same (epoch milliseconds; Infinity: never). Lists of such entities can
 * then be cached.
 */
export function timedEntity<T extends object>(changesAt: (entity: T, now: number) => number) {
  return { entity: true, changesAt } as const;
}

/** Returns the `changesAt` of a type; null when the type does not declare one. */
export function changesAtOf({ extensions }: { readonly extensions: Readonly<Record<string, unknown>> }) {
  const { changesAt } = extensions;
  return isChangesAt(changesAt) ? changesAt : null;
}

function isChangesAt(value: unknown): value is (entity: unknown, now: number) => number {
  return typeof value === 'function';
}

// The interface Node. `schema.ts` finds the row of an id.

/** The types that implement `Node`. */
export type NodeType = Exclude<NodeKind, 'SiteOfSession'>;

const types = new WeakMap<object, NodeType>();

/** Marks a row with its type, so that it can be returned where a `Node` is expected. */
export function asNode<Row extends object>(type: NodeType, row: Row): Row {
  types.set(row, type);
  return row;
}

/** The options of the field `id` of every type that implements `Node`, besides its resolver. */
export const NODE_ID = {
  description:
    'An opaque id, unique in the deployment and the same for as long as the row is: the argument of `node`. It is not one of the ids that other arguments and REST take.',
  extensions: PURE,
} as const;

export const NodeInterface = builder.interfaceRef<object>('Node').implement({
  description: 'A row with an id that is unique in the deployment, so that a cache can keep it by its id.',
  resolveType: (row) => types.get(row),
  fields: (t) => ({
    id: t.id(NODE_ID),
  }),
});

// The opaque ids of `Node`: their forms, and what they name.

const CLIENT = ['userId', 'clientId'] as const;
const COMMAND = [...CLIENT, 'commandId'] as const;

/**
 * The kinds of ids: a letter, and the parts of the key that finds the row. Only the last part may contain a `/`. The
 * letters and the order of parts never change within a version. `SiteOfSession` is the id of a site for the holder of a
 * grant, because the key of a site names its owner.
 */
const FORMS = {
  User: { letter: 'u', parts: ['userId'] },
  ConnectionSnapshot: { letter: 'c', parts: CLIENT },
  Stream: { letter: 's', parts: ['userId', 'suffix'] },
  Message: { letter: 'm', parts: ['seq', 'at', 'userId', 'suffix'] },
  PendingRpc: { letter: 'w', parts: [...COMMAND, 'rpcId'] },
  Command: { letter: 'k', parts: COMMAND },
  DeliveryRecord: { letter: 'd', parts: COMMAND },
  ExecutionContext: { letter: 'x', parts: [...CLIENT, 'contextId'] },
  BrowserWindow: { letter: 'b', parts: [...CLIENT, 'windowId'] },
  Site: { letter: 't', parts: ['userId', 'siteId'] },
  SiteOfSession: { letter: 'v', parts: ['sessionId'] },
  SiteSession: { letter: 'e', parts: ['sessionId'] },
  SiteGrant: { letter: 'g', parts: ['sessionId', 'grantId'] },
  DispatcherNode: { letter: 'n', parts: ['nodeId'] },
  CapacityScope: { letter: 'p', parts: ['scopeId'] },
} as const;

type Forms = typeof FORMS;
export type NodeKind = keyof Forms;
type PartName<Kind extends NodeKind = NodeKind> = Forms[Kind]['parts'][number];
/** The parts of a key as texts; numbers are decimal. */
export type NodeKey<Kind extends NodeKind> = Readonly<Record<PartName<Kind>, string>>;
/** What an id names. */
export type NodeRef<Kinds extends NodeKind = NodeKind> = {
  [Kind in Kinds]: { readonly kind: Kind; readonly key: NodeKey<Kind> };
}[Kinds];

const VERSION = '1';
const NUMBER = /^(0|[1-9][0-9]{0,15})$/;

/** The check of each part that is not simply an id (`isId`). */
const PART_FORMS: Partial<Record<PartName, (text: string) => boolean>> = {
  userId: isCanonicalUser,
  suffix: isSuffix,
  seq: (text) => NUMBER.test(text),
  at: (text) => NUMBER.test(text),
  // The name of a group in the policy file may be any text.
  scopeId: (text) => text.length > 0,
};

/** Returns the id of a row. The same key always gives the same id, on every node and in every process. */
export function nodeIdOf<Kind extends NodeKind>(
  kind: Kind,
  key: Readonly<Record<PartName<Kind>, string | number>>,
): string {
  const form: { readonly letter: string; readonly parts: readonly PartName<Kind>[] } = FORMS[kind];
  return sealed(`${VERSION}${form.letter}${form.parts.map((part) => key[part]).join('/')}`);
}

/**
 * Reads what an id names. Throws `invalid_argument` with the parameter's name if `nodeIdOf` cannot have made the id.
 */
export function readNodeId(parameter: string, id: string): NodeRef {
  const text = id.length <= NODE_ID_CHARS ? Buffer.from(id, 'base64url').toString() : '';
  return refOf(text, id) ?? invalid(parameter, 'expected an id from a field `id` of this relay');
}

function refOf(text: string, id: string): NodeRef | null {
  const kind = KINDS.get(text.slice(0, 2));
  if (!kind || sealed(text) !== id) return null;
  const names: readonly PartName[] = FORMS[kind].parts;
  const values = partsOf(text.slice(2), names.length);
  const fits = values.length === names.length && names.every((name, i) => isPart(name, values[i] ?? ''));
  return fits ? ({ kind, key: Object.fromEntries(names.map((name, i) => [name, values[i]])) } as NodeRef) : null;
}

const KINDS: ReadonlyMap<string, NodeKind> = new Map(
  (Object.keys(FORMS) as NodeKind[]).map((kind) => [VERSION + FORMS[kind].letter, kind]),
);

/** Splits at the first `count - 1` slashes. */
function partsOf(text: string, count: number): readonly string[] {
  const parts = text.split('/');
  return parts.length <= count ? parts : [...parts.slice(0, count - 1), parts.slice(count - 1).join('/')];
}

function isPart(name: PartName, text: string): boolean {
  return (PART_FORMS[name] ?? isId)(text);
}

function sealed(text: string): string {
  return Buffer.from(text).toString('base64url');
}
