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
 * Executes a query and returns its data as JSON text, identical to what JSON.stringify gives for graphql-js's data.
 * Null when the answer would contain an error or something that cannot be written here; the query must then be executed
 * by graphql-js with the same context. Never throws and never rejects. Values prepared from frozen variables are cached
 * for that object. `note` receives what is known of the text.
 */
export type Writer = (
  context: unknown,
  variables: Readonly<Record<string, unknown>>,
  note?: TextInfo,
) => MaybePromise<Text>;

export type WriterSource = {
  readonly schema: GraphQLSchema;
  readonly document: DocumentNode;
  readonly operation: OperationDefinitionNode;
  /** Null: no text is cached. */
  readonly fragments: JsonCaches | null;
};

/** `@include` and `@skip` split a document into variants; at most this many are compiled. */
const VARIANTS = 16;

/** Null when the operation is not a query, reads the schema, or selects fields of abstract types. */
export function createWriter(source: WriterSource): Writer | null {
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
  const read = (given: Given): Prepared | null => {
    const { values } = coerceVariables(schema, operation, given);
    const write = values && variantOf(values);
    return write ? { write, variables: values, args: [] } : null;
  };
  const known = new WeakMap<Given, Prepared>();
  const prepare = (given: Given): Prepared | null => {
    const found = known.get(given);
    if (found) return found;
    const prepared = read(given);
    if (prepared && Object.isFrozen(given)) known.set(given, prepared);
    return prepared;
  };
  return (context, given, note = { nonAscii: false }) => {
    const prepared = prepare(given);
    return prepared && prepared.write({ context, variables: prepared.variables, args: prepared.args, note });
  };
}

type Given = Readonly<Record<string, unknown>>;
type Prepared = { readonly write: WriteRoot; readonly variables: VariableValues; readonly args: unknown[] };

type WriteRoot = (run: Run) => MaybePromise<Text>;
const NO_VARIABLES: VariableValues = { sources: {}, coerced: {} };

/** Fragment arguments are experimental in graphql-js. */
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
