import {
  GraphQLError,
  Kind,
  defaultFieldResolver,
  getArgumentValues,
  getNullableType,
  getVariableValues,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
  type DocumentNode,
  type FieldNode,
  type GraphQLField,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
  type OperationDefinitionNode,
  type SelectionSetNode,
  type VariableValues,
} from 'graphql';
import type { Maybe } from '../core/maybe.ts';
import type { FragmentStores } from './fragments.ts';
import { conditionVariables, createCollect, type Collect } from './writer-fields.ts';
import { changesAtOf } from './nature.ts';
import { objectWriter, type Member } from './writer-object.ts';
import {
  isThenable,
  settle,
  valueWriter,
  type ObjectWriter,
  type Run,
  type Text,
  type WriteValue,
} from './writer-values.ts';

/**
 * Writes the data of a query as JSON text, the very text that JSON.stringify gives of graphql-js's data. Null: given up, for the answer
 * would hold an error or something that is not written here; the query must then be run in the ordinary way, with the same context. Never
 * throws and never rejects. What is made of variables that are frozen is kept with them.
 */
export type Writer = (context: unknown, variables: Readonly<Record<string, unknown>>) => Maybe<Text>;

export type WriterSource = {
  readonly schema: GraphQLSchema;
  readonly document: DocumentNode;
  readonly operation: OperationDefinitionNode;
  /** Null: nothing is kept. */
  readonly fragments: FragmentStores | null;
};

/** `@include` and `@skip` make other operations of one; so many of them are kept. */
const VARIANTS = 16;

/** Null: it is not a query, reads the schema, or has fields of abstract types. */
export function createWriter(source: WriterSource): Writer | null {
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
  const read = (given: Given): Prepared | null => {
    const { variableValues } = getVariableValues(schema, operation.variableDefinitions ?? [], given);
    const write = variableValues && variantOf(variableValues);
    return write ? { write, variables: variableValues, args: [] } : null;
  };
  const known = new WeakMap<Given, Prepared>();
  const prepare = (given: Given): Prepared | null => {
    const found = known.get(given);
    if (found) return found;
    const prepared = read(given);
    if (prepared && Object.isFrozen(given)) known.set(given, prepared);
    return prepared;
  };
  return (context, given) => {
    const prepared = prepare(given);
    return prepared && prepared.write({ context, variables: prepared.variables, args: prepared.args });
  };
}

type Given = Readonly<Record<string, unknown>>;
type Prepared = { readonly write: WriteRoot; readonly variables: VariableValues; readonly args: unknown[] };

type WriteRoot = (run: Run) => Maybe<Text>;
const NO_VARIABLES: VariableValues = { sources: {}, coerced: {} };

/** Arguments of fragments are an experiment of graphql-js. */
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
    // The conditions cannot be decided; graphql-js says so in its words.
    if (error instanceof GraphQLError) return null;
    throw error;
  }
}

type Compiling = {
  readonly collect: Collect;
  readonly fragments: FragmentStores | null;
  /** How many fields with arguments there are so far. */
  fields: number;
};
type Compiled = ObjectWriter & { readonly pure: boolean };

function compileObject(
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
    const text = prefix + JSON.stringify(parent.name);
    return { nature: 'pure', write: () => text, peek: () => parent.name };
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
  const resolve = resolverOf(compiling, field, node);
  const nature = natureOf(parent, field, below.object);
  return { nature, peek: resolve, write: memberWriter(prefix, resolve, write) };
}

function memberWriter(prefix: string, resolve: Member['peek'], write: WriteValue): WriteValue {
  const prefixed: WriteValue = (value, run) => {
    const text = write(value, run);
    if (typeof text === 'string') return prefix + text;
    return text === null ? null : text.then((later) => (later === null ? null : prefix + later));
  };
  return (parent, run) => {
    try {
      const value = resolve(parent, run);
      return isThenable(value) ? settle(value, prefixed, run) : prefixed(value, run);
    } catch {
      return null;
    }
  };
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

/** Who asks for it goes the ordinary way, where it is told. */
const NO_INFO = new Proxy(
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
  const number = compiling.fields++;
  return (parent, { context, args, variables }) => {
    const own = (args[number] ??= getArgumentValues(field, node, variables));
    return resolve(parent, own, context, NO_INFO);
  };
}

/** The default resolver; a method in its place is called, as graphql-js does. */
function propertyOf(name: string): Member['peek'] {
  return (parent, { context }) => {
    if (typeof parent !== 'object' || parent === null) return undefined;
    const value: unknown = Reflect.get(parent, name);
    return typeof value === 'function' ? value.call(parent, NO_ARGUMENTS, context, NO_INFO) : value;
  };
}
