/**
 * Reads the variables of an operation and the arguments of its fields. What follows from the document and its types is
 * compiled once; a request costs work linear in the size of its variables.
 */
import {
  BREAK,
  GraphQLError,
  Kind,
  coerceInputLiteral,
  coerceInputValue,
  getNullableType,
  getVariableValues,
  isInputObjectType,
  isInputType,
  isLeafType,
  isListType,
  isNonNullType,
  isRequiredInputField,
  typeFromAST,
  visit,
  type ASTNode,
  type FieldNode,
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLInputField,
  type GraphQLInputObjectType,
  type GraphQLInputType,
  type GraphQLLeafType,
  type GraphQLSchema,
  type OperationDefinitionNode,
  type ValueNode,
  type VariableDefinitionNode,
  type VariableValues,
} from 'graphql';
import { invalid } from '../core/errors.ts';
import { isRecord, readShaped, shapeFaultText, type JsonText, type ObjectShape, type Shape } from '../core/json.ts';
import { ENVELOPE_PARTS } from '../core/limits.ts';
import { isJsonScalar } from './schema/builder.ts';

/** Variables as a requester sends them. */
export type Variables = Readonly<Record<string, unknown>>;
/** Values as resolvers receive them, by the name of their variable or argument. An absent one has no value. */
export type Values = Readonly<Record<string, unknown>>;

export type CoercedVariables =
  | { readonly values: VariableValues; readonly errors?: never }
  | { readonly values?: never; readonly errors: readonly GraphQLError[] };

/**
 * The number of coercion errors that graphql-js may report. Each error prints the whole value that it is about. With
 * many errors, the printed text would grow with the square of the size of the request.
 */
export const MAX_COERCION_ERRORS = 1;

/** How the variables of one operation are read. */
export type VariablesReader = ReturnType<typeof createVariablesReader>;

/** Creates the functions that read the variables of one operation. The document must be valid. */
export function createVariablesReader(schema: GraphQLSchema, operation: OperationDefinitionNode) {
  let compiled: readonly Declared[] | null = null;
  let shape: ObjectShape | null = null;
  let sources: VariableValues['sources'] | null = null;
  const declared = (): readonly Declared[] =>
    (compiled ??= (operation.variableDefinitions ?? []).flatMap((node) => declaredVariable(schema, node) ?? []));
  const parse = ({ text }: VariablesText): Variables => {
    shape ??= variablesShape(schema, operation);
    return variablesOf(readShaped(text, shape, ENVELOPE_PARTS));
  };
  const valuesOf = (coerced: Values): VariableValues => {
    sources ??= Object.fromEntries(declared().map(({ signature }) => [signature.name, { signature }]));
    return { sources, coerced };
  };
  return {
    /**
     * Reads the variables that came as JSON text, or as values that were parsed from it. Returns the first error if
     * they do not fit. Throws `invalid_argument` if the text has too many members and items. Variables that the
     * operation does not declare are not parsed.
     */
    read(given: GivenVariables): CoercedVariables {
      const parsed = given instanceof VariablesText ? parse(given) : (given ?? NONE);
      const coerced = coerceAll(declared(), parsed);
      return coerced ? { values: valuesOf(coerced) } : coerceByGraphqlJs(schema, operation, parsed);
    },
    /** Returns the variables of a requester whose values are already of the form that resolvers receive. */
    of: valuesOf,
  };
}

/** A variable of an operation. `preset`: makes its default; null: it has none. */
type Declared = {
  readonly signature: { readonly name: string; readonly type: GraphQLInputType; readonly default: undefined };
  readonly coerce: Coerce;
  readonly required: boolean;
  readonly preset: Make | null;
};

/** Returns null for a type that is not one of inputs: validation refuses such a document. */
function declaredVariable(schema: GraphQLSchema, node: VariableDefinitionNode): Declared | null {
  const type = typeFromAST(schema, node.type);
  if (!isInputType(type)) return null;
  const { defaultValue } = node;
  return {
    signature: { name: node.variable.name.value, type, default: undefined },
    coerce: coercerOf(type),
    required: isNonNullType(type),
    preset: defaultValue ? makerOf(defaultValue, type) : null,
  };
}

