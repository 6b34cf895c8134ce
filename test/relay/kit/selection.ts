/** Builds documents that select everything that a field can answer. */
import {
  getNamedType,
  isInterfaceType,
  isLeafType,
  isObjectType,
  isRequiredArgument,
  isUnionType,
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLObjectType,
} from 'graphql';
import { schema } from '../../../src/graphql/schema/schema.ts';

/** The arguments for every field that takes them. Payloads are included, and lists are short. */
const GIVEN: Readonly<Record<string, string>> = { include: 'true', reveal: 'true', first: '2' };
/**
 * The arguments for nested fields that require them. They are the same for every requester, and name rows that do not
 * exist.
 */
const REQUIRED: Readonly<Record<string, string>> = {
  userId: '"nobody"',
  clientId: '"none"',
  commandId: '"none"',
  taskId: '"none"',
};
/** The number of levels of objects that are selected. A query may be 12 levels deep. */
const DEPTH = 8;

/**
 * Returns a selection of everything below a type. A type is not selected again inside itself. Throws if a field needs
 * an argument that is not listed.
 */
export function everythingOf(type: GraphQLNamedType, path: readonly string[] = []): string {
  if (isUnionType(type)) {
    const members = type.getTypes().map((member) => `... on ${member.name} ${everythingOf(member, path)}`);
    return `{ __typename ${members.join(' ')} }`;
  }
  if (!isObjectType(type) && !isInterfaceType(type)) return '';
  const fields = Object.values(type.getFields()).flatMap((field) => select(field, [...path, type.name]));
  return `{ __typename ${fields.join(' ')} }`;
}

function select(field: GraphQLField<unknown, unknown>, path: readonly string[]): readonly string[] {
  const type = getNamedType(field.type);
  const call = `${field.name}${argumentsOf(field)}`;
  if (isLeafType(type)) return [call];
  // Edges contain only their cursor, because `nodes` has the same rows.
  if (type.name.endsWith('Edge')) return [`${call} { cursor }`];
  // Contexts occur many times below a user. Commands are selected whole elsewhere.
  if (path.at(-1) === 'ExecutionContext' && type.name === 'Command') return [`${call} { commandId action }`];
  return path.includes(type.name) || path.length > DEPTH ? [] : [`${call} ${everythingOf(type, path)}`];
}

function argumentsOf({ name, args }: GraphQLField<unknown, unknown>): string {
  const given = args.flatMap((argument) => {
    const value = GIVEN[argument.name] ?? (isRequiredArgument(argument) ? REQUIRED[argument.name] : undefined);
    if (value === undefined && isRequiredArgument(argument))
      throw new Error(`${name}: ${argument.name} needs an example`);
    return value === undefined ? [] : [`${argument.name}: ${value}`];
  });
  return given.length === 0 ? '' : `(${given.join(', ')})`;
}

export type RootField = {
  /** The name of the field with its type, such as `Query.user`. */
  readonly name: string;
  readonly operation: 'query' | 'mutation' | 'subscription';
  readonly type: GraphQLNamedType;
  readonly args: readonly GraphQLArgument[];
};

export function rootFields(): readonly RootField[] {
  const of = (operation: RootField['operation'], root: GraphQLObjectType | null | undefined): RootField[] =>
    Object.values(root?.getFields() ?? {}).map(({ name, type, args }) => ({
      name: `${root?.name}.${name}`,
      operation,
      type: getNamedType(type),
      args,
    }));
  return [
    ...of('query', schema.getQueryType()),
    ...of('mutation', schema.getMutationType()),
    ...of('subscription', schema.getSubscriptionType()),
  ];
}

/** Returns a document that calls this field and selects everything below it. Only the variables in use are declared. */
export function documentOf({ operation, type, args }: Omit<RootField, 'name'>, call: string): string {
  const paged = args.some(({ name }) => name === 'first') ? withArgument(call, 'first: 2') : call;
  const used = Object.entries(VARIABLES).filter(([name]) => paged.includes(`$${name}`));
  const declared = used.map(([name, of]) => `$${name}: ${of}`).join(', ');
  return `${operation}${declared === '' ? '' : `(${declared})`} { ${paged} ${everythingOf(type)} }`;
}

/** Returns the call with one more argument. */
export function withArgument(call: string, argument: string): string {
  return call.endsWith(')') ? `${call.slice(0, -1)}, ${argument})` : `${call}(${argument})`;
}

/** The types of the variables that example calls may use. */
const VARIABLES = {
  user: 'ID!',
  client: 'ID!',
  command: 'ID!',
  stream: 'String!',
  action: 'String!',
  params: 'JSON',
  context: 'ID!',
  window: 'ID!',
  task: 'ID!',
  site: 'ID!',
  session: 'ID!',
  grant: 'ID!',
  pause: 'ID!',
  nodeOfClient: 'ID!',
  nodeOfSession: 'ID!',
  after: 'String',
} as const;
