/** Compiles selections into writers of JSON text. What it cannot write, graphql-js must execute. */
import {
  BREAK,
  GraphQLError,
  GraphQLIncludeDirective,
  GraphQLSkipDirective,
  Kind,
  defaultFieldResolver,
  getArgumentValues,
  getDirectiveValues,
  getNullableType,
  isAbstractType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
  visit,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLField,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
  type OperationDefinitionNode,
  type SelectionNode,
  type SelectionSetNode,
  type ValidatedSubscriptionArgs,
  type VariableValues,
} from 'graphql';
import type { MaybePromise } from '../../core/maybe-promise.ts';
import { coerceVariables } from '../variables.ts';
import { changesAtOf } from './cache-hints.ts';
import {
  holdsTexts,
  objectWriter,
  valueWriter,
  type JsonCaches,
  type Member,
  type ObjectWriter,
  type Run,
  type Text,
  type TextInfo,
  type WriteValue,
} from './objects.ts';

// Writes the answers of queries as JSON text, byte for byte as graphql-js's result.

/**
 * Executes an operation and returns its data as JSON text, identical to what JSON.stringify gives for graphql-js's
 * data. Null when the answer would contain an error or something that cannot be written here; the operation must then
 * be executed by graphql-js with the same context. Never throws and never rejects. `note` receives what is known of the
 * text.
 */
export type Prepared = (context: unknown, note: TextInfo) => MaybePromise<Text>;

/**
 * Prepares the execution of an operation with these variables. Null: graphql-js must execute it, because it refuses the
 * variables or because they select something that cannot be written here.
 */
export type Prepare = (variables: Readonly<Record<string, unknown>>) => Prepared | null;

export type WriterSource = {
  readonly schema: GraphQLSchema;
  readonly document: DocumentNode;
  readonly operation: OperationDefinitionNode;
  /** The caches of the texts of entities. Null: no text is cached. */
  readonly fragments: JsonCaches | null;
};

/**
 * The most variants of a document that are compiled. Each combination of the conditions of `@include` and `@skip` is a
 * variant.
 */
const VARIANTS = 16;

/**
 * Creates the writer of a query. Null when the operation is not a query, reads the schema, or selects fields of
 * abstract types.
 */
export function createWriter(source: WriterSource): Prepare | null {
  const { schema, document, operation } = source;
  if (operation.operation !== 'query' || document.definitions.some(hasArguments)) return null;
  const conditions = conditionVariables(document);
  const variants = new Map<string, WriteRoot | null>();
  const variantOf = (variables: VariableValues): WriteRoot | null => {
    const key = conditions.map((name) => String(variables.coerced[name])).join();
    const known = variants.get(key);
    if (known !== undefined) return known;
    const made = variants.size < VARIANTS ? compile(source, variables) : null;
    if (variants.size < VARIANTS) variants.set(key, made);
    return made;
  };
  if (conditions.length === 0 && variantOf(NO_VARIABLES) === null) return null;
  return (given) => {
    const { values: variables } = coerceVariables(schema, operation, given);
    const write = variables && variantOf(variables);
    if (!write) return null;
    const args: unknown[] = [];
    return (context, note) => write({ context, variables, args, note });
  };
}

type WriteRoot = (run: Run) => MaybePromise<Text>;
const NO_VARIABLES: VariableValues = { sources: {}, coerced: {} };

/** Whether a definition uses fragment arguments, which are experimental in graphql-js. */
function hasArguments(node: DocumentNode['definitions'][number]): boolean {
  return node.kind === Kind.FRAGMENT_DEFINITION && (node.variableDefinitions?.length ?? 0) > 0;
}

function compile(
  { schema, document, operation, fragments }: WriterSource,
  variables: VariableValues,
): WriteRoot | null {
  const root = schema.getQueryType();
  try {
    const compiling: Compiling = { collect: createCollect(schema, document, variables), fragments, fields: 0 };
    const object = root ? compileObject(compiling, root, [operation.selectionSet]) : null;
    return object && ((run) => object.write(undefined, run));
  } catch (error) {
    // The conditions of `@include` or `@skip` cannot be decided; graphql-js reports the error.
    if (error instanceof GraphQLError) return null;
    throw error;
  }
}