/** Returns the values of the variables, in an object without prototype. Null if they do not fit their types. */
function coerceAll(declared: readonly Declared[], given: Variables): Values | null {
  const coerced: Record<string, unknown> = Object.create(null);
  for (const { signature, coerce, required, preset } of declared) {
    const { name } = signature;
    const value = Object.hasOwn(given, name) ? given[name] : undefined;
    if (value === undefined && preset === null && !required) continue;
    const fit = value === undefined && preset ? preset(NONE) : coerce(value);
    if (fit === undefined) return null;
    coerced[name] = fit;
  }
  return coerced;
}

/** Coerces variables that do not fit, for the error of graphql-js. A large variable is not printed in the error. */
function coerceByGraphqlJs(
  schema: GraphQLSchema,
  operation: OperationDefinitionNode,
  given: Variables,
): CoercedVariables {
  const misfit = firstMisfit(schema, operation, given);
  if (misfit) return { errors: [misfit] };
  const { variableValues, errors } = getVariableValues(schema, operation.variableDefinitions ?? [], given, {
    maxErrors: MAX_COERCION_ERRORS,
    hideSuggestions: true,
  });
  // Later entries only say that there are more errors.
  return variableValues ? { values: variableValues } : { errors: errors.slice(0, MAX_COERCION_ERRORS) };
}

// Compiles input types into functions that coerce values, as `coerceInputValue` of graphql-js does.

/** Returns the value that resolvers receive. Undefined: the given value does not fit the type. */
type Coerce = (given: unknown) => unknown;

const coercers = new WeakMap<GraphQLInputType, Coerce>();

function coercerOf(type: GraphQLInputType): Coerce {
  const known = coercers.get(type);
  if (known) return known;
  const made = createCoercer(type);
  coercers.set(type, made);
  return made;
}

function createCoercer(type: GraphQLInputType): Coerce {
  if (isNonNullType(type)) {
    const coerce = coercerOf(type.ofType);
    return (given) => (given === null || given === undefined ? undefined : coerce(given));
  }
  const coerce = presentCoercer(type);
  return (given) => (given === null || given === undefined ? null : coerce(given));
}

/** Creates the function for values that are neither null nor undefined. */
function presentCoercer(type: GraphQLInputType): Coerce {
  if (isListType(type)) return listCoercer(coercerOf(type.ofType));
  if (isLeafType(type)) return leafCoercer(type);
  return isInputObjectType(type) && !type.isOneOf ? objectCoercer(type) : (given) => coerceInputValue(given, type);
}

function leafCoercer(type: GraphQLLeafType): Coerce {
  return (given) => {
    try {
      return type.coerceInputValue(given);
    } catch {
      return undefined;
    }
  };
}

function listCoercer(coerce: Coerce): Coerce {
  return (given) => {
    const made: unknown[] = [];
    for (const one of Array.isArray(given) ? given : [given]) {
      const fit = coerce(one);
      if (fit === undefined) return undefined;
      made.push(fit);
    }
    return made;
  };
}

function objectCoercer(type: GraphQLInputObjectType): Coerce {
  let compiled: ReturnType<typeof membersOf> | null = null;
  return (given) => {
    if (!isRecord(given)) return undefined;
    // Compiled at the first value, because an input type may contain itself.
    compiled ??= membersOf(type);
    for (const name of Object.keys(given)) if (!compiled.has(name) && given[name] !== undefined) return undefined;
    const made: Record<string, unknown> = {};
    for (const [name, { coerce, required, preset }] of compiled) {
      const value = given[name];
      const fit = value === undefined ? preset : coerce(value);
      if (fit !== undefined) made[name] = fit;
      else if (value !== undefined || required) return undefined;
    }
    return made;
  };
}

function membersOf(type: GraphQLInputObjectType) {
  const fields = Object.values(type.getFields());
  return new Map(fields.map((field) => [field.name, { coerce: coercerOf(field.type), ...absenceOf(field) }]));
}

/**
 * Returns what counts if an argument or input field is not given: `preset`, unless it is undefined. `required`: it must
 * be given.
 */
// oxlint-disable-next-line typescript/no-deprecated -- the builder of the schema gives default values in this form
export function absenceOf({ type, default: given, defaultValue }: GraphQLArgument | GraphQLInputField) {
  const literal = given?.literal;
  const value = literal ? coerceInputLiteral(literal, type) : given && coerceInputValue(given.value, type);
  const preset: unknown = given ? value : defaultValue;
  return { preset, required: isNonNullType(type) && preset === undefined };
}

// Compiles the literals and variables of a document into functions that make arguments, as `getArgumentValues` of
// graphql-js does.

