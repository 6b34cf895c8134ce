/** Reads the variables of a request. JSON scalars stay text; they are not parsed here. */
import { isRecord } from '../../core/json.ts';
import {
  getNullableType,
  isInputObjectType,
  isInputType,
  isLeafType,
  isListType,
  typeFromAST,
  type GraphQLInputType,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from 'graphql';
import { invalid } from '../../core/errors.ts';
import type { JsonText } from '../../core/json.ts';
import { readShaped, type ObjectShape, type Shape } from '../../core/json-shape.ts';
import { ENVELOPE_PARTS } from '../../core/limits.ts';
import { isJsonScalar } from '../schema/builder-json.ts';

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

export type Variables = Readonly<Record<string, unknown>>;
export type GivenVariables = Variables | VariablesText | null | undefined;

/** Parses variables into the form that graphql-js takes. Throws `invalid_argument`. */
export type ReadVariables = (given: GivenVariables) => Variables;

/** Creates the reader of one operation. Variables that the operation does not declare are not parsed. */
export function createVariablesReader(schema: GraphQLSchema, operation: OperationDefinitionNode): ReadVariables {
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
