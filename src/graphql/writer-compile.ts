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
import type { FragmentStores } from './fragments.ts';
import { changesAtOf } from './nature.ts';
import type { Collect } from './writer-fields.ts';
import { objectWriter, type Member } from './writer-object.ts';
import { holdsTexts, valueWriter, type ObjectWriter, type WriteValue } from './writer-values.ts';

/** What a document's writers are made of. */
export type Compiling = {
  readonly collect: Collect;
  readonly fragments: FragmentStores | null;
  /** How many fields there are so far whose arguments depend on variables. */
  fields: number;
};
export type Compiled = ObjectWriter & { readonly pure: boolean };

/** The writer of an object type's selection; null: something in it is not written here. Throws a GraphQLError where conditions cannot be decided. */
export function compileObject(
  compiling: Compiling,
  type: GraphQLObjectType,
  sets: readonly SelectionSetNode[],
): Compiled | null {
  // Only abstract types, which are not written here, ask whether a value is of its type; and then it may say no.
  if (type.isTypeOf) return null;
  const members: Member[] = [];
  for (const [key, nodes] of compiling.collect(type, sets)) {
    const member = compileMember(compiling, type, { key, nodes });
    if (!member) return null;
    members.push(member);
  }
  const entity = type.extensions['entity'] === true;
  const { fragments } = compiling;
  const keeping = entity && fragments ? { stores: fragments, changesAt: changesAtOf(type) } : null;
  const object = objectWriter(members, keeping);
  const write: WriteValue = (value, run) => (value instanceof Error ? null : object.write(value, run));
  return { write, kept: object.kept, pure: entity && members.every(({ nature }) => nature === 'pure') };
}

type MemberSource = { readonly key: string; readonly nodes: readonly [FieldNode, ...FieldNode[]] };

function compileMember(compiling: Compiling, parent: GraphQLObjectType, { key, nodes }: MemberSource): Member | null {
  const [node] = nodes;
  const prefix = `${JSON.stringify(key)}:`;
  if (node.name.value === '__typename') {
    const text = JSON.stringify(parent.name);
    return { prefix, nature: 'pure', peek: () => parent.name, write: () => text, texts: true };
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
  const nature = natureOf(parent, field, below.object);
  return { prefix, nature, peek: resolverOf(compiling, field, node), write, texts: holdsTexts(field.type) };
}

/** Only members of entities are anything but live, and only where nothing comes in from outside. */
function natureOf(
  parent: GraphQLObjectType,
  { args, resolve, type, extensions }: GraphQLField<unknown, unknown>,
  below: Compiled | null,
): Member['nature'] {
  if (parent.extensions['entity'] !== true || args.length > 0) return 'live';
  if (extensions['derived'] === true && isLeafType(getNullableType(type))) return 'derived';
  const exposed = !resolve || resolve === defaultFieldResolver || typeof extensions['pothosExposedField'] === 'string';
  const ofParent = exposed || extensions['pure'] === true;
  return ofParent && (hasLeaf(type) || below?.pure) ? 'pure' : 'live';
}

function hasLeaf(type: GraphQLOutputType): boolean {
  return isNonNullType(type) || isListType(type) ? hasLeaf(type.ofType) : isLeafType(type);
}

/** Written as a method, since a resolver's last parameter is more than what is given here. */
interface Resolves {
  resolve(parent: unknown, args: unknown, context: unknown, info: unknown): unknown;
}

/** Given to resolvers for their `info`. Who asks for it goes the ordinary way, where it is told. */
export const NO_INFO = new Proxy(
  {},
  {
    get() {
      throw new Error('Not told here.');
    },
  },
);
const NO_ARGUMENTS = Object.freeze({});

function resolverOf(compiling: Compiling, field: GraphQLField<unknown, unknown>, node: FieldNode): Member['peek'] {
  if (!field.resolve || field.resolve === defaultFieldResolver) return propertyOf(field.name);
  const own: Resolves = { resolve: field.resolve };
  const { resolve } = own;
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
    const own = (args[number] ??= getArgumentValues(field, node, variables));
    return resolve(parent, own, context, NO_INFO);
  };
}

/** Whether a field's arguments are the same whatever the variables. */
function isFixed({ arguments: given = [] }: FieldNode): boolean {
  let fixed = true;
  for (const argument of given) visit(argument, { Variable: () => ((fixed = false), BREAK) });
  return fixed;
}

/** The default resolver; a method in its place is called, as graphql-js does. */
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
