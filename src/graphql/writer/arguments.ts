/** Reads the arguments of a direct mutation. The values must equal those of graphql-js. */
import {
  Kind,
  coerceInputValue,
  getArgumentValues,
  getNullableType,
  isInputObjectType,
  isInputType,
  isNonNullType,
  typeFromAST,
  type FieldNode,
  type GraphQLField,
  type GraphQLInputType,
  type GraphQLSchema,
  type OperationDefinitionNode,
  type ValueNode,
  type VariableValues,
} from 'graphql';
import { coerceVariables } from '../variables/coerce-variables.ts';

export type Arguments = Readonly<Record<string, unknown>>;

/**
 * Reads the arguments of an operation's only field, as graphql-js coerces them. Null: graphql-js refuses them.
 * `variables` null: the operation's coerced variables were not needed.
 */
export type ReadArguments = (
  given: Readonly<Record<string, unknown>>,
) => { readonly args: Arguments; readonly variables: VariableValues | null } | null;

export type ArgumentsOf = {
  readonly schema: GraphQLSchema;
  readonly operation: OperationDefinitionNode;
  readonly field: GraphQLField<unknown, unknown>;
  readonly node: FieldNode;
};

/** The most sets of present variables for which a shape is kept. */
const SHAPES = 64;

/**
 * Creates a reader of the field's arguments. Which argument comes from which variable, and which default replaces an
 * absent one, depends only on the set of variables that are present. graphql-js determines it once for each such set.
 * `plain`: no other part of the document needs the variables.
 */
export function createArgumentReader(source: ArgumentsOf, plain: boolean): ReadArguments {
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