/** Makes a value from the operation's variables. Undefined: it does not fit the type. */
type Make = (variables: Values) => unknown;

const MISFIT: Make = () => undefined;

/**
 * Creates the function that makes the arguments of a field from the coerced variables. It returns null if they do not
 * fit: graphql-js then says why. Objects and lists are new each time, because a resolver may change them.
 */
export function createArguments(
  { args }: Pick<GraphQLField<unknown, unknown>, 'args'>,
  { arguments: given = [] }: FieldNode,
): (variables: Values) => Values | null {
  return membersMaker(args, given);
}

type Given = { readonly name: { readonly value: string }; readonly value: ValueNode };

function membersMaker(
  declared: readonly (GraphQLArgument | GraphQLInputField)[],
  given: readonly Given[],
): (variables: Values) => Values | null {
  const nodes = new Map(given.map(({ name, value }) => [name.value, value]));
  const members = declared.map((one) => {
    const node = nodes.get(one.name);
    const variable = node?.kind === Kind.VARIABLE ? node.name.value : null;
    return { name: one.name, variable, make: node ? makerOf(node, one.type) : null, ...absenceOf(one) };
  });
  return (variables) => {
    const made: Record<string, unknown> = {};
    for (const { name, variable, make, required, preset } of members) {
      const isGiven = make !== null && (variable === null || variables[variable] !== undefined);
      const value = isGiven ? make(variables) : preset;
      if (value !== undefined) made[name] = value;
      else if (isGiven || required) return null;
    }
    return made;
  };
}

function makerOf(node: ValueNode, type: GraphQLInputType): Make {
  if (node.kind === Kind.VARIABLE) return variableMaker(node.name.value, isNonNullType(type));
  if (node.kind === Kind.NULL) return isNonNullType(type) ? MISFIT : () => null;
  const nullable = getNullableType(type);
  if (isListType(nullable)) return listMaker(node.kind === Kind.LIST ? node.values : [node], nullable.ofType);
  if (isInputObjectType(nullable) && !nullable.isOneOf) {
    const fields = nullable.getFields();
    if (node.kind !== Kind.OBJECT || node.fields.some(({ name }) => !Object.hasOwn(fields, name.value))) return MISFIT;
    const make = membersMaker(Object.values(fields), node.fields);
    return (variables) => make(variables) ?? undefined;
  }
  if (usesVariables(node)) return (variables) => coerceInputLiteral(node, type, { sources: {}, coerced: variables });
  const value = coerceInputLiteral(node, type);
  return () => value;
}

function variableMaker(name: string, nonNull: boolean): Make {
  return nonNull ? (variables) => variables[name] ?? undefined : (variables) => variables[name];
}

function listMaker(nodes: readonly ValueNode[], type: GraphQLInputType): Make {
  const items = nodes.map((node) => ({
    make: makerOf(node, type),
    // A variable without a value is null as an item.
    absent: node.kind === Kind.VARIABLE && !isNonNullType(type) ? null : undefined,
  }));
  return (variables) => {
    const made: unknown[] = [];
    for (const { make, absent } of items) {
      const value = make(variables);
      if (value === undefined && absent === undefined) return undefined;
      made.push(value === undefined ? absent : value);
    }
    return made;
  };
}

/** Whether a part of a document uses variables. */
export function usesVariables(node: ASTNode): boolean {
  let uses = false;
  visit(node, { Variable: () => ((uses = true), BREAK) });
  return uses;
}

// Finds a fault in large variables, so that graphql-js need not print them in an error.

/** The only scalar whose input may be objects and lists. */
const JSON_SCALAR = 'JSON';

type Misfit = { readonly path: string; readonly says: string };

/**
 * Returns the error of the first large variable that does not fit its type. Null: errors of all others are cheap to
 * print.
 */
function firstMisfit(schema: GraphQLSchema, operation: OperationDefinitionNode, given: Variables): GraphQLError | null {
  for (const node of operation.variableDefinitions ?? []) {
    const type = typeFromAST(schema, node.type);
    const name = node.variable.name.value;
    if (!isInputType(type) || !Object.hasOwn(given, name) || isSmall(given[name])) continue;
    const misfit = misfitOf(type, given[name]);
    if (misfit)
      return new GraphQLError(`Variable "$${name}" has invalid value${misfit.path}: ${misfit.says}`, { nodes: node });
  }
  return null;
}

/**
 * The most members and characters of a value that graphql-js may print in an error. Errors about larger values do not
 * show the value.
 */
