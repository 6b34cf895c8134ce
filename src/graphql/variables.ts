/**
 * Reads the variables of an operation from the JSON text of a request and coerces them, with work linear in their size.
 */
import {
  GraphQLError,
  getNullableType,
  getVariableValues,
  isInputObjectType,
  isInputType,
  isLeafType,
  isListType,
  isRequiredInputField,
  typeFromAST,
  type GraphQLInputObjectType,
  type GraphQLInputType,
  type GraphQLSchema,
  type OperationDefinitionNode,
  type VariableValues,
} from 'graphql';
import { invalid } from '../core/errors.ts';
import { isRecord, readShaped, type JsonText, type ObjectShape, type Shape } from '../core/json.ts';
import { ENVELOPE_PARTS } from '../core/limits.ts';
import { isJsonScalar } from './schema/builder-json.ts';

export type Variables = Readonly<Record<string, unknown>>;

type CoercedVariables =
  | { readonly values: VariableValues; readonly errors?: never }
  | { readonly values?: never; readonly errors: readonly GraphQLError[] };

/**
 * The number of coercion errors that graphql-js may report. Each error prints the whole value that it is about. With
 * many errors, the printed text would grow with the square of the size of the request.
 */
export const MAX_COERCION_ERRORS = 1;

type Refused = { readonly operation: OperationDefinitionNode; readonly errors: readonly GraphQLError[] };
const refused = new WeakMap<Variables, Refused>();

/**
 * Coerces the variables of an operation with graphql-js, or returns the first error. The work is linear in the size of
 * `given`. A refusal is remembered for the `given` object, so variables that do not fit are coerced once per request.
 */
export function coerceVariables(
  schema: GraphQLSchema,
  operation: OperationDefinitionNode,
  given: Variables,
): CoercedVariables {
  const wrong = refusedVariables(schema, operation, given);
  if (wrong) return { errors: wrong };
  const { variableValues, errors } = getVariableValues(schema, operation.variableDefinitions ?? [], given, {
    maxErrors: MAX_COERCION_ERRORS,
    hideSuggestions: true,
  });
  if (variableValues) return { values: variableValues };
  // Later entries only say that there are more errors.
  const first = errors.slice(0, MAX_COERCION_ERRORS);
  refused.set(given, { operation, errors: first });
  return { errors: first };
}

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
 * Returns the known errors of these variables, or errors found in large variables without coercing them. Null:
 * graphql-js may coerce the variables, because any error that it then reports is cheap to print.
 */
export function refusedVariables(
  schema: GraphQLSchema,
  operation: OperationDefinitionNode,
  given: Variables,
): readonly GraphQLError[] | null {
  const known = refused.get(given);
  if (known?.operation === operation) return known.errors;
  const misfit = firstMisfit(schema, operation, given);
  if (!misfit) return null;
  const errors = [misfit];
  refused.set(given, { operation, errors });
  return errors;
}

// Finds a fault in large variables, so that graphql-js need not print them in an error.

/** The only scalar whose input may be objects and lists. */
export const JSON_SCALAR = 'JSON';

type Misfit = { readonly path: string; readonly says: string };

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

/**
 * Creates the function that parses the variables of one operation into the form that graphql-js takes. The function
 * throws `invalid_argument` if the variables have too many members and items. Variables that the operation does not
 * declare are not parsed.
 */
export function createVariablesReader(
  schema: GraphQLSchema,
  operation: OperationDefinitionNode,
): (given: GivenVariables) => Variables {
  let shape: ObjectShape | null = null;
  return (given) => {
    if (!(given instanceof VariablesText)) return given ?? NONE;
    shape ??= variablesShape(schema, operation);
    return variablesOf(readShaped(given.text, shape, ENVELOPE_PARTS)?.value);
  };
}

const NONE: Variables = Object.freeze({});

function variablesOf(value: unknown): Variables {
  if (isRecord(value)) return value;
  return invalid('variables', `at most ${ENVELOPE_PARTS} members and items are read`);
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
