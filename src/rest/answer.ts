/**
 * Turns the result of an execution, parsed or as JSON text, into a response; and finds the body in the data of an
 * operation when its route is compiled. Sends nothing.
 */
import {
  Kind,
  getNamedType,
  getNullableType,
  isAbstractType,
  isCompositeType,
  isEnumType,
  isListType,
  isNonNullType,
  isObjectType,
  isScalarType,
  visit,
  type DocumentNode,
  type ExecutionResult,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLCompositeType,
  type GraphQLError,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
  type OperationDefinitionNode,
  type SelectionNode,
  type SelectionSetNode,
} from 'graphql';
import type { InputError } from '../core/errors.ts';
import { isRecord } from '../core/json.ts';
import type { Chosen, TextInfo } from '../graphql/writer/texts.ts';
import { isCode, statusOf, type Code } from '../protocol/codes.ts';
import { enumSchema, named, orNull, snakeCase, type JsonSchema } from './forms.ts';
import type { Input, OperationSource, ReportFault } from './inputs.ts';
import { detailOf, problem, type Answer, type Explain, type Explained } from './problem.ts';

/** What a route needs to turn a result into a response. */
type Answering = {
  readonly body: Body;
  readonly inputs: ReadonlyMap<string, Input>;
  /** Where to find the refusal of the only item, if the request sent one value in place of a list; otherwise null. */
  readonly onlyItem: ItemRefusal | null;
  /** Whether the request only reads the record of a command, without waiting for it. */
  readonly reads: boolean;
};

const NOT_FOUND: Explained = { code: 'not_found', detail: 'There is no such thing, or it is not yours.' };

/**
 * Turns the result of an execution into a response. Any error makes it a problem: partial data is never sent. A null on
 * the path to the body is a 404. The refusal of an item that was sent alone is a problem. Of a union or interface, the
 * concrete type and its outcome decide the status.
 */
export function answerOf(answering: Answering, result: ExecutionResult, explain: Explain): Answer {
  const { errors } = result;
  const [first] = errors ?? [];
  if (errors && first) return problem(inWireNames(answering.inputs, gravestOf(first, errors, explain)));
  let value: unknown = result.data;
  for (const name of answering.body.path) value = isRecord(value) ? value[name] : null;
  if (value === null || value === undefined) return problem(NOT_FOUND);
  const refusal = answering.onlyItem && onlyItemRefusal(answering.onlyItem, value);
  if (refusal) return problem(refusal);
  if (answering.body.variants.length === 0 || !isRecord(value)) return { status: 200, body: value };
  return variantAnswer(answering, value);
}

/** Explains every error, because explaining also logs it. An `internal` error takes precedence. */
function gravestOf(first: GraphQLError, errors: readonly GraphQLError[], explain: Explain): Explained {
  const all = errors.map((error) => explain(error));
  return all.find(({ code }) => code === 'internal') ?? explain(first);
}

function variantAnswer({ body, inputs, reads }: Answering, value: Readonly<Record<string, unknown>>): Answer {
  const { __typename, ...members } = value;
  const kind = body.variants.find(({ name }) => name === __typename)?.kind ?? 'plain';
  if (kind === 'refusal') return problem(inWireNames(inputs, explainRefusal(members)));
  if (kind === 'invocation') return invocationAnswer(members, reads);
  return { status: kind === 'created' ? 201 : 200, body: members };
}

/** The layers that every kind of request passes. A problem does not name them, because its code says as much. */
const LAYERS_OF_REQUESTS: ReadonlySet<unknown> = new Set(['token', 'address', 'arguments']);

/** Explains a refusal. The problem keeps the members that say more about the refused command, such as `by`. */
function explainRefusal(members: Readonly<Record<string, unknown>>): Explained {
  const { code, message, retry_after_ms, share, errors, by, pause, ...command } = members;
  return {
    code: isCode(code) ? code : 'internal',
    detail: String(message),
    ...(Array.isArray(errors) && { errors }),
    ...(typeof retry_after_ms === 'number' && { retryAfterMs: retry_after_ms }),
    ...(typeof share === 'string' && { share }),
    command: {
      ...command,
      ...(isRecord(pause) && { pause }),
      ...(by !== undefined && !LAYERS_OF_REQUESTS.has(by) && { by }),
    },
  };
}