/** The state shared while the writers of one document are compiled. */
export type Compiling = {
  readonly collect: Collect;
  readonly fragments: JsonCaches | null;
  /** The number of fields compiled so far whose arguments depend on variables. */
  fields: number;
};
export type Compiled = ObjectWriter & {
  readonly pure: boolean;
  /** What a member of this response name resolves to; undefined if there is none. */
  readonly peek: (key: string, value: unknown, run: Run) => unknown;
};

/**
 * Compiles the writer of an object type's selection. Null when the selection contains something that cannot be written
 * here. Throws a GraphQLError when `@include` or `@skip` cannot be decided.
 */
export function compileObject(
  compiling: Compiling,
  type: GraphQLObjectType,
  sets: readonly SelectionSetNode[],
): Compiled | null {
  // graphql-js calls `isTypeOf` on the value of an object type and reports an error when it returns false; the writer
  // does not call it.
  if (type.isTypeOf) return null;
  const byKey = new Map<string, Member>();
  for (const [key, nodes] of compiling.collect(type, sets)) {
    const member = compileMember(compiling, type, { key, nodes });
    if (!member) return null;
    byKey.set(key, member);
  }
  const members = [...byKey.values()];
  const entity = type.extensions['entity'] === true;
  const { fragments } = compiling;
  const keeping = entity && fragments ? { stores: fragments, changesAt: changesAtOf(type) } : null;
  const object = objectWriter(members, keeping);
  const write: WriteValue = (value, run) => (value instanceof Error ? null : object.write(value, run));
  return {
    write,
    kept: object.kept,
    pure: entity && members.every(({ cacheHint }) => cacheHint === 'pure'),
    peek: (key, value, run) => byKey.get(key)?.peek(value, run),
  };
}

type MemberSource = { readonly key: string; readonly nodes: readonly [FieldNode, ...FieldNode[]] };

function compileMember(compiling: Compiling, parent: GraphQLObjectType, { key, nodes }: MemberSource): Member | null {
  const [node] = nodes;
  const prefix = `${JSON.stringify(key)}:`;
  if (node.name.value === '__typename') {
    const text = JSON.stringify(parent.name);
    return { prefix, cacheHint: 'pure', peek: () => parent.name, write: () => text, texts: true };
  }
  const field = parent.getFields()[node.name.value];
  if (!field) return null;
  const below: { object: Compiled | null } = { object: null };
  const write = valueWriter(field.type, (type) => {
    const sets = nodes.flatMap(({ selectionSet }) => selectionSet ?? []);
    below.object = isObjectType(type) ? compileObject(compiling, type, sets) : null;
    return below.object;
  });
  if (!write) return null;
  const cacheHint = cacheHintOf(parent, field, below.object);
  return { prefix, cacheHint, peek: resolverOf(compiling, field, node), write, texts: holdsTexts(field.type) };
}

/**
 * Returns the cache hint of a member. It is pure or derived only in an entity type and only when it takes no arguments;
 * every other member is live.
 */
function cacheHintOf(
  parent: GraphQLObjectType,
  { args, resolve, type, extensions }: GraphQLField<unknown, unknown>,
  below: Compiled | null,
): Member['cacheHint'] {
  if (parent.extensions['entity'] !== true || args.length > 0) return 'live';
  if (extensions['derived'] === true && isLeafType(getNullableType(type))) return 'derived';
  const exposed = !resolve || resolve === defaultFieldResolver || typeof extensions['pothosExposedField'] === 'string';
  const ofParent = exposed || extensions['pure'] === true;
  return ofParent && (hasLeaf(type) || below?.pure) ? 'pure' : 'live';
}

function hasLeaf(type: GraphQLOutputType): boolean {
  return isNonNullType(type) || isListType(type) ? hasLeaf(type.ofType) : isLeafType(type);
}

