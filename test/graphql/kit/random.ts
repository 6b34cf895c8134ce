/** Draws random queries of a schema from a seed. */
import {
  getNamedType,
  getNullableType,
  isAbstractType,
  isCompositeType,
  isEnumType,
  isInputObjectType,
  isListType,
  isObjectType,
  isRequiredArgument,
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLInputType,
  type GraphQLNamedType,
  type GraphQLSchema,
} from 'graphql';

/** Returns a generator of random numbers in [0, 1), the same for the same seed. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0 || 1;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

export type RandomQuery = { readonly text: string; readonly variables: Readonly<Record<string, unknown>> };

/**
 * Draws a valid query of the schema: aliases, fragments of both kinds, conditions by literals and variables, repeated
 * fields. `known`: the values of arguments by name.
 */
export function randomQuery(
  schema: GraphQLSchema,
  { seed, known }: { readonly seed: number; readonly known: Readonly<Record<string, unknown>> },
): RandomQuery {
  const random = seeded(seed);
  const chance = (part: number): boolean => random() < part;
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;
  const fragments: string[] = [];
  let names = 0;
  let left = 60;

  const literal = (type: GraphQLInputType, name: string): string | null => {
    const inner = getNullableType(type);
    if (isListType(inner)) {
      const item = literal(inner.ofType, name);
      return item === null ? null : `[${item}]`;
    }
    if (isEnumType(inner)) return pick(inner.getValues()).name;
    if (isInputObjectType(inner)) return null;
    if (inner.name === 'Boolean') return String(chance(0.5));
    if (inner.name === 'Int') return String(1 + Math.floor(random() * 5));
    const value = known[name];
    return value === undefined ? null : JSON.stringify(value);
  };
  const argumentsOf = (args: readonly GraphQLArgument[]): string | null => {
    const given: string[] = [];
    for (const arg of args) {
      if (!isRequiredArgument(arg) && chance(0.5)) continue;
      const value = literal(arg.type, arg.name);
      if (value !== null) given.push(`${arg.name}: ${value}`);
      else if (isRequiredArgument(arg)) return null;
    }
    return given.length > 0 ? `(${given.join(', ')})` : '';
  };
  const condition = (): string => {
    if (chance(0.85)) return '';
    const value = pick(['$yes', '$no', 'true', 'false']);
    return ` ${pick(['@include', '@skip'])}(if: ${value})`;
  };
  const fieldOf = (field: GraphQLField<unknown, unknown>, depth: number): string | null => {
    const type = getNamedType(field.type);
    if (isAbstractType(type) || (isCompositeType(type) && (depth <= 0 || left <= 0))) return null;
    left--;
    const args = argumentsOf(field.args);
    if (args === null) return null;
    const below = isObjectType(type) ? ` ${selection(type, depth - 1)}` : '';
    // GraphQL refuses fields of the same name whose arguments differ or whose selections conflict. Aliases avoid that.
    const alias = field.args.length > 0 || below !== '' || chance(0.2) ? `a${names++}: ` : '';
    return `${alias}${field.name}${args}${condition()}${below}`;
  };
  const partOf = (type: GraphQLNamedType, depth: number): string | null => {
    if (!isObjectType(type)) return null;
    if (left <= 0) return fieldOf(pick(Object.values(type.getFields())), 0);
    if (chance(0.08)) return chance(0.5) ? '__typename' : `t${names++}: __typename`;
    if (chance(0.1)) return `... on ${type.name}${condition()} ${selection(type, depth)}`;
    if (chance(0.08)) {
      const name = `F${names++}`;
      fragments.push(`fragment ${name} on ${type.name} ${selection(type, depth)}`);
      return `...${name}${condition()}`;
    }
    return fieldOf(pick(Object.values(type.getFields())), depth);
  };
  const selection = (type: GraphQLNamedType, depth: number): string => {
    const most = 1 + Math.floor(random() * 7);
    const parts = Array.from({ length: most }, () => partOf(type, depth)).filter((part) => part !== null);
    return `{ ${parts.length > 0 ? parts.join(' ') : '__typename'} }`;
  };

  const root = schema.getQueryType();
  const body = root ? selection(root, 5) : '{ __typename }';
  const text = `query ($yes: Boolean!, $no: Boolean! = false) ${body} ${fragments.join(' ')}`;
  return { text, variables: { yes: chance(0.5), ...(chance(0.5) && { no: chance(0.5) }) } };
}
