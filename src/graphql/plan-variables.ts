import {
  GraphQLError,
  getVariableValues,
  isInputType,
  typeFromAST,
  type GraphQLSchema,
  type OperationDefinitionNode,
  type VariableValues,
} from 'graphql';
import { isSmall, misfitOf } from './plan-misfit.ts';

export type GivenVariables = Readonly<Record<string, unknown>>;

export type CoercedVariables =
  | { readonly values: VariableValues; readonly errors?: never }
  | { readonly values?: never; readonly errors: readonly GraphQLError[] };

/**
 * How often graphql-js may say what is wrong with variables: each error prints the whole value that it is about, so that errors times size is
 * quadratic in what was sent.
 */
export const MAX_COERCION_ERRORS = 1;

type Refused = { readonly operation: OperationDefinitionNode; readonly errors: readonly GraphQLError[] };
const refused = new WeakMap<GivenVariables, Refused>();

/**
 * The variables of an operation, coerced by graphql-js, or the first thing that is wrong with them. Work is linear in the size of `given`. A
 * refusal is remembered with the object, so variables that do not fit are coerced once in the life of a request.
 */
export function coerceVariables(
  schema: GraphQLSchema,
  operation: OperationDefinitionNode,
  given: GivenVariables,
): CoercedVariables {
  const wrong = refusedVariables(schema, operation, given);
  if (wrong) return { errors: wrong };
  const { variableValues, errors } = getVariableValues(schema, operation.variableDefinitions ?? [], given, {
    maxErrors: MAX_COERCION_ERRORS,
    hideSuggestions: true,
  });
  if (variableValues) return { values: variableValues };
  // What follows the first error says only that there are more.
  const first = errors.slice(0, MAX_COERCION_ERRORS);
  refused.set(given, { operation, errors: first });
  return { errors: first };
}

function firstMisfit(
  schema: GraphQLSchema,
  operation: OperationDefinitionNode,
  given: GivenVariables,
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
 * What is known to be wrong with these variables, or found wrong with large ones without coercing them. Null: graphql-js may coerce them, and
 * what it prints of them, should it refuse them, is small or a part of what fits.
 */
export function refusedVariables(
  schema: GraphQLSchema,
  operation: OperationDefinitionNode,
  given: GivenVariables,
): readonly GraphQLError[] | null {
  const known = refused.get(given);
  if (known?.operation === operation) return known.errors;
  const misfit = firstMisfit(schema, operation, given);
  if (!misfit) return null;
  const errors = [misfit];
  refused.set(given, { operation, errors });
  return errors;
}
