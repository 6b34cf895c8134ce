/** Compiles selections into writers of JSON text. What it cannot write, graphql-js must execute. */
import {
  BREAK,
  GraphQLError,
  defaultFieldResolver,
  getNullableType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
  visit,
  type DocumentNode,
  type FieldNode,
  type GraphQLField,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
  type OperationDefinitionNode,
  type SelectionSetNode,
  type ValidatedSubscriptionArgs,
  type VariableValues,
} from 'graphql';
import type { MaybePromise } from '../../core/maybe-promise.ts';
import { conditionVariables, createCollect, hasFragmentArguments, type Collect } from '../selection.ts';
import { coerceVariables } from '../variables.ts';
import { changesAtOf, type JsonCaches } from './cache-hints.ts';
import {
  NO_VARIABLES,
  holdsTexts,
  objectWriter,
  preparedWriter,
  resolverOf,
  valueWriter,
  type Member,
  type ObjectWriter,
  type Prepare,
  type Run,
  type Text,
} from './objects.ts';

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
 * Creates the writer of a query. Null when the operation is not a query, or contains something that cannot be written
 * here, such as introspection or a field of an abstract type. If that depends on `@include` or `@skip`, the returned
 * function returns null instead.
 */
export function createWriter(source: WriterSource): Prepare | null {
  const { schema, document, operation } = source;
  if (operation.operation !== 'query' || hasFragmentArguments(document)) return null;
  const conditions = conditionVariables(document);
  const variants = new Map<string, ObjectWriter | null>();
  const variantOf = (variables: VariableValues): ObjectWriter | null => {
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
    const object = variables && variantOf(variables);
    return object ? preparedWriter(object, variables) : null;
  };
}

/** Writes the data of one event of a subscription, as `Prepared` does. `event` is the root value. */
export type EventWriter = (event: unknown, context: unknown) => MaybePromise<Text>;

type Subscribed = Pick<ValidatedSubscriptionArgs, 'schema' | 'document' | 'operation' | 'variableValues'>;

/**
 * Creates the writer of a subscription's events. Null when the document contains something that cannot be written here.
 */
export function createEventWriter({ variableValues: variables, ...source }: Subscribed): EventWriter | null {
  if (hasFragmentArguments(source.document)) return null;
  const object = compile({ ...source, fragments: null }, variables);
  const run = { variables, args: [], note: { nonAscii: false } };
  return object && ((event, context) => object.write(event, { ...run, context }));
}

function compile(
  { schema, document, operation, fragments }: WriterSource,
  variables: VariableValues,
): ObjectWriter | null {
  const root = schema.getRootType(operation.operation);
  try {
    const compiling: Compiling = { collect: createCollect(schema, document, variables), fragments, fields: 0 };
    return root ? compileObject(compiling, root, [operation.selectionSet]) : null;
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
  const caching = entity && fragments ? { stores: fragments, changesAt: changesAtOf(type) } : null;
  return {
    ...objectWriter(members, caching),
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
  const number = field.args.length === 0 || isFixed(node) ? null : compiling.fields++;
  return { prefix, cacheHint, peek: resolverOf(field, node, number), write, texts: holdsTexts(field.type) };
}

/** Whether a field's arguments use no variables. */
function isFixed({ arguments: given = [] }: FieldNode): boolean {
  let fixed = true;
  for (const argument of given) visit(argument, { Variable: () => ((fixed = false), BREAK) });
  return fixed;
}

/**
 * Returns the cache hint of a member. A member is pure or derived only in an entity type and only when it takes no
 * arguments; every other member is live.
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
