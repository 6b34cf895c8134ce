/** Compiles selections into writers of JSON text. Operations that it cannot write must be executed by graphql-js. */
import {
  GraphQLError,
  defaultFieldResolver,
  getNullableType,
  isAbstractType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
  type DocumentNode,
  type FieldNode,
  type GraphQLAbstractType,
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
import { usesVariables } from '../variables-arguments.ts';
import { changesAtOf } from '../schema/cache-hints.ts';
import { NO_INFO } from './no-info.ts';
import {
  NO_VARIABLES,
  objectWriter,
  preparedWriter,
  propertyOf,
  resolverOf,
  resolverOnce,
  valueWriter,
  type Member,
  type Prepare,
} from './objects.ts';
import { holdsTexts, type JsonCaches, type ObjectWriter, type Run, type Text } from './texts.ts';

export type WriterSource = {
  readonly schema: GraphQLSchema;
  readonly document: DocumentNode;
  readonly operation: OperationDefinitionNode;
  /** The caches of the JSON texts of entities. Null: no text is cached. */
  readonly fragments: JsonCaches | null;
};

/**
 * The maximum number of compiled variants of a document. Each combination of the conditions of `@include` and `@skip`
 * is a variant.
 */
const VARIANTS = 16;

/**
 * Creates the writer of a query, or of a mutation of one field. Null if the operation is neither, or contains something
 * that the writer does not support, such as introspection. If that depends on `@include` or `@skip`, the returned
 * function returns null instead.
 */
export function createWriter(source: WriterSource): Prepare | null {
  const { document, operation } = source;
  if (operation.operation === 'subscription' || hasFragmentArguments(document)) return null;
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
  return (variables, root) => {
    const object = variantOf(variables);
    return object ? preparedWriter(object, variables, root) : null;
  };
}

/** Writes the data of one event of a subscription, as `Prepared` does for an operation. `event` is the root value. */
export type EventWriter = (event: unknown, context: unknown) => MaybePromise<Text>;

type Subscribed = Pick<ValidatedSubscriptionArgs, 'schema' | 'document' | 'operation' | 'variableValues'>;

/**
 * Creates the writer of a subscription's events. Null if the document contains something that the writer does not
 * support.
 */
export function createEventWriter({ variableValues: variables, ...source }: Subscribed): EventWriter | null {
  if (hasFragmentArguments(source.document)) return null;
  const object = compile({ ...source, fragments: null }, variables);
  const run = { variables: variables.coerced, args: [], note: { nonAscii: false } };
  return object && ((event, context) => object.write(event, { ...run, context }));
}

function compile(
  { schema, document, operation, fragments }: WriterSource,
  variables: VariableValues,
): ObjectWriter | null {
  const root = schema.getRootType(operation.operation);
  try {
    const collect = createCollect(schema, document, variables);
    const sets = [operation.selectionSet];
    // The fields of a mutation must run one after the other, but the writer starts all fields of an object at once.
    const together = operation.operation === 'mutation' && root ? collect(root, sets).size > 1 : false;
    return root && !together ? compileObject({ schema, collect, fragments, fields: 0 }, root, sets) : null;
  } catch (error) {
    // `@include` or `@skip` cannot be decided. graphql-js reports that error.
    if (error instanceof GraphQLError) return null;
    throw error;
  }
}

/** The state that is shared while the writers of one document are compiled. */
type Compiling = {
  readonly schema: GraphQLSchema;
  readonly collect: Collect;
  readonly fragments: JsonCaches | null;
  /** The number of fields compiled so far whose arguments depend on variables. */
  fields: number;
};
type Compiled = ObjectWriter & {
  readonly pure: boolean;
  /** Returns the value of the member with this response name; undefined if there is none. */
  readonly peek: (key: string, value: unknown, run: Run) => unknown;
};

/**
 * Compiles the writer of an object type's selection. Null if the selection contains something that the writer does not
 * support. Throws a GraphQLError if `@include` or `@skip` cannot be decided.
 */
function compileObject(
  compiling: Compiling,
  type: GraphQLObjectType,
  sets: readonly SelectionSetNode[],
): Compiled | null {
  // The writer does not support types with `isTypeOf`. graphql-js calls it on the value, and reports an error if it
  // returns false.
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
    if (isAbstractType(type)) return compileAbstract(compiling, type, sets);
    below.object = isObjectType(type) ? compileObject(compiling, type, sets) : null;
    return below.object;
  });
  const peek = write && compilePeek(compiling, parent, { field, node });
  if (!peek) return null;
  return { prefix, cacheHint: cacheHintOf(parent, field, below.object), peek, write, texts: holdsTexts(field.type) };
}

type Field = { readonly field: GraphQLField<unknown, unknown>; readonly node: FieldNode };

/** Compiles the function that resolves a field. Null for a mutation that graphql-js must resolve. */
function compilePeek(compiling: Compiling, parent: GraphQLObjectType, { field, node }: Field): Member['peek'] | null {
  if (!field.resolve || field.resolve === defaultFieldResolver) return propertyOf(field.name);
  const mutates = parent === compiling.schema.getMutationType();
  const resolver = mutates ? resolverOnce(field) : { resolve: field.resolve };
  // The arguments of a mutation are computed anew each time, because its resolver may modify them.
  const number = mutates || node.arguments?.some(usesVariables) ? compiling.fields++ : null;
  return resolver && resolverOf(field, resolver, { node, number });
}

/**
 * Compiles the writer of a union or an interface. Null if one of its possible types has a selection that the writer
 * does not support.
 */
function compileAbstract(
  compiling: Compiling,
  type: GraphQLAbstractType,
  sets: readonly SelectionSetNode[],
): ObjectWriter | null {
  const { resolveType } = type;
  const writers = new Map<unknown, Compiled>();
  for (const one of compiling.schema.getPossibleTypes(type)) {
    const object = compileObject(compiling, one, sets);
    if (!object) return null;
    writers.set(one.name, object);
  }
  if (!resolveType) return null;
  const resolver: ResolvesType = { resolveType };
  return {
    listCache: null,
    write(value, run) {
      try {
        const name = value instanceof Error ? null : resolver.resolveType(value, run.context, NO_INFO, type);
        const object = writers.get(name);
        if (!object || typeof name !== 'string') return null;
        run.note.chosen ??= { type: name, member: (key) => object.peek(key, value, run) };
        return object.write(value, run);
      } catch {
        return null;
      }
    },
  };
}

/** Declared with method syntax for the same reason as `Resolves`. */
interface ResolvesType {
  resolveType(value: unknown, context: unknown, info: unknown, type: GraphQLAbstractType): unknown;
}

/**
 * Returns the cache hint of a member. Only in an entity type, and only without arguments, can a member be `pure` or
 * `derived`; every other member is `live`.
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
