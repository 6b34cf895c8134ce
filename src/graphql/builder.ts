/** The one schema builder. Rooms add their types and fields to it; `schema.ts` builds what they added. */
import SchemaBuilder from '@pothos/core';
import ComplexityPlugin from '@pothos/plugin-complexity';
import { GraphQLError, Kind } from 'graphql';
import type { JsonText, RawJson } from '../core/json.ts';
import { jsonScalar } from './builder-json.ts';
import type { Context } from './context.ts';
import { parseTime, printTime } from './time.ts';

/**
 * Fields are non-null unless they say otherwise, and carry their cost. The cost is counted from the document by the plan, before
 * anything runs; hence `disabled` here, which stops only the plugin's own counting in resolvers.
 */
export const builder = new SchemaBuilder<{
  Context: Context;
  DefaultFieldNullability: false;
  Scalars: {
    /** Epoch milliseconds inside. */
    DateTime: { Input: number; Output: number };
    /** Passes through as it is written. */
    JSON: { Input: RawJson; Output: JsonText };
  };
}>({ plugins: [ComplexityPlugin], defaultFieldNullability: false, complexity: { disabled: true } });

builder.scalarType('DateTime', {
  description:
    'An RFC 3339 time in UTC with milliseconds, such as `2026-01-31T12:00:00.000Z`. As input, any RFC 3339 offset and epoch milliseconds are taken too.',
  serialize: printTime,
  parseValue: parseTime,
  parseLiteral: (node) => {
    if (node.kind === Kind.STRING) return parseTime(node.value);
    if (node.kind === Kind.INT) return parseTime(Number(node.value));
    throw new GraphQLError('A time is a text (RFC 3339) or a number (epoch milliseconds).', { nodes: node });
  },
});

builder.scalarType('JSON', {
  description:
    'Any JSON value, opaque to callboard: it is neither looked into nor rewritten. As input it may be nested 200 deep.',
  ...jsonScalar,
});

builder.queryType({
  description: 'What is true now, as far as it was observed. Reading never changes, renews or releases any work.',
});
builder.mutationType({
  description:
    'Commands: invoking, awaiting and cancelling them. Events: ingesting them. And what operators do: disconnecting and draining.',
});
builder.subscriptionType({
  description:
    'Live changes from now on, without replay. A subscription queues 100 events and drops the oldest; `missed` on the next event says how many.',
});