type Unproven = { readonly code: Code; readonly detail: string };
const UNKNOWN_END: Unproven = { code: 'response_timeout', detail: 'The command may have run; its end is not known.' };
const UNPROVEN: Readonly<Record<string, Unproven>> = {
  expired: {
    code: 'queue_timeout',
    detail: 'The deadline passed before the command was written to its client: it has not run.',
  },
  outcome_unknown: UNKNOWN_END,
};

/**
 * Returns 202 while the command has no outcome, and null for the outcomes in UNPROVEN: the answer is then a problem.
 * Every other outcome is 200: a failure that the client reported is a regular answer too. For a request that only reads
 * the record, every outcome is 200.
 */
function statusOfOutcome(outcome: unknown, reads: boolean): 200 | 202 | null {
  if (outcome === null) return 202;
  if (reads) return 200;
  return typeof outcome === 'string' && Object.hasOwn(UNPROVEN, outcome) ? null : 200;
}

/**
 * Answers an invocation: a problem with the status of its code, mostly 504, if the request waited and the outcome is in
 * UNPROVEN; otherwise the invocation.
 */
function invocationAnswer(members: Readonly<Record<string, unknown>>, reads: boolean): Answer {
  const { outcome, error } = members;
  const status = statusOfOutcome(outcome, reads);
  if (status !== null) return { status, body: members };
  const { code, message } = isRecord(error) ? error : {};
  const known = isCode(code) && statusOf(code) >= 400 ? { code, detail: String(message) } : null;
  const end = known ?? UNPROVEN[String(outcome)] ?? UNKNOWN_END;
  return problem({ ...end, status: statusOf(end.code), command: members });
}

/**
 * Renames the parameters in faults of resolvers to their wire names. A resolver knows only the GraphQL argument that a
 * value went into.
 */
function inWireNames(inputs: ReadonlyMap<string, Input>, explained: Explained): Explained {
  const { errors } = explained;
  if (!errors || errors.length === 0) return explained;
  const renamed = errors.map(({ parameter, detail }): InputError => ({
    parameter: wireName(inputs, parameter),
    detail,
  }));
  return { ...explained, errors: renamed, detail: detailOf(renamed) };
}

function wireName(inputs: ReadonlyMap<string, Input>, parameter: string): string {
  if (inputs.has(parameter)) return parameter;
  return [...inputs.values()].find(({ goesInto }) => goesInto === parameter)?.name ?? snakeCase(parameter);
}

// Finds the response body in the data of an operation, when the route is compiled.

/** Where the response body is found in the data of an execution, and what type it has. */
export type Body = {
  /** The response names on the way from the root of the data down to the body. */
  readonly path: readonly string[];
  readonly type: GraphQLOutputType;
  readonly nodes: readonly FieldNode[];
  /** The possible object types of a union or interface, which `__typename` tells apart; empty for any other type. */
  readonly variants: readonly Variant[];
  /** Whether a field on the path, the last one included, can be null. When one is null, the answer is a 404. */
  readonly nullable: boolean;
  /** The JSON Schema of the value. Empty when there are variants. */
  readonly schema: JsonSchema;
};

/**
 * An object type that the body may have. `kind` decides the answer. `refusal`: a problem, by its code. `invocation`: a
 * status by its outcome. `plain`: 200. `created`: 201.
 */
export type Variant = {
  readonly name: string;
  readonly kind: 'plain' | 'created' | 'invocation' | 'refusal';
  readonly schema: JsonSchema;
};

/** The members that a document must select, because the status of the answer depends on them. */
const VARIANT_MEMBERS: Readonly<Record<Variant['kind'], readonly string[]>> = {
  plain: [],
  created: [],
  invocation: ['outcome', 'error'],
  refusal: ['code', 'message'],
};

/** Finds the body of an operation's response. Null when the path leads nowhere; the reason has been reported. */
export function findBody(source: OperationSource, report: ReportFault): Body | null {
  const path = source.directive.body ?? rootField(source, report);
  const scope = scopeOf(source, report);
  const place = path.length === 0 ? null : findPlace(scope, path);
  if (place === null) {
    if (path.length > 0) report(`body: "${path.join('.')}" names nothing that is selected`);
    return null;
  }
  const variants = variantsOf(scope, place, source.directive.creates);
  return { path, ...place, variants, schema: variants.length > 0 ? {} : shapeOf(scope, place) };
}

