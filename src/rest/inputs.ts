/** Derives the inputs of a route (path, query and body) from the variables of its operation document. */
import {
  Kind,
  TypeInfo,
  coerceInputLiteral,
  getNamedType,
  isEnumType,
  isInputObjectType,
  isInputType,
  isListType,
  isNonNullType,
  isScalarType,
  typeFromAST,
  visit,
  visitWithTypeInfo,
  type DocumentNode,
  type GraphQLArgument,
  type GraphQLInputField,
  type GraphQLInputObjectType,
  type GraphQLInputType,
  type GraphQLSchema,
  type OperationDefinitionNode,
  type VariableDefinitionNode,
} from 'graphql';
import type { InputError } from '../core/errors.ts';
import { isRecord, type Shape } from '../core/json.ts';
import { absenceOf } from '../graphql/variables-coercion.ts';
import { type RestDirective, pathParameters, type ReportFault } from './directive.ts';
import { leafOf, named, orNull, ruleOf, snakeCase, type Bounds, type JsonSchema, type Leaf } from './forms.ts';

/** Collects the faults of one request. Their number and length are limited. */
export type Faults = { readonly list: readonly InputError[]; add(parameter: string, detail: string): void };

/** Converts a value in a request into the form that resolvers receive. */
type Reader<From> = {
  readonly schema: JsonSchema;
  /** Returns the converted value. Reports each fault to `faults`, for the parameter `at`. */
  read(value: From, at: string, faults: Faults): unknown;
};

/**
 * Reads a member of a body. `shape` defines how much of the member's JSON text is parsed before `read` gets it (see
 * `Shape`):
 *
 * - `plain`: the value is parsed. For most scalars and for enums.
 * - `text`: the value stays text. For the scalar JSON, whose payloads the relay only forwards.
 * - `{ members, others }`: for an input object. Unknown members (`others`) are parsed too, so that `read` can refuse
 *   them.
 * - `{ item }`: for a list. A single value is read as a list with one item.
 * - `skipped`: the value is ignored. Only for a type that REST does not support, which is a fault of the document.
 */
type JsonInput = Reader<unknown> & { readonly shape: Shape };

/** Reads a parameter of a path or a query. `list`: whether the text contains several values, separated by commas. */
type TextInput = Reader<string> & { readonly list: boolean };

/** A variable of an operation, with the part of the request from which it is read. */
export type Input = {
  readonly name: string;
  readonly required: boolean;
  readonly description: string | null;
  readonly schema: JsonSchema;
  /** The value if the request gives none, in the form that resolvers receive; undefined if there is no default. */
  readonly defaultValue: unknown;
  /**
   * The GraphQL argument or input field in which the operation uses the variable. Errors of resolvers contain this
   * name.
   */
  readonly goesInto: string | null;
} & (({ readonly place: 'path' | 'query' } & TextInput) | ({ readonly place: 'body' } & JsonInput));

type Use = GraphQLArgument | GraphQLInputField;

export type OperationSource = {
  readonly schema: GraphQLSchema;
  readonly document: DocumentNode;
  readonly operation: OperationDefinitionNode;
  readonly directive: RestDirective;
};

/**
 * Returns the variables of an operation as parameters and body members. Reports variables whose type REST does not
 * support.
 */
export function readInputs(source: OperationSource, report: ReportFault): readonly Input[] {
  const uses = usesOf(source);
  const onPath = pathParameters(source.directive.path);
  const inputs: Input[] = [];
  for (const definition of source.operation.variableDefinitions ?? []) {
    const type = typeFromAST(source.schema, definition.type);
    const name = definition.variable.name.value;
    const place = onPath.includes(name) ? 'path' : takesBody(source.directive) ? 'body' : 'query';
    if (isInputType(type)) inputs.push(readInput(definition, { type, place, use: uses.get(name) }, report));
  }
  checkPath(onPath, inputs, report);
  checkBodyAs(source.directive, inputs, report);
  return inputs;
}

/** Returns the shape of a request body, which contains the shape of each input (see `JsonInput`). */
export function bodyShape(inputs: readonly Input[], bodyAs: string | null): Shape {
  const shapes = inputs.flatMap((input): (readonly [string, Shape])[] =>
    input.place === 'body' ? [[input.name, input.shape]] : [],
  );
  const members = new Map(shapes);
  return bodyAs === null ? { members, others: 'plain' } : (members.get(bodyAs) ?? 'plain');
}

/**
 * Whether a route reads its inputs from the body. This is so for POST and PUT; GET and DELETE read them from the query.
 */
