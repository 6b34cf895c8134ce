/** Compiles selections into writers of JSON text. What it cannot write, graphql-js must execute. */
import {
  BREAK,
  defaultFieldResolver,
  getArgumentValues,
  getNullableType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
  visit,
  type FieldNode,
  type GraphQLField,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type SelectionSetNode,
} from 'graphql';
import type { JsonCaches } from './json-cache.ts';
import { changesAtOf } from './cache-hints.ts';
import type { Collect } from './fields.ts';
import { objectWriter, type Member } from './object.ts';
import { holdsTexts, valueWriter, type ObjectWriter, type Run, type WriteValue } from './values.ts';

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
