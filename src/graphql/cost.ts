import { complexityFromQuery } from '@pothos/plugin-complexity';
import {
  Kind,
  getVariableValues,
  visit,
  type DocumentNode,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from 'graphql';

type Variables = Readonly<Record<string, unknown>>;

const REMEMBERED = 100;

/**
 * Counts what an operation would cost at most, by the costs that its fields declare and the sizes of the lists that it asks for, before
 * anything runs. Variables that do not fit their types cost 0, since execution refuses them before it runs anything; what cannot be
 * counted for another reason costs Infinity.
 */
export function createCost(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
): (variables: Variables) => number {
  const fragments = document.definitions.filter(({ kind }) => kind === Kind.FRAGMENT_DEFINITION);
  const alone: DocumentNode = { kind: Kind.DOCUMENT, definitions: [operation, ...fragments] };
  const sizes = argumentVariables(alone);
  const known = new Map<string, number>();
  const isBad = (variables: Variables): boolean =>
    getVariableValues(schema, operation.variableDefinitions ?? [], variables).errors !== undefined;
  return (variables) => {
    const key = keyOf(sizes, variables);
    const remembered = key === null ? undefined : known.get(key);
    if (remembered !== undefined) return remembered;
    try {
      const { complexity } = complexityFromQuery(alone, { schema, ctx: {}, variables: { ...variables } });
      if (known.size >= REMEMBERED) known.clear();
      if (key !== null) known.set(key, complexity);
      return complexity;
    } catch {
      return isBad(variables) ? 0 : Infinity;
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

/** Costs follow sizes, so texts count only by being there. Null: a variable is an object or a list, whose inside may matter. */
function keyOf(names: readonly string[], variables: Variables): string | null {
  let key = '';
  for (const name of names) {
    const value = variables[name];
    if (typeof value === 'object' && value !== null) return null;
    key += typeof value === 'string' ? '|text' : `|${String(value)}`;
  }
  return key;
}
