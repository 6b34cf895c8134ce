/**
 * Compiles the literals and variables of a document into functions that compute arguments, as `getArgumentValues` of
 * graphql-js does.
 */
import {
  BREAK,
  Kind,
  coerceInputLiteral,
  getNullableType,
  isInputObjectType,
  isListType,
  isNonNullType,
  visit,
  type ASTNode,
  type FieldNode,
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLInputField,
  type GraphQLInputType,
  type ValueNode,
} from 'graphql';
import { absenceOf, type Values } from './variables-coercion.ts';

/** Computes a value from the operation's variables. Undefined: the value does not fit the type. */
export type Make = (variables: Values) => unknown;

const MISFIT: Make = () => undefined;

/**
 * Creates the function that computes the arguments of a field from the coerced variables. It returns null if they do
 * not fit; graphql-js then reports why. Objects and lists are created anew each time, because a resolver may modify
 * them.
 */
export function createArguments(
  { args }: Pick<GraphQLField<unknown, unknown>, 'args'>,
  { arguments: given = [] }: FieldNode,
): (variables: Values) => Values | null {
  return membersMaker(args, given);
}

type NamedValue = { readonly name: { readonly value: string }; readonly value: ValueNode };

function membersMaker(
  declared: readonly (GraphQLArgument | GraphQLInputField)[],
  given: readonly NamedValue[],
): (variables: Values) => Values | null {
  const nodes = new Map(given.map(({ name, value }) => [name.value, value]));
  const members = declared.map((one) => {
    const node = nodes.get(one.name);
    const variable = node?.kind === Kind.VARIABLE ? node.name.value : null;
    return { name: one.name, variable, make: node ? makerOf(node, one.type) : null, ...absenceOf(one) };
  });
  return (variables) => {
    const made: Record<string, unknown> = {};
    for (const { name, variable, make, required, preset } of members) {
      const isGiven = make !== null && (variable === null || variables[variable] !== undefined);
      const value = isGiven ? make(variables) : preset;
      if (value !== undefined) made[name] = value;
      else if (isGiven || required) return null;
    }
    return made;
  };
}

export function makerOf(node: ValueNode, type: GraphQLInputType): Make {
  if (node.kind === Kind.VARIABLE) return variableMaker(node.name.value, isNonNullType(type));
  if (node.kind === Kind.NULL) return isNonNullType(type) ? MISFIT : () => null;
  const nullable = getNullableType(type);
  if (isListType(nullable)) return listMaker(node.kind === Kind.LIST ? node.values : [node], nullable.ofType);
  if (isInputObjectType(nullable) && !nullable.isOneOf) {
    const fields = nullable.getFields();
    if (node.kind !== Kind.OBJECT || node.fields.some(({ name }) => !Object.hasOwn(fields, name.value))) return MISFIT;
    const make = membersMaker(Object.values(fields), node.fields);
    return (variables) => make(variables) ?? undefined;
  }
  if (usesVariables(node)) return (variables) => coerceInputLiteral(node, type, { sources: {}, coerced: variables });
  const value = coerceInputLiteral(node, type);
  return () => value;
}

function variableMaker(name: string, nonNull: boolean): Make {
  return nonNull ? (variables) => variables[name] ?? undefined : (variables) => variables[name];
}

function listMaker(nodes: readonly ValueNode[], type: GraphQLInputType): Make {
  const items = nodes.map((node) => ({
    make: makerOf(node, type),
    // In a list, a variable without a value counts as null.
    absent: node.kind === Kind.VARIABLE && !isNonNullType(type) ? null : undefined,
  }));
  return (variables) => {
    const made: unknown[] = [];
    for (const { make, absent } of items) {
      const value = make(variables);
      if (value === undefined && absent === undefined) return undefined;
      made.push(value === undefined ? absent : value);
    }
    return made;
  };
}

/** Whether this part of a document uses variables. */
export function usesVariables(node: ASTNode): boolean {
  let uses = false;
  visit(node, { Variable: () => ((uses = true), BREAK) });
  return uses;
}
