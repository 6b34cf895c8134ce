/** Writes the answers of queries as JSON text, byte for byte as graphql-js's result. */
import {
  GraphQLError,
  Kind,
  type DocumentNode,
  type GraphQLSchema,
  type OperationDefinitionNode,
  type VariableValues,
} from 'graphql';
import type { MaybePromise } from '../../core/maybe-promise.ts';
import type { JsonCaches } from './json-cache.ts';
import { coerceVariables } from '../variables/coerce-variables.ts';
import { compileObject, type Compiling } from './compile.ts';
import { conditionVariables, createCollect } from './fields.ts';
import type { TextInfo, Run, Text } from './values.ts';

/**
 * Executes an operation and returns its data as JSON text, identical to what JSON.stringify gives for graphql-js's
 * data. Null when the answer would contain an error or something that cannot be written here; the operation must then
 * be executed by graphql-js with the same context. Never throws and never rejects. `note` receives what is known of the
 * text.
 */
export type Prepared = (context: unknown, note: TextInfo) => MaybePromise<Text>;

/**
 * Prepares the execution of an operation with these variables. Null: graphql-js must execute it, because it refuses the
 * variables or because they select something that cannot be written here.
 */
export type Prepare = (variables: Readonly<Record<string, unknown>>) => Prepared | null;

export type WriterSource = {
  readonly schema: GraphQLSchema;
  readonly document: DocumentNode;
  readonly operation: OperationDefinitionNode;
  /** The caches of the texts of entities. Null: no text is cached. */
  readonly fragments: JsonCaches | null;
};

/**
 * The most variants of a document that are compiled. Each combination of the conditions of `@include` and `@skip` is a
 * variant.
 */
const VARIANTS = 16;

/**
 * Creates the writer of a query. Null when the operation is not a query, reads the schema, or selects fields of
 * abstract types.
 */
export function createWriter(source: WriterSource): Prepare | null {
  const { schema, document, operation } = source;
  if (operation.operation !== 'query' || document.definitions.some(hasArguments)) return null;
  const conditions = conditionVariables(document);
  const variants = new Map<string, WriteRoot | null>();
  const variantOf = (variables: VariableValues): WriteRoot | null => {
    const key = conditions.map((name) => String(variables.coerced[name])).join();
    const known = variants.get(key);
    if (known !== undefined) return known;
    const made = variants.size < VARIANTS ? compile(source, variables) : null;
    if (variants.size < VARIANTS) variants.set(key, made);
    return made;
  };
  if (conditions.length === 0 && variantOf(NO_VARIABLES) === null) return null;
  return (given) => {
    const { values: variables } = coerceVariables(schema, operation, given);
    const write = variables && variantOf(variables);
    if (!write) return null;
    const args: unknown[] = [];
    return (context, note) => write({ context, variables, args, note });
  };
}

type WriteRoot = (run: Run) => MaybePromise<Text>;
const NO_VARIABLES: VariableValues = { sources: {}, coerced: {} };

/** Whether a definition uses fragment arguments, which are experimental in graphql-js. */
function hasArguments(node: DocumentNode['definitions'][number]): boolean {
  return node.kind === Kind.FRAGMENT_DEFINITION && (node.variableDefinitions?.length ?? 0) > 0;
}

function compile(
  { schema, document, operation, fragments }: WriterSource,
  variables: VariableValues,
): WriteRoot | null {
  const root = schema.getQueryType();
  try {
    const compiling: Compiling = { collect: createCollect(schema, document, variables), fragments, fields: 0 };
    const object = root ? compileObject(compiling, root, [operation.selectionSet]) : null;
    return object && ((run) => object.write(undefined, run));
  } catch (error) {
    // The conditions of `@include` or `@skip` cannot be decided; graphql-js reports the error.
    if (error instanceof GraphQLError) return null;
    throw error;
  }
}
