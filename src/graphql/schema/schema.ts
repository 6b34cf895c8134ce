/** Builds the schema from the files of this folder. A new part of the schema is a new file and an import here. */
import {
  isEnumType,
  isIntrospectionType,
  lexicographicSortSchema,
  printSchema,
  type GraphQLEnumType,
  type GraphQLSchema,
} from 'graphql';
import { builder } from './builder.ts';
import './audit.ts';
import './calls-pending.ts';
import './calls-permissions.ts';
import './calls-preflight.ts';
import './calls.ts';
import './commands.ts';
import './commands-events.ts';
import './commands-failures.ts';
import './connections.ts';
import './connections-actions.ts';
import './connections-samples.ts';
import './contexts.ts';
import './delivery.ts';
import './delivery-disconnect.ts';
import './delivery-nodes.ts';
import './delivery-scopes.ts';
import './history.ts';
import './history-raw.ts';
import './ingest.ts';
import './devices.ts';
import './revocations.ts';
import './node-lookup.ts';
import './pauses.ts';
import './server.ts';
import './sites.ts';
import './sites-sessions.ts';
import './sites-viewers.ts';
import './users.ts';

/** The schema that GraphQL serves and `schema.graphql` prints. */
export const schema: GraphQLSchema = builder.toSchema({ sortSchema: false });

/**
 * The same schema for REST, in which enum values are serialized as wire words (`user-owned` instead of USER_OWNED).
 * Documents and variables are the same as for `schema`. A document must be validated and executed with the same schema,
 * because the types of the two are different objects.
 */
export const restSchema: GraphQLSchema = speakWireWords(builder.toSchema({ sortSchema: false }));

function speakWireWords(built: GraphQLSchema): GraphQLSchema {
  for (const type of Object.values(built.getTypeMap())) {
    if (isEnumType(type) && !isIntrospectionType(type)) speak(type);
  }
  return built;
}

function speak(type: GraphQLEnumType): void {
  const words = new Set<unknown>(type.getValues().map(({ value }) => value));
  const out = (value: unknown): string => {
    if (typeof value === 'string' && words.has(value)) return value;
    throw new TypeError(`${type.name} has no such value.`);
  };
  // oxlint-disable-next-line typescript/no-deprecated -- libraries for an older graphql-js still call it
  type.serialize = out;
  type.coerceOutputValue = out;
}

// Prints the schema as the text of schema.graphql.

/**
 * Returns the text of `schema.graphql`: the served schema as SDL with descriptions, sorted alphabetically and ending in
 * a newline.
 */
export function printedSchema(): string {
  return `${printSchema(lexicographicSortSchema(schema))}\n`;
}
