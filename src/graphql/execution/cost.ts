/** Computes the maximum cost of an operation before it runs. limits.ts refuses an operation whose cost is too high. */
import { complexityFromQuery } from '@pothos/plugin-complexity';
import {
  Kind,
  getNullableType,
  isLeafType,
  typeFromAST,
  visit,
  type DocumentNode,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from 'graphql';
import { BoundedMap } from '../../core/bounded-map.ts';
import { JSON_SCALAR } from '../variables/misfit.ts';
import { coerceVariables } from '../variables/coerce-variables.ts';

type Variables = Readonly<Record<string, unknown>>;

/** The most costs that are remembered for one operation, each for other variables. */
const REMEMBERED = 100;

/**
 * Creates a function that computes the maximum cost of an operation before it runs. The cost follows from the costs
 * that the fields declare and from the requested sizes of lists. Variables that do not fit their types cost 0, because
 * execution refuses them before it runs anything. A cost that cannot be computed for another reason is Infinity.
 */
export function createCost(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
): (variables: Variables) => number {
  const fragments = document.definitions.filter(({ kind }) => kind === Kind.FRAGMENT_DEFINITION);
  const alone: DocumentNode = { kind: Kind.DOCUMENT, definitions: [operation, ...fragments] };
  const sizes = argumentVariables(alone);
  const leaves = jsonVariables(schema, operation);
  const known = new BoundedMap<string, number>({ most: REMEMBERED });
  return (variables) => {
    const key = keyOf(sizes, leaves, variables);
    const remembered = key === null ? undefined : known.get(key);
    if (remembered !== undefined) return remembered;
    // Checked before, because `coerceVariables` stops at the first error. `complexityFromQuery` would collect them all.
    if (coerceVariables(schema, operation, variables).errors) return 0;
    try {
      const { complexity } = complexityFromQuery(alone, { schema, ctx: {}, variables: { ...variables } });
      if (key !== null) known.set(key, complexity);
      return complexity;
    } catch {
      return Infinity;
    }
  };
}

function argumentVariables(document: DocumentNode): readonly string[] {
  const names = new Set<string>();
  visit(document, {
    VariableDefinition: () => false,
    Variable: ({ name }) => void names.add(name.value),
  });
  return [...names];
}

/**
 * Returns the names of the variables of the scalar JSON, whose contents never determine a size. A variable of another
 * scalar needs no such exception, because an object given for it is refused.
 */
function jsonVariables(schema: GraphQLSchema, operation: OperationDefinitionNode): ReadonlySet<string> {
  const leaves = new Set<string>();
  for (const { variable, type: node } of operation.variableDefinitions ?? []) {
    const type = typeFromAST(schema, node);
    const named = getNullableType(type);
    if (isLeafType(named) && named.name === JSON_SCALAR) leaves.add(variable.name.value);
  }
  return leaves;
}

/**
 * Returns the cache key of a cost. Only numbers and conditions affect the cost, so all texts have the same key. Null
 * when a variable is an input object or a list, whose contents may matter.
 */
function keyOf(names: readonly string[], leaves: ReadonlySet<string>, variables: Variables): string | null {
  let key = '';
  for (const name of names) {
    const value = variables[name];
    const holds = typeof value === 'object' && value !== null;
    if (holds && !leaves.has(name)) return null;
    key += holds ? '|json' : typeof value === 'string' ? '|text' : `|${String(value)}`;
  }
  return key;
}
