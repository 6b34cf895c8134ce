/** The one schema builder. Each room adds its types and fields to it; `schema.ts` builds the schema. */
import SchemaBuilder from '@pothos/core';
import ComplexityPlugin from '@pothos/plugin-complexity';
import { GraphQLError, Kind } from 'graphql';
import type { JsonText, RawJson } from '../../core/json.ts';
import { jsonScalar } from './builder-json.ts';
import type { Context } from './context.ts';
import { parseTime, printTime } from './time.ts';

/**
 * Fields are non-null unless they say otherwise, and declare their cost. The plan counts the cost from the document
 * before anything runs, so the plugin's own counting in resolvers is disabled.
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
    'Invoke, await and cancel commands; ingest events; manage sites and their sessions; and, for operators, disconnect clients and drain nodes.',
});
builder.subscriptionType({
  description:
    'Live changes from now on, without replay. A subscription queues up to 100 events, then drops the oldest ones; `missed` of the next event says how many.',
});