type Place = Pick<Body, 'type' | 'nodes' | 'nullable'>;

/**
 * Follows response names from the root, through objects, the possible types of a union or interface and, if `inLists`,
 * items. Null if one is not selected.
 */
function findPlace(scope: SelectionScope, path: readonly string[], inLists = false): Place | null {
  let type: unknown = scope.schema.getRootType(scope.operation.operation);
  let sets: readonly (SelectionSetNode | undefined)[] = [scope.operation.selectionSet];
  let place: Place | null = null;
  let nullable = false;
  for (const name of path) {
    const owner = possibleTypes(scope.schema, type).find((one) => fieldsOf(scope, one, sets).has(name));
    const nodes = owner && fieldsOf(scope, owner, sets).get(name);
    const field = owner?.getFields()[nodes?.[0]?.name.value ?? ''];
    if (nodes === undefined || field === undefined) return null;
    nullable ||= !isNonNullType(field.type);
    place = { type: field.type, nodes, nullable };
    type = inLists ? getNamedType(field.type) : getNullableType(field.type);
    sets = nodes.map(({ selectionSet }) => selectionSet);
  }
  return place;
}

/** Returns the document to execute: it also selects `__typename` of the body when that decides the status. */
export function withTypename(document: DocumentNode, body: Body): DocumentNode {
  if (body.variants.length === 0) return document;
  const typename: FieldNode = { kind: Kind.FIELD, name: { kind: Kind.NAME, value: '__typename' } };
  return visit(document, {
    Field(node) {
      if (!body.nodes.includes(node) || node.selectionSet === undefined) return undefined;
      return {
        ...node,
        selectionSet: { ...node.selectionSet, selections: [typename, ...node.selectionSet.selections] },
      };
    },
  });
}

function rootField({ operation }: OperationSource, report: ReportFault): readonly string[] {
  const [field, ...more] = operation.selectionSet.selections;
  if (field?.kind === Kind.FIELD && more.length === 0) return [responseKey(field)];
  report('it selects several root fields, so @rest needs body: to name the value that is the answer');
  return [];
}

function variantsOf(scope: SelectionScope, { type, nodes }: Place, creates: boolean): readonly Variant[] {
  const named = getNullableType(type);
  if (!isAbstractType(named)) return [];
  const sets = nodes.map(({ selectionSet }) => selectionSet);
  return possibleTypes(scope.schema, named).map((one) => {
    const kind = creates && kindOf(one) === 'plain' ? 'created' : kindOf(one);
    const selected = fieldsOf(scope, one, sets);
    const missing = VARIANT_MEMBERS[kind].filter((name) => !selected.has(name));
    if (selected.size === 0) scope.report(`nothing is selected of ${one.name}`);
    else if (missing.length > 0) scope.report(`${one.name} must select ${missing.join(', ')}`);
    return { name: one.name, kind, schema: objectShape(scope, { type: one, nodes }) };
  });
}

function kindOf(type: GraphQLObjectType): Variant['kind'] {
  if (type.name === 'Refusal') return 'refusal';
  return type.getInterfaces().some(({ name }) => name === 'Invocation') ? 'invocation' : 'plain';
}

// Treats one item that was sent alone as a request of its own, so that its refusal becomes a problem response.

/** `list`: the path in the body to the list of items. `member`: the member of an item with its refusal or null. */
export type ItemRefusal = { readonly list: readonly string[]; readonly member: string };

/**
 * Finds where the answer of an operation lists refused items, as the argument `itemRefusal` of its `@rest` directive
 * says. Returns null if there is no such argument or no body. Reports a fault and returns null if the path does not fit
 * the document, or without `bodyAs`.
 */
export function findItemRefusal(source: OperationSource, body: Body | null, report: ReportFault): ItemRefusal | null {
  const { itemRefusal, bodyAs } = source.directive;
  if (itemRefusal === null || body === null) return null;
  const list = itemRefusal.slice(0, -1);
  const member = itemRefusal.at(-1) ?? '';
  const scope = scopeOf(source, report);
  const path = [...body.path, ...list];
  const place = findPlace(scope, path);
  const isList = place !== null && isListType(getNullableType(place.type));
  const fits = isList && VARIANT_MEMBERS.refusal.every((name) => findPlace(scope, [...path, member, name], true));
  if (!fits) report(`itemRefusal: "${itemRefusal.join('.')}" names no member of a list's items with code and message`);
  if (bodyAs === null) report('itemRefusal needs bodyAs');
  return fits && bodyAs !== null ? { list, member } : null;
}