const PRINTED = 1_000;

/** Whether printing the value is cheap. Reads at most PRINTED members and characters of the value. */
function isSmall(value: unknown): boolean {
  let left = PRINTED;
  const take = (one: unknown): boolean => {
    left -= typeof one === 'string' ? 1 + one.length : 1;
    if (left < 0) return false;
    if (typeof one !== 'object' || one === null) return true;
    for (const name in one) {
      left -= name.length;
      if (!take(Reflect.get(one, name))) return false;
    }
    return true;
  };
  return take(value);
}

/**
 * Returns the first fault for which graphql-js would print the whole value, described without the value: an unknown
 * member, a missing required member, or a value of the wrong kind. Null when there is none of these; graphql-js reports
 * other faults itself. Linear in the size of the value.
 */
function misfitOf(given: GraphQLInputType, value: unknown, path = ''): Misfit | null {
  const type = getNullableType(given);
  if (value === null || value === undefined) return null;
  if (isListType(type)) return inList(type.ofType, value, path);
  if (isLeafType(type)) {
    return typeof value === 'object' && type.name !== JSON_SCALAR ? expected(type.name, path) : null;
  }
  if (!isInputObjectType(type)) return null;
  return isRecord(value) ? inObject(type, value, path) : expected(type.name, path);
}

function inList(item: GraphQLInputType, value: unknown, path: string): Misfit | null {
  // GraphQL reads a single value as a list with one item.
  if (!Array.isArray(value)) return misfitOf(item, value, path);
  for (const [i, one] of value.entries()) {
    const found = misfitOf(item, one, `${path}[${i}]`);
    if (found) return found;
  }
  return null;
}

function inObject(type: GraphQLInputObjectType, value: Readonly<Record<string, unknown>>, path: string): Misfit | null {
  const fields = type.getFields();
  for (const name in value) {
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (!field) return { path, says: `Expected value of type "${type.name}" not to include unknown field "${name}".` };
    const found = misfitOf(field.type, value[name], `${path}.${name}`);
    if (found) return found;
  }
  for (const field of Object.values(fields)) {
    if (isRequiredInputField(field) && value[field.name] === undefined) {
      return { path, says: `Expected value of type "${type.name}" to include required field "${field.name}".` };
    }
  }
  return null;
}

function expected(name: string, path: string): Misfit {
  return { path, says: `Expected value of type "${name}".` };
}

// Reads the variables of a request. JSON scalars stay text; they are not parsed here.

/**
 * The variables of a request as the JSON text of an object. They are parsed once the operation is known, because it
 * determines which of them are JSON that passes through as text.
 */
export class VariablesText {
  readonly text: JsonText;

  constructor(text: JsonText) {
    this.text = text;
  }
}

export type GivenVariables = Variables | VariablesText | null | undefined;

const NONE: Variables = Object.freeze({});

function variablesOf(read: ReturnType<typeof readShaped>): Variables {
  if (typeof read === 'string') return invalid('variables', shapeFaultText(read, ENVELOPE_PARTS));
  return isRecord(read.value) ? read.value : invalid('variables', 'expected an object');
}

function variablesShape(schema: GraphQLSchema, { variableDefinitions = [] }: OperationDefinitionNode): ObjectShape {
  const members = new Map<string, Shape>();
  for (const { variable, type: node } of variableDefinitions) {
    const type = typeFromAST(schema, node);
    members.set(variable.name.value, isInputType(type) ? shapeOf(type) : 'plain');
  }
  return { members, others: 'skipped' };
}

const objects = new WeakMap<GraphQLInputType, ObjectShape>();

/** Returns which parts of a JSON value of an input type are parsed. */
function shapeOf(given: GraphQLInputType): Shape {
  const type = getNullableType(given);
  if (isListType(type)) return listShape(shapeOf(type.ofType));
  if (isLeafType(type)) return isJsonScalar(type) ? 'text' : 'plain';
  if (!isInputObjectType(type)) return 'plain';
  const known = objects.get(type);
  if (known) return known;
  const members = new Map<string, Shape>();
  const shape: ObjectShape = { members, others: 'plain' };
  // Stored before its members are computed, because an input type may contain itself.
  objects.set(type, shape);
  for (const field of Object.values(type.getFields())) members.set(field.name, shapeOf(field.type));
  return shape;
}

function listShape(item: Shape): Shape {
  return item === 'plain' ? 'plain' : { item };
}
