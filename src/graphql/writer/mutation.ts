/** Writes the answers of direct mutations as JSON text. It must not resolve a mutation twice. */
import {
  Kind,
  coerceInputValue,
  getArgumentValues,
  getNullableType,
  isAbstractType,
  isInputObjectType,
  isInputType,
  isNonNullType,
  isObjectType,
  typeFromAST,
  type FieldNode,
  type GraphQLAbstractType,
  type GraphQLField,
  type GraphQLInputType,
  type GraphQLOutputType,
  type GraphQLSchema,
  type OperationDefinitionNode,
  type ValueNode,
  type VariableValues,
} from 'graphql';
import type { MaybePromise } from '../../core/maybe-promise.ts';
import { conditionVariables, createCollect, hasFragmentArguments } from '../selection.ts';
import { coerceVariables } from '../variables.ts';
import { isDirectMutation } from './cache-hints.ts';
import { compileObject, type Compiled, type Compiling, type WriterSource } from './compile.ts';
import {
  NO_INFO,
  NO_VARIABLES,
  isObject,
  isThenable,
  valueWriter,
  type ObjectWriter,
  type Prepare,
  type Resolves,
  type Run,
  type Text,
  type WriteValue,
} from './objects.ts';

/**
 * Creates the writer of a mutation whose only field is a direct mutation (cache-hints.ts). Null when the operation is
 * no such mutation, or when its answer contains something that cannot be written here. The resolver is called once per
 * context: when the writing returns null after that, graphql-js gets the outcome of the first call.
 */
export function createMutationWriter(source: WriterSource): Prepare | null {
  const { document, operation } = source;
  const [node, ...others] = operation.selectionSet.selections;
  const alone = node?.kind === Kind.FIELD && others.length === 0 && !node.directives?.length ? node : null;
  const field = alone && source.schema.getMutationType()?.getFields()[alone.name.value];
  const conditional = conditionVariables(document).length > 0 || hasFragmentArguments(document);
  if (operation.operation !== 'mutation' || !field || !isDirectMutation(field) || conditional) return null;
  const resolver = rememberOutcomes(field);
  // A resolver that needs `info` would fail here. It could not be called again with `info`, because it may have had
  // effects.
  if (!resolver || resolver.resolve.length > PARAMETERS_BEFORE_INFO) return null;
  const compiled = compile(source, alone, field);
  return compiled && directMutationWriter(source, { node: alone, field, resolver, ...compiled });
}

/** The number of a resolver's parameters before `info`: the parent, the arguments and the context. */
const PARAMETERS_BEFORE_INFO = 3;

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

type Possible = { readonly type: GraphQLAbstractType; readonly writers: ReadonlyMap<string, Compiled> };