/** Returns the refusal of the only item of an answer; null when the item was not refused. */
function onlyItemRefusal({ list, member }: ItemRefusal, body: unknown): Explained | null {
  let items = body;
  for (const name of list) items = isRecord(items) ? items[name] : null;
  const [only] = Array.isArray(items) ? items : [];
  const refusal: unknown = isRecord(only) ? only[member] : null;
  if (!isRecord(refusal)) return null;
  const { code, message, errors } = refusal;
  return {
    code: isCode(code) ? code : 'internal',
    detail: String(message),
    ...(Array.isArray(errors) && { errors }),
  };
}

/** An operation and its fragments, needed to resolve selections, and where to report its faults. */
type SelectionScope = OperationSource & {
  readonly fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  readonly report: ReportFault;
};
/** A type, and the fields that select members of it. */
type Selected<Type> = { readonly type: Type; readonly nodes: readonly FieldNode[] };

function scopeOf(source: OperationSource, report: ReportFault): SelectionScope {
  const fragments = source.document.definitions.filter((one) => one.kind === Kind.FRAGMENT_DEFINITION);
  return { ...source, report, fragments: new Map(fragments.map((fragment) => [fragment.name.value, fragment])) };
}

/** Returns the name of a field's value in the answer: its alias, else its name. */
function responseKey(field: FieldNode): string {
  return (field.alias ?? field.name).value;
}

/** Returns the fields selected of an object type: for each response name, every field node that selects it. */
function fieldsOf(
  scope: SelectionScope,
  type: GraphQLObjectType,
  sets: readonly (SelectionSetNode | undefined)[],
): ReadonlyMap<string, readonly FieldNode[]> {
  const found = new Map<string, FieldNode[]>();
  const collect = (set: SelectionSetNode | undefined): void => {
    for (const selection of set?.selections ?? []) {
      if (selection.kind === Kind.FIELD) {
        const key = responseKey(selection);
        found.set(key, [...(found.get(key) ?? []), selection]);
        continue;
      }
      const part = selection.kind === Kind.INLINE_FRAGMENT ? selection : scope.fragments.get(selection.name.value);
      if (part && applies(scope.schema, part.typeCondition?.name.value, type)) collect(part.selectionSet);
    }
  };
  for (const set of sets) collect(set);
  return found;
}

/** Returns the object types that a value of this type can have. */
function possibleTypes(schema: GraphQLSchema, type: unknown): readonly GraphQLObjectType[] {
  if (isObjectType(type)) return [type];
  return isAbstractType(type) ? schema.getPossibleTypes(type) : [];
}

function applies(schema: GraphQLSchema, condition: string | undefined, type: GraphQLObjectType): boolean {
  if (condition === undefined || condition === type.name) return true;
  const named = getNamedType(schema.getType(condition));
  return isAbstractType(named) && schema.isSubType(named, type);
}

const SCALARS: Readonly<Record<string, JsonSchema>> = {
  ID: { type: 'string' },
  String: { type: 'string' },
  Int: { type: 'integer' },
  Float: { type: 'number' },
  Boolean: { type: 'boolean' },
  DateTime: { type: 'string', format: 'date-time' },
  JSON: {},
};

/** Returns the JSON Schema of the fields that a document selects of a type, exactly as the response contains them. */
function shapeOf(scope: SelectionScope, { type, nodes }: Selected<GraphQLOutputType>): JsonSchema {
  if (isNonNullType(type)) return shapeOf(scope, { type: type.ofType, nodes });
  if (isListType(type)) {
    const items = shapeOf(scope, { type: type.ofType, nodes });
    return { type: 'array', items: isNonNullType(type.ofType) ? items : orNull(items) };
  }
  if (isEnumType(type)) return named(type.name, enumSchema(type));
  if (isScalarType(type) && Object.hasOwn(SCALARS, type.name)) return SCALARS[type.name] ?? {};
  if (isCompositeType(type)) return compositeShape(scope, { type, nodes });
  scope.report(`the type ${String(type)} has no JSON form`);
  return {};
}

