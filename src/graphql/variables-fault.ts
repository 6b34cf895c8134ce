/** Finds faults in large variables, so that graphql-js does not print such a variable in an error. */
import {
  GraphQLError,
  getNullableType,
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
} from 'graphql';
import { isRecord } from '../core/json.ts';
import type { Variables } from './variables-coercion.ts';

/** The only scalar that accepts objects and lists. */
const JSON_SCALAR = 'JSON';

type Misfit = { readonly path: string; readonly says: string };

/**
 * Returns the error of the first large variable that does not fit its type. Null: there is none, and errors of all
 * other variables are cheap to print.
 */
export function firstMisfit(
  schema: GraphQLSchema,
  operation: OperationDefinitionNode,
  given: Variables,
): GraphQLError | null {
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
 * How many members and characters of a value graphql-js may print in an error. Errors about larger values do not show
 * the value.
 */
const PRINTED = 1_000;

/** Whether a value is cheap to print. Reads at most PRINTED members and characters of it. */
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
 * Returns the first fault for which graphql-js would print the whole value: an unknown member, a missing required
 * member, or a value of the wrong kind. The description does not contain the value. Null if there is no such fault;
 * graphql-js reports other faults itself. Takes time linear in the size of the value.
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
  // GraphQL accepts a single value as a list of one item.
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
