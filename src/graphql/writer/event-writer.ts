/** Writes the events of a subscription as JSON text, byte for byte as graphql-js's result. */
import { GraphQLError, Kind, type DocumentNode, type ValidatedSubscriptionArgs } from 'graphql';
import type { MaybePromise } from '../../core/maybe-promise.ts';
import { compileObject, type Compiling } from './compile.ts';
import { createCollect } from './fields.ts';
import type { Text } from './values.ts';

/**
 * Writes the data of one event of a subscription as JSON text, identical to what JSON.stringify gives for graphql-js's
 * data. `event` is the root value. Null: the event must be executed by graphql-js. Never throws and never rejects.
 */
export type EventWriter = (event: unknown, context: unknown) => MaybePromise<Text>;

type Subscribed = Pick<ValidatedSubscriptionArgs, 'schema' | 'document' | 'operation' | 'variableValues'>;

/**
 * Creates the writer of a subscription's events. Null when the document contains something that cannot be written here.
 */
export function createEventWriter({ schema, document, operation, variableValues }: Subscribed): EventWriter | null {
  const root = schema.getSubscriptionType();
  if (!root || document.definitions.some(hasArguments)) return null;
  try {
    const compiling: Compiling = {
      collect: createCollect(schema, document, variableValues),
      fragments: null,
      fields: 0,
    };
    const object = compileObject(compiling, root, [operation.selectionSet]);
    const run = { variables: variableValues, args: [], note: { nonAscii: false } };
    return object && ((event, context) => object.write(event, { ...run, context }));
  } catch (error) {
    // The conditions of `@include` or `@skip` cannot be decided; graphql-js reports the error.
    if (error instanceof GraphQLError) return null;
    throw error;
  }
}

/** Whether a definition uses fragment arguments, which are experimental in graphql-js. */
function hasArguments(node: DocumentNode['definitions'][number]): boolean {
  return node.kind === Kind.FRAGMENT_DEFINITION && (node.variableDefinitions?.length ?? 0) > 0;
}
