import {
  GraphQLError,
  getVariableValues,
  type GraphQLSchema,
  type OperationDefinitionNode,
  type VariableValues,
} from 'graphql';

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
  const known = refusedVariables(operation, given);
  if (known) return { errors: known };
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

/** What `coerceVariables` found wrong with these variables earlier; null where it was not asked or found nothing. */
export function refusedVariables(
  operation: OperationDefinitionNode,
  given: GivenVariables,
): readonly GraphQLError[] | null {
  const known = refused.get(given);
  return known?.operation === operation ? known.errors : null;
}
