/** Derives the inputs of a route (path, query and body) from the variables of its operation document. */
import {
  Kind,
  TypeInfo,
  getNamedType,
  isEnumType,
  isInputObjectType,
  isInputType,
  isNonNullType,
  typeFromAST,
  valueFromASTUntyped,
  visit,
  visitWithTypeInfo,
  type DocumentNode,
  type GraphQLArgument,
  type GraphQLInputField,
  type GraphQLInputType,
  type GraphQLSchema,
  type OperationDefinitionNode,
  type VariableDefinitionNode,
} from 'graphql';
import type { Shape } from '../core/json-shape.ts';
import { textInput, type TextInput } from './coerce.ts';
import { pathParameters, type ReportFault, type RestDirective } from './directive.ts';
import { boundsOf, jsonInput, type JsonInput } from './input.ts';
import { wireWords } from './leaf.ts';
import { orNull, type JsonSchema } from './named.ts';

/** One variable of a document and the part of the request that it is read from. */
export type Input = {
  readonly name: string;
  readonly required: boolean;
  readonly description: string | null;
  readonly schema: JsonSchema;
  /** The value used when the request does not give one; undefined when there is none. */
  readonly defaultValue: unknown;
  /** The GraphQL argument or input field that the variable goes into. Errors of resolvers use this name. */
  readonly goesInto: string | null;
} & (
  | { readonly place: 'path' | 'query'; readonly read: TextInput['read']; readonly list: boolean }
  | { readonly place: 'body'; readonly read: JsonInput['read']; readonly shape: Shape }
);

type Use = Pick<
  GraphQLArgument | GraphQLInputField,
  'name' | 'description' | 'extensions' | 'defaultValue' | 'default'
>;
export type OperationSource = {
  readonly schema: GraphQLSchema;
  readonly document: DocumentNode;
  readonly operation: OperationDefinitionNode;
  readonly directive: RestDirective;
};

/**
 * Returns the variables of a document as parameters and body members. Reports each variable whose type has no form in
 * REST.
 */
export function readInputs(source: OperationSource, report: ReportFault): readonly Input[] {
  const uses = usesOf(source);
  const onPath = pathParameters(source.directive.path);
  const inputs: Input[] = [];
  for (const definition of source.operation.variableDefinitions ?? []) {
    const type = typeFromAST(source.schema, definition.type);
    const name = definition.variable.name.value;
    const place = onPath.includes(name) ? 'path' : takesBody(source.directive) ? 'body' : 'query';
    if (isInputType(type)) inputs.push(readInput({ definition, type, place, use: uses.get(name) }, report));
  }
  checkPath(onPath, inputs, report);
  checkBodyAs(source.directive, inputs, report);
  return inputs;
}

/**
 * Returns which parts of a request body are parsed, and which stay JSON text. The input of a member decides that for
 * the member.
 */
export function bodyShape(inputs: readonly Input[], bodyAs: string | null): Shape {
  const shapes = inputs.flatMap((input): (readonly [string, Shape])[] =>
    input.place === 'body' ? [[input.name, input.shape]] : [],
  );
  const members = new Map(shapes);
  return bodyAs === null ? { members, others: 'plain' } : (members.get(bodyAs) ?? 'plain');
}

/** Whether a route reads its inputs from the body. POST and PUT do; GET and DELETE read them from the query. */
export function takesBody({ method }: Pick<RestDirective, 'method'>): boolean {
  return method === 'POST' || method === 'PUT';
}

type Definition = {
  readonly definition: VariableDefinitionNode;
  readonly type: GraphQLInputType;
  readonly place: Input['place'];
  readonly use: Use | undefined;
};

function readInput({ definition, type, place, use }: Definition, report: ReportFault): Input {
  const name = definition.variable.name.value;
  const explain: ReportFault = (fault) => report(`$${name}: ${fault}`);
  const bounds = boundsOf(use);
  const defaultValue = definition.defaultValue ? valueFromASTUntyped(definition.defaultValue) : undefined;
  const common = {
    name,
    required: isNonNullType(type) && defaultValue === undefined,
    description: definition.description?.value ?? use?.description ?? null,
    defaultValue,
    goesInto: use?.name ?? null,
  };
  const shownDefault = defaultValue === undefined ? defaultOf(use) : wireDefault(type, defaultValue);
  const shown = (schema: JsonSchema): JsonSchema =>
    shownDefault === undefined ? schema : { ...schema, default: shownDefault };
  if (place === 'body') {
    const { schema, shape, read } = jsonInput(type, bounds, explain);
    return { ...common, place, schema: shown(common.required ? schema : orNull(schema)), shape, read };
  }
  const { schema, read, list } = textInput(type, bounds, explain);
  return { ...common, place, schema: shown(schema), read, list };
}

/** Returns the first argument or input field that uses each variable, fragments included. */
function usesOf({ schema, document }: OperationSource): ReadonlyMap<string, Use> {
  const uses = new Map<string, Use>();
  const info = new TypeInfo(schema);
  const note = (name: string, use: Use | null | undefined) => {
    if (use && !uses.has(name)) uses.set(name, use);
  };
  const enter = {
    Argument(node: { readonly value: { readonly kind: string } }) {
      const name = variableName(node.value);
      if (name !== null) note(name, info.getArgument());
    },
    ObjectField(node: { readonly name: { readonly value: string }; readonly value: { readonly kind: string } }) {
      const name = variableName(node.value);
      const parent = getNamedType(info.getParentInputType());
      if (name !== null && isInputObjectType(parent)) note(name, parent.getFields()[node.name.value]);
    },
  };
  visit(document, visitWithTypeInfo(info, enter));
  return uses;
}

function variableName(value: { readonly kind: string; readonly name?: { readonly value: string } }): string | null {
  return value.kind === Kind.VARIABLE ? (value.name?.value ?? null) : null;
}

function checkPath(onPath: readonly string[], inputs: readonly Input[], report: ReportFault): void {
  for (const name of onPath) {
    const input = inputs.find((one) => one.name === name);
    if (!input?.required) report(`{${name}} needs a variable $${name} of a non-null type without a default`);
  }
  if (new Set(onPath).size !== onPath.length) report('a parameter appears twice in the path');
}

function checkBodyAs(directive: RestDirective, inputs: readonly Input[], report: ReportFault): void {
  if (directive.bodyAs === null) return;
  if (!takesBody(directive)) report(`bodyAs needs post or put`);
  const inBody = inputs.filter(({ place }) => place === 'body').map(({ name }) => name);
  if (inBody.length !== 1 || inBody[0] !== directive.bodyAs) {
    report(`bodyAs names $${directive.bodyAs}, so this must be the one variable that is not in the path`);
  }
}

/**
 * Returns the value that execution uses when the variable is absent. For an enum it is the word that is sent over the
 * wire.
 */
function defaultOf(use: Use | undefined): unknown {
  return use?.default && 'value' in use.default ? use.default.value : use?.defaultValue;
}

function wireDefault(type: GraphQLInputType, value: unknown): unknown {
  const named = getNamedType(type);
  return isEnumType(named) && typeof value === 'string' ? wireWords(named).get(value) : value;
}
