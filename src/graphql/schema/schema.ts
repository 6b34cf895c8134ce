/** Builds the schema from the rooms. A new room is a new file and an import here. */
import { isEnumType, isIntrospectionType, type GraphQLEnumType, type GraphQLSchema } from 'graphql';
import { builder } from './builder.ts';
import './actions.ts';
import './audit.ts';
import './connections-flapping.ts';
import './connections.ts';
import './contexts-windows.ts';
import './contexts-workers.ts';
import './contexts.ts';
import './dedup.ts';
import './delivery-command.ts';
import './delivery-disconnect.ts';
import './delivery-events.ts';
import './delivery-inspection.ts';
import './delivery-nodes.ts';
import './delivery-scopes.ts';
import './delivery.ts';
import './history-raw.ts';
import './history.ts';
import './ingest.ts';
import './metrics.ts';
import './node.ts';
import './reveal.ts';
import './rpc-invoke.ts';
import './rpc-preflight.ts';
import './rpc.ts';
import './server.ts';
import './sites-events.ts';
import './sites-sessions.ts';
import './sites.ts';
import './users.ts';
import './viewer.ts';

/** The schema that GraphQL serves and `schema.graphql` prints. */
export const schema: GraphQLSchema = builder.toSchema({ sortSchema: false });

/**
 * The same schema for REST: it serializes enum values as wire values (`user-owned`, not `USER_OWNED`). Documents and
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
  type.serialize = out;
  type.coerceOutputValue = out;
}