export function takesBody({ method }: Pick<RestDirective, 'method'>): boolean {
  return method === 'POST' || method === 'PUT';
}

function readInput(
  definition: VariableDefinitionNode,
  { type, place, use }: { type: GraphQLInputType; place: Input['place']; use: Use | undefined },
  report: ReportFault,
): Input {
  const name = definition.variable.name.value;
  const explain: ReportFault = (fault) => report(`$${name}: ${fault}`);
  const bounds = boundsOf(use);
  const defaultValue: unknown = definition.defaultValue && coerceInputLiteral(definition.defaultValue, type);
  const common = {
    name,
    required: isNonNullType(type) && defaultValue === undefined,
    description: definition.description?.value ?? use?.description ?? null,
    defaultValue,
    goesInto: use?.name ?? null,
  };
  const shownDefault: unknown = defaultValue === undefined ? use && absenceOf(use).preset : defaultValue;
  const shown = (schema: JsonSchema): JsonSchema =>
    shownDefault === undefined ? schema : { ...schema, default: shownDefault };
  if (place === 'body') {
    const input = jsonInput(type, { report: explain, inside: [], bounds });
    return { ...common, ...input, place, schema: shown(common.required ? input.schema : orNull(input.schema)) };
  }
  const input = textInput(type, bounds, explain);
  return { ...common, ...input, place, schema: shown(input.schema) };
}

/** Returns, for each variable, the first argument or input field that uses it, including those in fragments. */
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

function leafReader<From>({ schema, expected }: Leaf, convert: (value: From) => unknown): Reader<From> {
  return {
    schema,
    read(value, at, faults) {
      const read = convert(value);
      if (read === undefined) faults.add(at, `expected ${expected}`);
      return read;
    },
  };
}

// Reads JSON values of a body.

type JsonPlace = { readonly report: ReportFault; readonly inside: readonly string[]; readonly bounds: Bounds };
type Member = ReturnType<typeof absenceOf> & { readonly field: string; readonly input: JsonInput };

const NO_JSON: JsonInput = { schema: {}, shape: 'skipped', read: () => undefined };

/**
 * Returns the requirements for a field or argument besides its type: the bounds that it declares, and core's rule for
 * its name. For example, the items of `labels` have the form `key=value`, and there are at most LABELS_PER_FILTER of
 * them. The extension `rule` selects another rule than the name would. Other extensions are ignored, because Pothos
 * stores objects and functions of its own there.
 */
function boundsOf(use: Pick<Use, 'name' | 'extensions'> | undefined): Bounds {
  if (use === undefined) return {};
  const { minimum, maximum, rule = use.name } = use.extensions;
  return {
    rule: ruleOf(String(rule)),
    ...(typeof minimum === 'number' && { minimum }),
    ...(typeof maximum === 'number' && { maximum }),
  };
}

/**
 * Returns the reader of a JSON value of this type: members have names in snake_case, enums are wire words, and opaque
 * JSON stays unchanged.
 */
function jsonInput(type: GraphQLInputType, place: JsonPlace): JsonInput {
  if (isNonNullType(type)) return jsonInput(type.ofType, place);
  if (isListType(type)) return jsonList(jsonInput(type.ofType, place), place.bounds);
  if (isInputObjectType(type)) return objectInput(type, place);
  if (isScalarType(type) || isEnumType(type)) {
    const leaf = leafOf(type, place.bounds);
    if (leaf !== null) return { ...leafReader(leaf, leaf.fromJson), shape: leaf.shape };
  }
  place.report(`the type ${String(type)} has no JSON form`);
  return NO_JSON;
}

/** Creates the reader of a list. As in GraphQL, a single value is read as a list with one item. */
function jsonList(item: JsonInput, { rule }: Bounds): JsonInput {
  const several: JsonSchema = { type: 'array', items: item.schema, ...rule?.list };
  return {
    schema: { anyOf: [several, item.schema] },
    shape: { item: item.shape },
    read(value, at, faults) {
      if (!Array.isArray(value)) return [item.read(value, at, faults)];
      return value.map((one: unknown, index) => item.read(one, `${at}[${index}]`, faults));
    },
  };
}