/** Does the same as `shapeOf`, for one object type. Omits `__typename`, which only the relay reads. */
function objectShape(scope: SelectionScope, selected: Selected<GraphQLObjectType>): JsonSchema {
  const sets = selected.nodes.map(({ selectionSet }) => selectionSet);
  const properties: Record<string, JsonSchema> = {};
  for (const [key, nodes] of fieldsOf(scope, selected.type, sets)) {
    const field = selected.type.getFields()[nodes[0]?.name.value ?? ''];
    if (field === undefined) continue;
    const shape = shapeOf(scope, { type: field.type, nodes });
    const whole = isNonNullType(field.type) ? shape : orNull(shape);
    properties[key] = field.description ? { ...whole, description: field.description } : whole;
  }
  const description = selected.type.description ? { description: selected.type.description } : {};
  const required = Object.keys(properties);
  return named(nameOf(selected.type), {
    type: 'object',
    ...description,
    properties,
    required,
    additionalProperties: false,
  });
}

function compositeShape(scope: SelectionScope, { type, nodes }: Selected<GraphQLCompositeType>): JsonSchema {
  const shapes = possibleTypes(scope.schema, type).map((one) => objectShape(scope, { type: one, nodes }));
  const [first] = shapes;
  return shapes.length === 1 && first !== undefined ? first : { anyOf: shapes };
}

/** Returns the name of a type's schema. GraphQL names its pages `...Connection`; REST does not use that word. */
function nameOf(type: GraphQLObjectType): string {
  return 'pageInfo' in type.getFields() ? type.name.replace(/Connection$/, 'Page') : type.name;
}

// Builds the answer from the JSON text of the data, without parsing it, where the answer cannot be a problem.

/** The JSON text before and after the body in the text of the data. */
export type Around = { readonly before: string; readonly after: string };

/** Returns the text around the body. Null if anything else is selected, or if a field on the path has a directive. */
export function aroundBody({ selectionSet }: OperationDefinitionNode, path: readonly string[]): Around | null {
  let set: SelectionSetNode | undefined = selectionSet;
  for (const name of path) {
    const selections: readonly SelectionNode[] = set?.selections ?? [];
    const [only] = selections;
    if (only?.kind !== Kind.FIELD || selections.length > 1 || responseKey(only) !== name) return null;
    if ((only.directives?.length ?? 0) > 0) return null;
    set = only.selectionSet;
  }
  return { before: path.map((name) => `{${JSON.stringify(name)}:`).join(''), after: '}'.repeat(path.length) };
}

/** What a route needs to answer with JSON text. `around` null: the route is answered from a parsed result. */
type Writing = Omit<Answering, 'inputs'> & { readonly around: Around | null };

/** Returns the answer for data that was written as text; null if it may be a problem and must be parsed. */
export function writtenAnswer(
  { around, body, onlyItem, reads }: Writing,
  data: string,
  { nonAscii, chosen, inserts: given }: TextInfo,
): Answer | null {
  const inserts = given ?? [];
  if (onlyItem || around === null || !data.startsWith(around.before)) return null;
  const text = data.slice(around.before.length, data.length - around.after.length);
  if (body.variants.length === 0) return text === 'null' ? null : { status: 200, body: null, text, nonAscii, inserts };
  const variant = chosen && body.variants.find(({ name }) => name === chosen.type);
  const status = variant ? statusOfVariant(variant, chosen, reads) : null;
  if (!variant || status === null) return null;
  return { status, body: null, text: withoutTypename(text, variant.name), nonAscii, inserts };
}

/** Returns the status of an answer. Null for every variant that may be a problem. */
function statusOfVariant({ kind }: Variant, chosen: Chosen, reads: boolean): 200 | 201 | 202 | null {
  if (kind === 'refusal') return null;
  if (kind === 'created') return 201;
  return kind === 'plain' ? 200 : statusOfOutcome(chosen.member('outcome') ?? null, reads);
}

/** Removes `__typename` from the text of the body. The document selects it first (`withTypename`). */
function withoutTypename(text: string, name: string): string {
  return `{${text.slice(`{"__typename":"${name}",`.length)}`;
}
