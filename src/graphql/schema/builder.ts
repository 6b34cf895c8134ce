/**
 * Creates the schema builder, to which the other files of this folder add their types and fields, and creates enums.
 */
import SchemaBuilder, { type SchemaTypes } from '@pothos/core';
import ComplexityPlugin from '@pothos/plugin-complexity';
import { GraphQLError, Kind } from 'graphql';
import type { JsonText, RawJson } from '../../core/json.ts';
import type { Context } from './context.ts';
import { jsonScalar, parseTime, printTime } from './scalars.ts';

/**
 * Fields are non-null unless they declare otherwise, and each declares its cost. The complexity plugin's own counting
 * in resolvers is disabled, because the plan computes the cost from the document before anything runs.
 */
export const builder = new SchemaBuilder<{
  Context: Context;
  DefaultFieldNullability: false;
  Scalars: {
    /** Resolvers receive and return epoch milliseconds. */
    DateTime: { Input: number; Output: number };
    /** JSON text is passed through unchanged. */
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

// Creates enums from wire words: the texts by which frames and stores name the values.

/**
 * Returns the GraphQL name of a wire word. A wire word is an enum value as frames, stores and REST write it:
 * `user-owned` becomes USER_OWNED.
 */
export function enumName(word: string): string {
  return word.toUpperCase().replaceAll('-', '_');
}

/**
 * Creates an enum whose internal values are core's own wire words. Resolvers therefore return wire words unchanged, and
 * the REST schema writes them as they are. `words` maps each wire word to its description; if a word of core's type is
 * missing there, that is a compile error. `nameOf` returns the GraphQL name of a word.
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

/**
 * Returns the keys of a record with their type. The record must have no other keys than its type says, so use this only
 * on object literals.
 */
export function keysOf<Key extends string>(record: Readonly<Record<Key, unknown>>): readonly Key[] {
  return Object.keys(record) as Key[];
}

type Range = { readonly min: number; readonly max: number; readonly default: number };

/** Returns the options of a number that has a default and a range. */
export function ranged({ min, max, default: defaultValue }: Range) {
  return { required: true, defaultValue, extensions: { minimum: min, maximum: max } } as const;
}

export type Types = typeof builder extends PothosSchemaTypes.SchemaBuilder<infer T> ? T : SchemaTypes;
