/** Finds which fields the operations of a document select. It resolves nothing. */
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

/** Returns the fragments of a document by name. */
export function fragmentsOf(document: DocumentNode): ReadonlyMap<string, FragmentDefinitionNode> {
  return new Map(fragmentsIn(document).map((node) => [node.name.value, node]));
}

function fragmentsIn({ definitions }: DocumentNode): readonly FragmentDefinitionNode[] {
  return definitions.filter((node) => node.kind === Kind.FRAGMENT_DEFINITION);
}

/** Whether a fragment of the document has arguments, which are experimental in graphql-js. */
export function hasFragmentArguments(document: DocumentNode): boolean {
  return fragmentsIn(document).some(({ variableDefinitions = [] }) => variableDefinitions.length > 0);
}

/** The selected fields by response name, in response order, each with all nodes that select it. */
type Selected = ReadonlyMap<string, readonly [FieldNode, ...FieldNode[]]>;

/** Collects the selected fields of an object type as graphql-js does, for given values of `@include` and `@skip`. */
export type Collect = (type: GraphQLObjectType, sets: readonly SelectionSetNode[]) => Selected;

/**
 * Creates the function that collects fields. `variables` decide `@include` and `@skip`. The function throws a
 * GraphQLError if they do not suffice.
 */
export function createCollect(schema: GraphQLSchema, document: DocumentNode, variables: VariableValues): Collect {
  const fragments = Map.groupBy(fragmentsIn(document), ({ name }) => name.value);
  const includes = (node: SelectionNode): boolean =>
    getDirectiveValues(GraphQLSkipDirective, node, variables)?.['if'] !== true &&
    getDirectiveValues(GraphQLIncludeDirective, node, variables)?.['if'] !== false;
  return (type, sets) => {
    const selected = new Map<string, [FieldNode, ...FieldNode[]]>();
    const add = (node: FieldNode): void => {
      const key = node.alias?.value ?? node.name.value;
      const known = selected.get(key);
      if (known) known.push(node);
      else selected.set(key, [node]);
    };
    const enters = (node: SelectionNode | FragmentDefinitionNode): boolean =>
      (node.kind === Kind.FRAGMENT_DEFINITION || includes(node)) &&
      (!('typeCondition' in node) || applies(schema, type, node.typeCondition));
    collectFields(sets, { fragments, enters, add });
    return selected;
  };
}

/**
 * Returns the names of an operation's root fields, including those of its fragments. The document need not be valid.
 */
export function rootFields(document: DocumentNode, root: SelectionSetNode): ReadonlySet<string> {
  const names = new Set<string>();
  collectFields([root], {
    fragments: Map.groupBy(fragmentsIn(document), ({ name }) => name.value),
    enters: () => true,
    add: ({ name }) => void names.add(name.value),
  });
  return names;
}

type Collecting = {
  /** The fragments by name. A name may have several, because the document was not necessarily validated. */
  readonly fragments: ReadonlyMap<string, readonly FragmentDefinitionNode[]>;
  /** Whether to collect fields from a node. Called for a fragment spread, and then for the fragment that it names. */
  readonly enters: (node: SelectionNode | FragmentDefinitionNode) => boolean;
  readonly add: (node: FieldNode) => void;
};

/** Passes each field of the selection sets to `add`, including those of fragments. Each fragment is entered once. */
function collectFields(sets: readonly SelectionSetNode[], { fragments, enters, add }: Collecting): void {
  const seen = new Set<SelectionSetNode>();
  const collect = (set: SelectionSetNode): void => {
    if (seen.has(set)) return;
    seen.add(set);
    for (const node of set.selections) {
      if (!enters(node)) continue;
      if (node.kind === Kind.FIELD) add(node);
      else if (node.kind === Kind.INLINE_FRAGMENT) collect(node.selectionSet);
      else for (const one of fragments.get(node.name.value) ?? []) if (enters(one)) collect(one.selectionSet);
    }
  };
  sets.forEach(collect);
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

/** Returns the names of the variables that `@include` and `@skip` use anywhere in the document. */
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

/**
 * Returns a function that returns the names of all fields that an operation may select, anywhere in its document. A
 * field whose argument `include` is false is left out. Fields whose argument `include` is a variable count all
 * together, as soon as one of these variables is true. The document is analysed once, so each call only reads the
 * coerced variables of `include`.
 */
export function createAsks(
  document: DocumentNode,
): (variables: Readonly<Record<string, unknown>>) => ReadonlySet<string> {
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
  return (variables) => (names.some((name) => variables[name] === true) ? all : plain);
}

function includeOf({ arguments: given = [] }: FieldNode) {
  return given.find(({ name }) => name.value === 'include')?.value;
}