function abstractWriter(resolver: ResolvesType, { type, writers }: Possible): ObjectWriter {
  return {
    listCache: null,
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

/** Declared with method syntax, as `Resolves` is. */
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

function directMutationWriter(
  { schema, operation }: WriterSource,
  { node, field, resolver, write, plain }: Parts,
): Prepare {
  const start = `{${JSON.stringify((node.alias ?? node.name).value)}:`;
  const read = createArgumentReader({ schema, operation, field, node }, plain);
  const resolved = (args: unknown, run: Run & { readonly context: object }): MaybePromise<Text> => {
    const { context } = run;
    const failed = (error: unknown): null => (outcomes.set(context, { node, error }), null);
    const whole = (value: unknown, text: Text): Text => {
      if (text !== null) return `${start}${text}}`;
      outcomes.set(context, { node, value });
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
  return (given) => {
    const coerced = read(given);
    if (!coerced) return null;
    const variables = coerced.variables ?? NO_VARIABLES;
    return (context, note) =>
      isObject(context) ? resolved(coerced.args, { context, variables, args: [], note }) : null;
  };
}

/** What the resolver of a node returned or threw. */
type Outcome = { readonly node: FieldNode } & ({ readonly value: unknown } | { readonly error: unknown });

/** The outcomes of direct mutations whose answers could not be written, by the context of the execution. */
const outcomes = new WeakMap<object, Outcome>();
const resolvers = new WeakMap<GraphQLField<unknown, unknown>, Resolves>();

/**
 * Replaces a field's resolver with one that returns or throws the outcome in `outcomes`, if there is one for the
 * context, and otherwise calls the field's own resolver. Returns the field's own resolver; null if the field has none.
 */
function rememberOutcomes(field: GraphQLField<unknown, unknown>): Resolves | null {
  const known = resolvers.get(field);
  if (known || !field.resolve) return known ?? null;
  const { resolve } = field;
  field.resolve = (parent, args, context, info) => {
    const outcome = isObject(context) ? outcomes.get(context) : undefined;
    if (!outcome || outcome.node !== info.fieldNodes[0]) return resolve(parent, args, context, info);
    if ('error' in outcome) throw outcome.error;
    return outcome.value;
  };
  const own: Resolves = { resolve };
  resolvers.set(field, own);
  return own;
}

// Reads the arguments of a direct mutation. The values must equal those of graphql-js.

type Arguments = Readonly<Record<string, unknown>>;

/**
 * Reads the arguments of an operation's only field, as graphql-js coerces them. Null: graphql-js refuses them.
 * `variables` null: the operation's coerced variables were not needed.
 */
type ReadArguments = (
  given: Readonly<Record<string, unknown>>,
) => { readonly args: Arguments; readonly variables: VariableValues | null } | null;

type ArgumentsOf = {
  readonly schema: GraphQLSchema;
  readonly operation: OperationDefinitionNode;
  readonly field: GraphQLField<unknown, unknown>;
  readonly node: FieldNode;
};

/** The most sets of present variables for which a shape is kept. */
const SHAPES = 64;

/**
 * Creates a reader of the field's arguments. Which argument comes from which variable, and which default replaces an
 * absent one, depends only on the set of variables that are present. graphql-js determines both once for each such set.
 * `plain`: no other part of the document needs the variables.
 */
function createArgumentReader(source: ArgumentsOf, plain: boolean): ReadArguments {
  const variables = plain ? variablesOf(source) : null;
  const shapes = new Map<string, Shape | null>();
  const readSlowly: ReadArguments = (given) => readByGraphqlJs(source, given);
  if (!variables) return readSlowly;
  return (given) => {
    const key = keyOf(variables, given);
    if (key === null) return readSlowly(given);
    const shape = shapes.get(key);
    if (shape) {
      const args = fill(shape, given);
      return args === null ? readSlowly(given) : { args, variables: null };
    }
    const read = readSlowly(given);
    if (read && shape === undefined && shapes.size < SHAPES)
      shapes.set(key, shapeOf({ ...source, variables, given }, read.args));
    return read;
  };
}

function readByGraphqlJs({ schema, operation, field, node }: ArgumentsOf, given: Arguments): ReturnType<ReadArguments> {
  const { values: variables } = coerceVariables(schema, operation, given);
  if (!variables) return null;
  try {
    return { args: getArgumentValues(field, node, variables), variables };
  } catch {
    return null;
  }
}

type Variable = { readonly name: string; readonly type: GraphQLInputType };

/** Returns the operation's variables and their types. Null when a type is not known. */
function variablesOf({ schema, operation }: ArgumentsOf): readonly Variable[] | null {
  const found: Variable[] = [];
  for (const { variable, type: node } of operation.variableDefinitions ?? []) {
    const type = typeFromAST(schema, node);
    if (!isInputType(type)) return null;
    found.push({ name: variable.name.value, type });
  }
  return found;
}

/**
 * Returns the set of variables that are present, as a string. Null when a variable has the value null, which differs
 * from an absent variable.
 */
function keyOf(variables: readonly Variable[], given: Arguments): string | null {
  let key = '';
  for (const { name } of variables) {
    const value = valueIn(given, name);
    if (value === null) return null;
    key += value === undefined ? '0' : '1';
  }
  return key;
}

function valueIn(given: Arguments, name: string): unknown {
  return Object.hasOwn(given, name) ? given[name] : undefined;
}

/**
 * How a value of the arguments is created: from a variable that is present, from members, or the same value each time.
 */
type Shape =
  | { readonly kind: 'variable'; readonly name: string; readonly type: GraphQLInputType }
  | { readonly kind: 'members'; readonly members: readonly (readonly [name: string, Shape])[] }
  | { readonly kind: 'same'; readonly value: unknown };

type Found = ArgumentsOf & { readonly variables: readonly Variable[]; readonly given: Arguments };

/** Returns the shape of the arguments. Null when a value is created in a way that no shape describes. */
function shapeOf(found: Found, args: Arguments): Shape | null {
  const nodes = new Map(found.node.arguments?.map(({ name, value }) => [name.value, value]));
  const types = new Map(found.field.args.map(({ name, type }) => [name, type]));
  return membersShape(found, { nodes, types }, args);
}

type Members = {
  readonly nodes: ReadonlyMap<string, ValueNode>;
  readonly types: ReadonlyMap<string, GraphQLInputType>;
};

function membersShape(found: Found, { nodes, types }: Members, values: object): Shape | null {
  const members: [string, Shape][] = [];
  for (const [name, value] of Object.entries(values)) {
    const shape = valueShape(found, { node: nodes.get(name), type: types.get(name) }, value);
    if (!shape) return null;
    members.push([name, shape]);
  }
  return { kind: 'members', members };
}

type Place = { readonly node: ValueNode | undefined; readonly type: GraphQLInputType | undefined };

function valueShape(found: Found, { node, type }: Place, value: unknown): Shape | null {
  if (node?.kind === Kind.VARIABLE && valueIn(found.given, node.name.value) !== undefined) {
    const variable = found.variables.find(({ name }) => name === node.name.value);
    return variable ? { kind: 'variable', ...variable } : null;
  }
  // An object is never reused: it may contain variables, and a resolver may modify it.
  if (typeof value !== 'object' || value === null) return { kind: 'same', value };
  const named = type && getNullableType(type);
  if (node?.kind !== Kind.OBJECT || !isInputObjectType(named) || named.isOneOf) return null;
  const nodes = new Map(node.fields.map((field) => [field.name.value, field.value]));
  const types = new Map(Object.values(named.getFields()).map((field) => [field.name, field.type]));
  return membersShape(found, { nodes, types }, value);
}

/** Creates the arguments from the variables. Null when a variable does not fit its type. */
function fill(shape: Shape, given: Arguments): Arguments | null {
  if (shape.kind !== 'members') return null;
  const made: Record<string, unknown> = {};
  for (const [name, member] of shape.members) {
    const value = valueOf(member, given);
    if (value === undefined) return null;
    made[name] = value;
  }
  return made;
}

function valueOf(shape: Shape, given: Arguments): unknown {
  if (shape.kind === 'same') return shape.value;
  if (shape.kind === 'members') return fill(shape, given) ?? undefined;
  const value = coerceInputValue(given[shape.name], shape.type);
  return value === null && isNonNullType(shape.type) ? undefined : value;
}
