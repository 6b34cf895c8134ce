/** Builds the schema from the rooms: a new room is a new file and an import here. */
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
 * The same schema for REST: it serializes enum values as wire words (`user-owned`, not `USER_OWNED`). Documents and
 * variables are the same as for `schema`. Never validate a value of one schema against the other: their types are
 * different objects.
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

// Prints the schema as text, as schema.graphql holds it.

/**
 * Prints the served schema as SDL with descriptions, sorted alphabetically and ending in a newline: the text of
 * `schema.graphql`.
 */
export function printedSchema(): string {
  return `${printSchema(lexicographicSortSchema(schema))}\n`;
}
