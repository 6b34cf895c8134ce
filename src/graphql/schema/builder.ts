/**
 * The schema builder, to which each room adds its types and fields, with the scalars, the enums of wire words, the
 * options of numbers, and fields declared as a table. `schema.ts` builds the schema.
 */
import SchemaBuilder from '@pothos/core';
import ComplexityPlugin from '@pothos/plugin-complexity';
import { GraphQLError, Kind } from 'graphql';
import type { JsonText, RawJson } from '../../core/json.ts';
import type { LiveEvent } from '../../core/live.ts';
import { jsonScalar } from './builder-json.ts';
import type { Context } from './context.ts';
import type { FieldRef, OutputType, SchemaTypes, TypeParam } from '@pothos/core';

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
 * Parses RFC 3339 with any offset, or epoch milliseconds, to epoch milliseconds. Throws a GraphQLError for anything
 * else.
 */
function parseTime(value: unknown): number {
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
