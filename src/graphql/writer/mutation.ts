/** Writes the answers of direct mutations as JSON text. It must not resolve a mutation twice. */
import {
  GraphQLObjectType,
  GraphQLSchema,
  Kind,
  execute,
  isAbstractType,
  isObjectType,
  type ExecutionResult,
  type FieldNode,
  type GraphQLAbstractType,
  type GraphQLField,
  type GraphQLOutputType,
  type VariableValues,
} from 'graphql';
import type { MaybePromise } from '../../core/maybe-promise.ts';
import { isDirectMutation } from './cache-hints.ts';
import { MAX_COERCION_ERRORS } from '../variables/coerce-variables.ts';
import type { Prepare, WriterSource } from './writer.ts';
import { createArgumentReader } from './arguments.ts';
import { NO_INFO, compileObject, type Compiled, type Compiling } from './compile.ts';
import { conditionVariables, createCollect } from './fields.ts';
import { isThenable, valueWriter, type ObjectWriter, type Run, type Text, type WriteValue } from './values.ts';

/**
 * Writes a mutation whose only field is a direct mutation (cache-hints.ts). The resolver is called once per context,
 * even when the writer gives up and `replay` produces the answer.
 */
export type MutationWriter = {
  /** When the writing returns null after the field was resolved, call `replay` with the same context. */
  readonly prepare: Prepare;
  /**
   * Lets graphql-js execute the mutation without calling the resolver again: the field has the value or the error of
   * the first call. Returns null if the field was not resolved with this context, or if its answer was written.
   */
  replay(context: unknown, variables: Readonly<Record<string, unknown>>): MaybePromise<ExecutionResult> | null;
};

type Outcome = { readonly value: unknown } | { readonly error: unknown };

/**
 * Creates the writer of a mutation. Null when the operation is not a single direct mutation, or when its answer
 * contains something that cannot be written here.
 */
export function createMutationWriter(source: WriterSource): MutationWriter | null {
  const { document, operation } = source;
  const [node, ...others] = operation.selectionSet.selections;
  const alone = node?.kind === Kind.FIELD && others.length === 0 && !node.directives?.length ? node : null;
  const field = alone && source.schema.getMutationType()?.getFields()[alone.name.value];
  const conditional = conditionVariables(document).length > 0 || document.definitions.some(hasArguments);
  if (operation.operation !== 'mutation' || !field || !isDirectMutation(field) || conditional) return null;
  const { resolve } = field;
  // A resolver that needs `info` would fail here. It could not be called again with `info`, because it may have had
  // effects.
  if (resolve && resolve.length > PARAMETERS_BEFORE_INFO) return null;
  const compiled = resolve ? compile(source, alone, field) : null;
  return resolve && compiled
    ? directMutationWriter(source, { node: alone, field, resolver: { resolve }, ...compiled })
    : null;
}

/** The number of a resolver's parameters before `info`: the parent, the arguments and the context. */
const PARAMETERS_BEFORE_INFO = 3;

function hasArguments(node: WriterSource['document']['definitions'][number]): boolean {
  return node.kind === Kind.FRAGMENT_DEFINITION && (node.variableDefinitions?.length ?? 0) > 0;
}

function compile(
  { schema, document, fragments }: WriterSource,
  node: FieldNode,
  field: GraphQLField<unknown, unknown>,
): Pick<Parts, 'write' | 'plain'> | null {
  const collect = createCollect(schema, document, NO_VARIABLES);
  const compiling: Compiling = { collect, fragments, fields: 0 };
  const sets = node.selectionSet ? [node.selectionSet] : [];
  const ofObject = (type: GraphQLOutputType): ObjectWriter | null => {
    if (isObjectType(type)) return compileObject(compiling, type, sets);
    if (!isAbstractType(type)) return null;
    const writers = new Map<string, Compiled>();
    for (const one of schema.getPossibleTypes(type)) {
      const object = compileObject(compiling, one, sets);
      if (!object) return null;
      writers.set(one.name, object);
    }
    return type.resolveType ? abstractWriter({ resolveType: type.resolveType }, { type, writers }) : null;
  };
  const write = valueWriter(field.type, ofObject);
  return write && { write, plain: compiling.fields === 0 };
}

const NO_VARIABLES: VariableValues = { sources: {}, coerced: {} };

type Possible = { readonly type: GraphQLAbstractType; readonly writers: ReadonlyMap<string, Compiled> };