function objectInput(type: GraphQLInputObjectType, place: JsonPlace): JsonInput {
  if (place.inside.includes(type.name)) {
    place.report(`the input type ${type.name} contains itself`);
    return NO_JSON;
  }
  const inside = [...place.inside, type.name];
  const members = new Map<string, Member>();
  for (const field of Object.values(type.getFields())) {
    const built = jsonInput(field.type, { ...place, inside, bounds: boundsOf(field) });
    const { description } = field;
    const input = description ? { ...built, schema: { ...built.schema, description } } : built;
    members.set(snakeCase(field.name), { field: field.name, input, ...absenceOf(field) });
  }
  const shapes = new Map([...members].map(([name, { input }]) => [name, input.shape]));
  return {
    schema: named(type.name, objectSchema(members)),
    shape: { members: shapes, others: 'plain' },
    read: (value, at, faults) => readMembers(members, { value, at }, faults),
  };
}

function objectSchema(members: ReadonlyMap<string, Member>): JsonSchema {
  const required = [...members].filter(([, member]) => member.required).map(([name]) => name);
  const properties = Object.fromEntries(
    [...members].map(([name, { input, required: needed }]) => [name, needed ? input.schema : orNull(input.schema)]),
  );
  return { type: 'object', properties, ...(required.length > 0 && { required }), additionalProperties: false };
}

function readMembers(
  members: ReadonlyMap<string, Member>,
  { value, at }: { readonly value: unknown; readonly at: string },
  faults: Faults,
): unknown {
  if (!isRecord(value)) return faults.add(at, 'expected a JSON object');
  const inside = (name: string) => (at === '' ? name : `${at}.${name}`);
  const read: Record<string, unknown> = {};
  for (const name of Object.keys(value)) {
    if (!members.has(name)) faults.add(inside(name), 'unknown member');
  }
  for (const [name, { field, required, preset, input }] of members) {
    // A null member counts as absent, so its default applies.
    const given = Object.hasOwn(value, name) ? (value[name] ?? undefined) : undefined;
    if (given !== undefined) read[field] = input.read(given, inside(name), faults);
    else if (preset !== undefined) read[field] = preset;
    else if (required) faults.add(inside(name), 'required');
  }
  return read;
}

// Reads texts of paths and queries.

const NO_TEXT: TextInput = { schema: {}, list: false, read: () => undefined };

/**
 * Returns the reader of a text of this type: a scalar, an enum as its wire word, or a list of either, separated by
 * commas.
 */
function textInput(type: GraphQLInputType, bounds: Bounds, report: ReportFault): TextInput {
  if (isNonNullType(type)) return textInput(type.ofType, bounds, report);
  if (isListType(type)) return textList(textInput(type.ofType, bounds, report), bounds);
  if (isScalarType(type) || isEnumType(type)) {
    const leaf = leafOf(type, bounds);
    if (leaf?.fromText) return { ...leafReader(leaf, leaf.fromText), list: false };
  }
  report(`the type ${String(type)} has no form in a path or a query`);
  return NO_TEXT;
}

/**
 * Returns the decoded pairs of a query. A name without `=` has an empty value. Reports pairs that cannot be decoded.
 */
export function* queryPairs(query: string, faults: Faults): Generator<readonly [name: string, value: string]> {
  for (const part of query.split('&')) {
    if (part === '') continue;
    const cut = part.indexOf('=');
    const name = decode(cut < 0 ? part : part.slice(0, cut), true);
    const value = decode(cut < 0 ? '' : part.slice(cut + 1), true);
    if (name === null || value === null) faults.add(name ?? part, 'not valid percent-encoding');
    else yield [name, value];
  }
}

/** Decodes percent-encoding. Null if the text is not valid percent-encoded UTF-8. */
export function decode(text: string, plusIsSpace = false): string | null {
  const spaced = plusIsSpace ? text.replaceAll('+', ' ') : text;
  if (!spaced.includes('%')) return spaced;
  try {
    return decodeURIComponent(spaced);
  } catch {
    return null;
  }
}

function textList(item: TextInput, { rule }: Bounds): TextInput {
  return {
    schema: { type: 'array', items: item.schema, minItems: 1, ...rule?.list },
    list: true,
    read: (raw, at, faults) => raw.split(',').map((one) => item.read(one, at, faults)),
  };
}

/**
 * The maximum number of faults in one answer. The first 32 explain even a request with thousands of faults well enough.
 */
const MOST = 32;
/** The maximum number of characters of a name in a fault. Unknown names come from the request and may be long. */
const NAME_CHARS = 64;

export function collectFaults(): Faults {
  const list: InputError[] = [];
  return {
    list,
    add(parameter, detail) {
      if (list.length < MOST) list.push({ parameter: shorten(parameter) || 'body', detail });
    },
  };
}

function shorten(name: string): string {
  return name.length > NAME_CHARS ? `${name.slice(0, NAME_CHARS).toWellFormed()}...` : name.toWellFormed();
}
