/**
 * Reads the variables of an operation. What depends only on the document and its types is compiled once; reading takes
 * time linear in the size of the variables.
 */
import {
  GraphQLError,
  getNullableType,
  getVariableValues,
  isInputObjectType,
  isInputType,
  isLeafType,
  isListType,
  isNonNullType,
  typeFromAST,
  type GraphQLInputType,
  type GraphQLSchema,
  type OperationDefinitionNode,
  type VariableDefinitionNode,
  type VariableValues,
} from 'graphql';
import { invalid } from '../core/errors.ts';
import { isRecord, readShaped, shapeFaultText, type JsonText, type ObjectShape, type Shape } from '../core/json.ts';
import { ENVELOPE_PARTS } from '../core/limits.ts';
import { isJsonScalar } from './schema/scalars.ts';
import { makerOf, type Make } from './variables-arguments.ts';
import { coercerOf, type Coerce, type Variables, type Values } from './variables-coercion.ts';
import { firstMisfit } from './variables-fault.ts';

export type CoercedVariables =
  | { readonly values: VariableValues; readonly errors?: never }
  | { readonly values?: never; readonly errors: readonly GraphQLError[] };

/**
 * How many coercion errors graphql-js may report. Each error prints the whole value that it is about, so with many
 * errors the printed text would grow with the square of the request's size.
 */
export const MAX_COERCION_ERRORS = 1;

/** The functions that read the variables of one operation. */
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
     * Reads variables that arrived as JSON text, or as values parsed from it. Returns the first error if they do not
     * fit. Throws `invalid_argument` if the text has too many members and items. Variables that the operation does not
     * declare are not parsed.
     */
    read(given: GivenVariables): CoercedVariables {
      const parsed = given instanceof VariablesText ? parse(given) : (given ?? NONE);
      const coerced = coerceAll(declared(), parsed);
      return coerced ? { values: valuesOf(coerced) } : coerceByGraphqlJs(schema, operation, parsed);
    },
    /** Returns variables whose values already have the form that resolvers receive. */
    of: valuesOf,
  };
}

/** A variable that the operation declares. `preset`: computes its default; null: it has none. */
type Declared = {
  readonly signature: { readonly name: string; readonly type: GraphQLInputType; readonly default: undefined };
  readonly coerce: Coerce;
  readonly required: boolean;
  readonly preset: Make | null;
};

/** Compiles a variable's declaration. Null if its type is not an input type; validation refuses such a document. */
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

/** Returns the values of the variables, in an object without a prototype. Null if they do not fit their types. */
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

/** Coerces variables that do not fit, to get graphql-js's error. That error never contains a large variable. */
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
  // Later entries only state that there are more errors.
  return variableValues ? { values: variableValues } : { errors: errors.slice(0, MAX_COERCION_ERRORS) };
}

// Reads the variables of a request. JSON scalars stay text and are not parsed here.

/**
 * The variables of a request as the JSON text of an object. They are parsed only when the operation is known, because
 * it determines which of them are JSON scalars that stay text.
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

/** Returns which parts of a JSON value are parsed, for a value of an input type. */
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
