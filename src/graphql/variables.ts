/** Coerces the variables of an operation, with work linear in their size. */
import {
  GraphQLError,
  getVariableValues,
  isInputType,
  typeFromAST,
  type GraphQLSchema,
  type OperationDefinitionNode,
  type VariableValues,
} from 'graphql';
import { isSmall, misfitOf } from './misfit.ts';

export type RawVariables = Readonly<Record<string, unknown>>;

export type CoercedVariables =
  | { readonly values: VariableValues; readonly errors?: never }
  | { readonly values?: never; readonly errors: readonly GraphQLError[] };

/**
 * The number of coercion errors that graphql-js may report. Each error prints the whole value that it is about. With
 * many errors, the printed text would grow with the square of the size of the request.
 */
export const MAX_COERCION_ERRORS = 1;

type Refused = { readonly operation: OperationDefinitionNode; readonly errors: readonly GraphQLError[] };
const refused = new WeakMap<RawVariables, Refused>();

/**
 * Coerces the variables of an operation with graphql-js, or returns the first error. The work is linear in the size of
 * `given`. A refusal is remembered for the `given` object, so variables that do not fit are coerced once per request.
 */
export function coerceVariables(
  schema: GraphQLSchema,
  operation: OperationDefinitionNode,
  given: RawVariables,
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

function firstMisfit(
  schema: GraphQLSchema,
  operation: OperationDefinitionNode,
  given: RawVariables,
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
 * Returns the known errors of these variables, or errors found in large variables without coercing them. Null:
 * graphql-js may coerce the variables, because any error that it then reports is cheap to print.
 */
export function refusedVariables(
  schema: GraphQLSchema,
  operation: OperationDefinitionNode,
  given: RawVariables,
): readonly GraphQLError[] | null {
  const known = refused.get(given);
  if (known?.operation === operation) return known.errors;
  const misfit = firstMisfit(schema, operation, given);
  if (!misfit) return null;
  const errors = [misfit];
  refused.set(given, { operation, errors });
  return errors;
}