/**
 * A resolver. Declared with method syntax because a resolver's `info` parameter has a narrower type than the value
 * passed here.
 */
interface Resolves {
  resolve(parent: unknown, args: unknown, context: unknown, info: unknown): unknown;
}

/**
 * The value that is passed to resolvers as `info`. A resolver that reads it throws; graphql-js then executes the query,
 * and there `info` is available.
 */
export const NO_INFO = new Proxy(
  {},
  {
    get() {
      throw new Error('`info` is unavailable on the fast path.');
    },
  },
);
const NO_ARGUMENTS = Object.freeze({});

function resolverOf(compiling: Compiling, field: GraphQLField<unknown, unknown>, node: FieldNode): Member['peek'] {
  if (!field.resolve || field.resolve === defaultFieldResolver) return propertyOf(field.name);
  const resolver: Resolves = { resolve: field.resolve };
  const { resolve } = resolver;
  if (field.args.length === 0) return (parent, { context }) => resolve(parent, NO_ARGUMENTS, context, NO_INFO);
  if (isFixed(node)) {
    let fixed: Readonly<Record<string, unknown>> | null = null;
    return (parent, { context }) => {
      fixed ??= Object.freeze(getArgumentValues(field, node));
      return resolve(parent, fixed, context, NO_INFO);
    };
  }
  const number = compiling.fields++;
  return (parent, { context, args, variables }) => {
    const fieldArgs = (args[number] ??= getArgumentValues(field, node, variables));
    return resolve(parent, fieldArgs, context, NO_INFO);
  };
}

/** Whether a field's arguments use no variables. */
function isFixed({ arguments: given = [] }: FieldNode): boolean {
  let fixed = true;
  for (const argument of given) visit(argument, { Variable: () => ((fixed = false), BREAK) });
  return fixed;
}

/** Returns the default resolver. A property that is a function is called, as graphql-js does. */
function propertyOf(name: string): Member['peek'] {
  return (parent, { context }) => {
    if (!isObject(parent)) return undefined;
    const value = parent[name];
    return typeof value === 'function' ? value.call(parent, NO_ARGUMENTS, context, NO_INFO) : value;
  };
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

// Collects the selected fields of a type, as graphql-js does.

/** The fields of a selection by response name, in response order, each with every node that selects it. */
type Selected = ReadonlyMap<string, readonly [FieldNode, ...FieldNode[]]>;

/** Collects the fields selected of an object type as graphql-js does, for fixed values of the conditions. */
type Collect = (type: GraphQLObjectType, sets: readonly SelectionSetNode[]) => Selected;

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

// Writes the events of a subscription as JSON text, byte for byte as graphql-js's result.

/**
 * Writes the data of one event of a subscription as JSON text, identical to what JSON.stringify gives for graphql-js's
 * data. `event` is the root value. Null: the event must be executed by graphql-js. Never throws and never rejects.
 */
export type EventWriter = (event: unknown, context: unknown) => MaybePromise<Text>;

type Subscribed = Pick<ValidatedSubscriptionArgs, 'schema' | 'document' | 'operation' | 'variableValues'>;

/**
 * Creates the writer of a subscription's events. Null when the document contains something that cannot be written here.
 */
export function createEventWriter({ schema, document, operation, variableValues }: Subscribed): EventWriter | null {
  const root = schema.getSubscriptionType();
  if (!root || document.definitions.some(hasArguments)) return null;
  try {
    const compiling: Compiling = {
      collect: createCollect(schema, document, variableValues),
      fragments: null,
      fields: 0,
    };
    const object = compileObject(compiling, root, [operation.selectionSet]);
    const run = { variables: variableValues, args: [], note: { nonAscii: false } };
    return object && ((event, context) => object.write(event, { ...run, context }));
  } catch (error) {
    // The conditions of `@include` or `@skip` cannot be decided; graphql-js reports the error.
    if (error instanceof GraphQLError) return null;
    throw error;
  }
}
