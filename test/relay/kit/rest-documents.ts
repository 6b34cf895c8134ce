/** Reads the REST documents and sends them as plain GraphQL. */
import {
  getNamedType,
  isEnumType,
  isInterfaceType,
  isListType,
  isNonNullType,
  isObjectType,
  Kind,
  parse,
  print,
  separateOperations,
  typeFromAST,
  visit,
  type DocumentNode,
  type GraphQLNamedType,
  type GraphQLOutputType,
  type GraphQLType,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from 'graphql';
import { schema } from '../../../src/graphql/schema/schema.ts';
import { readOperations } from '../../../src/rest/compile.ts';

/** A REST document in the form in which anybody could send it to GraphQL, and what its route declares. */
export type RestDocument = {
  readonly text: string;
  readonly operation: OperationDefinitionNode;
  readonly document: DocumentNode;
  /** The name of the operation, such as `GET /users/{user_id}`. */
  readonly name: string;
  /** The names of the fields that lead from the data to the answer. */
  readonly body: readonly string[];
  readonly bodyAs: string | null;
};

export function readRestDocuments(): readonly RestDocument[] {
  const whole = parse(
    readOperations()
      .map(({ text }) => text)
      .join('\n'),
  );
  return Object.values(separateOperations(whole)).map(questionOf);
}

function questionOf(document: DocumentNode): RestDocument {
  const operation = document.definitions.find((one) => one.kind === Kind.OPERATION_DEFINITION);
  if (!operation) throw new Error('a document without an operation');
  const given = new Map<string, string>();
  for (const { name, value } of operation.directives?.[0]?.arguments ?? [])
    if (value.kind === Kind.STRING) given.set(name.value, value.value);
  const method = ['get', 'post', 'put', 'delete'].find((word) => given.has(word)) ?? '';
  const [root] = operation.selectionSet.selections;
  const field = root?.kind === Kind.FIELD ? (root.alias ?? root.name).value : '';
  const text = print(visit(document, { Directive: () => null, OperationDefinition: undescribed }));
  return {
    text,
    operation,
    document,
    name: `${method.toUpperCase()} ${given.get(method)}`,
    body: given.get('body')?.split('.') ?? [field],
    bodyAs: given.get('bodyAs') ?? null,
  };
}

function undescribed(operation: OperationDefinitionNode): OperationDefinitionNode {
  const { description: _, ...rest } = operation;
  return rest;
}

/** Returns the GraphQL variables for a REST request: enum values by their names, numbers and booleans as such. */
export function variablesOf(question: RestDocument, target: string, body: unknown): Record<string, unknown> {
  const url = new URL(target, 'http://relay');
  const names = [...question.name.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? '');
  const pattern = question.name.split(' ')[1]?.replaceAll(/\{\w+\}/g, '([^/]+)') ?? '';
  const values = new RegExp(`^${pattern}$`).exec(url.pathname)?.slice(1) ?? [];
  const given = new Map<string, unknown>([...url.searchParams]);
  names.forEach((name, i) => given.set(name, decodeURIComponent(values[i] ?? '')));
  if (question.bodyAs !== null) given.set(question.bodyAs, camelled(body));
  else for (const [name, value] of Object.entries(body ?? {})) given.set(name, value);
  const types = new Map(question.operation.variableDefinitions?.map((one) => [one.variable.name.value, one.type]));
  const entries = [...given].map(([name, value]) => {
    const ast = types.get(name);
    const type = ast && typeFromAST(schema, ast);
    if (!type) throw new Error(`${question.name} has no variable ${name}`);
    return [name, name === question.bodyAs ? value : spoken(type, value)];
  });
  return Object.fromEntries(entries);
}

function spoken(type: GraphQLType, value: unknown): unknown {
  if (isNonNullType(type)) return spoken(type.ofType, value);
  if (isListType(type))
    return (typeof value === 'string' ? value.split(',') : [value].flat()).map((one) => spoken(type.ofType, one));
  if (isEnumType(type)) return type.getValues().find((one) => one.value === value)?.name;
  if (type.name === 'Int' && typeof value === 'string') return Number(value);
  if (type.name === 'Boolean' && typeof value === 'string') return value === 'true';
  return type.name.endsWith('Input') ? camelled(value) : value;
}

/** Returns a body with its members under their GraphQL names. What is under `payload` is opaque. */
function camelled(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(camelled);
  if (typeof value !== 'object' || value === null) return value;
  const camel = (name: string): string => name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [camel(name), name === 'payload' ? one : camelled(one)]),
  );
}

/** Returns GraphQL's answer with its enum values in the words of REST, otherwise unchanged. */
export function withRestEnums({ document, operation }: RestDocument, data: unknown): unknown {
  const root = operation.operation === 'query' ? schema.getQueryType() : schema.getMutationType();
  const fragments = new Map<string, { readonly on: string; readonly set: SelectionSetNode }>();
  for (const one of document.definitions)
    if (one.kind === Kind.FRAGMENT_DEFINITION)
      fragments.set(one.name.value, { on: one.typeCondition.name.value, set: one.selectionSet });

  type Shape = { readonly type: GraphQLOutputType; readonly sets: SelectionSetNode[] };
  const shapesOf = (on: GraphQLNamedType | undefined | null, set: SelectionSetNode, into: Map<string, Shape>): void => {
    for (const part of set.selections) {
      if (part.kind === Kind.FRAGMENT_SPREAD) {
        const fragment = fragments.get(part.name.value);
        if (fragment) shapesOf(schema.getType(fragment.on), fragment.set, into);
      } else if (part.kind === Kind.INLINE_FRAGMENT) {
        shapesOf(part.typeCondition ? schema.getType(part.typeCondition.name.value) : on, part.selectionSet, into);
      } else if (isObjectType(on) || isInterfaceType(on)) {
        const field = on.getFields()[part.name.value];
        if (!field) throw new Error(`${on.name} has no ${part.name.value}`);
        const key = (part.alias ?? part.name).value;
        const known = into.get(key) ?? { type: field.type, sets: [] };
        if (part.selectionSet) known.sets.push(part.selectionSet);
        into.set(key, known);
      }
    }
  };
  const walk = (value: unknown, type: GraphQLNamedType, sets: readonly SelectionSetNode[]): unknown => {
    if (value === null) return null;
    if (Array.isArray(value) && (isEnumType(type) || sets.length > 0)) return value.map((one) => walk(one, type, sets));
    if (isEnumType(type)) return type.getValue(String(value))?.value;
    if (typeof value !== 'object' || sets.length === 0) return value;
    const shapes = new Map<string, Shape>();
    for (const set of sets) shapesOf(type, set, shapes);
    return Object.fromEntries(
      Object.entries(value).map(([key, one]) => {
        const shape = shapes.get(key);
        return [key, shape ? walk(one, getNamedType(shape.type), shape.sets) : one];
      }),
    );
  };
  return root ? walk(data, root, [operation.selectionSet]) : undefined;
}