function abstractWriter(resolver: ResolvesType, { type, writers }: Possible): ObjectWriter {
  return {
    kept: null,
    write(value, run) {
      try {
        const name = value instanceof Error ? null : resolver.resolveType(value, run.context, NO_INFO, type);
        const object = typeof name === 'string' ? writers.get(name) : undefined;
        if (!object || typeof name !== 'string') return null;
        run.note.chosen ??= { type: name, member: (key) => object.peek(key, value, run) };
        return object.write(value, run);
      } catch {
        return null;
      }
    },
  };
}

/**
 * A resolver. Declared with method syntax because the last parameters have narrower types than the values passed here.
 */
interface Resolves {
  resolve(parent: unknown, args: unknown, context: unknown, info: unknown): unknown;
}
interface ResolvesType {
  resolveType(value: unknown, context: unknown, info: unknown, type: GraphQLAbstractType): unknown;
}

type Parts = {
  readonly node: FieldNode;
  readonly field: GraphQLField<unknown, unknown>;
  readonly resolver: Resolves;
  readonly write: WriteValue;
  /** Whether no field below the mutation's field has arguments that depend on variables. */
  readonly plain: boolean;
};

function directMutationWriter(source: WriterSource, { node, field, resolver, write, plain }: Parts): MutationWriter {
  const { schema, operation } = source;
  const unwritten = new WeakMap<object, Outcome>();
  const start = `{${JSON.stringify((node.alias ?? node.name).value)}:`;
  const read = createArgumentReader({ schema, operation, field, node }, plain);
  const resolved = (args: unknown, run: Run & { readonly context: object }): MaybePromise<Text> => {
    const { context } = run;
    const failed = (error: unknown): null => (unwritten.set(context, { error }), null);
    const whole = (value: unknown, text: Text): Text => {
      if (text !== null) return `${start}${text}}`;
      unwritten.set(context, { value });
      return null;
    };
    const done = (value: unknown): MaybePromise<Text> => {
      const text = write(value, run);
      return text instanceof Promise ? text.then((later) => whole(value, later)) : whole(value, text);
    };
    try {
      const value = resolver.resolve(undefined, args, context, NO_INFO);
      return isThenable(value) ? Promise.resolve(value).then(done, failed) : done(value);
    } catch (error) {
      return failed(error);
    }
  };
  return {
    prepare(given) {
      const coerced = read(given);
      if (!coerced) return null;
      const variables = coerced.variables ?? NO_VARIABLES;
      return (context, note) =>
        isObject(context) ? resolved(coerced.args, { context, variables, args: [], note }) : null;
    },
    replay(context, variables) {
      const outcome = typeof context === 'object' && context !== null ? unwritten.get(context) : undefined;
      return outcome ? replay(source, outcome, { context, variables }) : null;
    },
  };
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

type ReplayRequest = { readonly context: unknown; readonly variables: Readonly<Record<string, unknown>> };

function replay(
  { schema, document, operation }: WriterSource,
  outcome: Outcome,
  { context: contextValue, variables: variableValues }: ReplayRequest,
): MaybePromise<ExecutionResult> {
  const operationName = operation.name?.value ?? null;
  const rootValue = { outcome };
  const args = { document, operationName, contextValue, variableValues, rootValue, hideSuggestions: true };
  return execute({ schema: replaying(schema), ...args, options: { maxCoercionErrors: MAX_COERCION_ERRORS } });
}

const made = new WeakMap<GraphQLSchema, GraphQLSchema>();

/** Returns the same schema with other resolvers of mutations: each returns or throws the outcome in the root value. */
function replaying(schema: GraphQLSchema): GraphQLSchema {
  const known = made.get(schema);
  if (known) return known;
  const config = schema.toConfig();
  const original = schema.getMutationType();
  const mutation = original && withoutResolvers(original);
  const types = config.types.filter((type) => type !== original);
  const schemaOfOutcomes = new GraphQLSchema({ ...config, types, mutation, assumeValid: true });
  made.set(schema, schemaOfOutcomes);
  return schemaOfOutcomes;
}

function withoutResolvers(type: GraphQLObjectType): GraphQLObjectType {
  const { fields, ...config } = type.toConfig();
  const resolve = ({ outcome }: { readonly outcome: Outcome }): unknown => {
    if ('error' in outcome) throw outcome.error;
    return outcome.value;
  };
  const replayed = Object.entries(fields).map(([name, field]) => [name, { ...field, resolve }] as const);
  return new GraphQLObjectType({ ...config, fields: Object.fromEntries(replayed) });
}
