/** Collects the selected fields of a type, as graphql-js does. */
import {
  GraphQLIncludeDirective,
  GraphQLSkipDirective,
  Kind,
  getDirectiveValues,
  isAbstractType,
  visit,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLObjectType,
  type GraphQLSchema,
  type SelectionNode,
  type SelectionSetNode,
  type VariableValues,
} from 'graphql';

/** The fields of a selection by response name, in response order, each with every node that selects it. */
export type Selected = ReadonlyMap<string, readonly [FieldNode, ...FieldNode[]]>;

/** Collects the fields selected of an object type as graphql-js does, for fixed values of the conditions. */
export type Collect = (type: GraphQLObjectType, sets: readonly SelectionSetNode[]) => Selected;

/**
 * Creates the function that collects fields. `variables` decide `@include` and `@skip`. The returned function throws a
 * GraphQLError when they cannot.
 */
export function createCollect(schema: GraphQLSchema, document: DocumentNode, variables: VariableValues): Collect {
  const fragments = fragmentsOf(document);
  const includes = (node: SelectionNode): boolean =>
    getDirectiveValues(GraphQLSkipDirective, node, variables)?.['if'] !== true &&
    getDirectiveValues(GraphQLIncludeDirective, node, variables)?.['if'] !== false;
  return (type, sets) => {
    const selected = new Map<string, [FieldNode, ...FieldNode[]]>();
    const seen = new Set<string>();
    const add = (node: FieldNode): void => {
      const key = node.alias?.value ?? node.name.value;
      const known = selected.get(key);
      if (known) known.push(node);
      else selected.set(key, [node]);
    };
    const collect = (set: SelectionSetNode): void => {
      for (const node of set.selections) {
        if (!includes(node)) continue;
        if (node.kind === Kind.FIELD) add(node);
        else if (node.kind === Kind.INLINE_FRAGMENT)
          applies(schema, type, node.typeCondition) && collect(node.selectionSet);
        else spread(node.name.value);
      }
    };
    const spread = (name: string): void => {
      const fragment = fragments.get(name);
      if (seen.has(name) || !fragment || !applies(schema, type, fragment.typeCondition)) return;
      seen.add(name);
      collect(fragment.selectionSet);
    };
    sets.forEach(collect);
    return selected;
  };
}

function fragmentsOf({ definitions }: DocumentNode): ReadonlyMap<string, FragmentDefinitionNode> {
  return new Map(
    definitions.flatMap((node) => (node.kind === Kind.FRAGMENT_DEFINITION ? [[node.name.value, node] as const] : [])),
  );
}

function applies(
  schema: GraphQLSchema,
  type: GraphQLObjectType,
  condition: FragmentDefinitionNode['typeCondition'] | undefined,
): boolean {
  if (!condition) return true;
  const conditional = schema.getType(condition.name.value);
  return conditional === type || (isAbstractType(conditional) && schema.isSubType(conditional, type));
}

/** Returns the variables that `@include` and `@skip` use, anywhere in the document. */
export function conditionVariables(document: DocumentNode): readonly string[] {
  const names = new Set<string>();
  visit(document, {
    Directive({ name, arguments: given }) {
      if (name.value !== 'include' && name.value !== 'skip') return;
      for (const { value } of given ?? []) if (value.kind === Kind.VARIABLE) names.add(value.name.value);
    },
  });
  return [...names];
}
