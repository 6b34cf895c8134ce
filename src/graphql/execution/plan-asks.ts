/** Finds the names of the fields that an operation may select. */
import { Kind, visit, type DocumentNode, type FieldNode, type OperationDefinitionNode } from 'graphql';
import type { RawVariables } from '../variables/coerce-variables.ts';

/**
 * Returns a function that gives the names of all fields an operation may select, anywhere in its document. A field with
 * the argument `include` counts only when that argument may be true. The document is analysed once; a call only looks
 * at the variables of `include`.
 */
export function createAsks(
  document: DocumentNode,
  operation: OperationDefinitionNode,
): (variables: RawVariables) => ReadonlySet<string> {
  const plain = new Set<string>();
  const included = new Set<string>();
  const switches = new Set<string>();
  visit(document, {
    Field(node) {
      const name = node.name.value;
      const value = includeOf(node);
      if (value === undefined || (value.kind === Kind.BOOLEAN && value.value)) plain.add(name);
      else if (value.kind === Kind.VARIABLE) {
        included.add(name);
        switches.add(value.name.value);
      }
    },
  });
  if (switches.size === 0) return () => plain;
  const all = new Set([...plain, ...included]);
  const names = [...switches];
  const defaults = new Set(
    (operation.variableDefinitions ?? []).flatMap(({ variable, defaultValue }) =>
      defaultValue?.kind === Kind.BOOLEAN && defaultValue.value ? [variable.name.value] : [],
    ),
  );
  const isOn = (variables: RawVariables, name: string): boolean => {
    const value = variables[name];
    return value === true || (value === undefined && defaults.has(name));
  };
  return (variables) => (names.some((name) => isOn(variables, name)) ? all : plain);
}

function includeOf({ arguments: given = [] }: FieldNode) {
  return given.find(({ name }) => name.value === 'include')?.value;
}
