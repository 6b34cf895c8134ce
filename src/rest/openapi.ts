/**
 * Generates the OpenAPI document from the compiled routes. The module is loaded when the document is first requested.
 */
import { readFileSync } from 'node:fs';
import type { Code } from '../core/errors.ts';
import type { Variant } from './response-body.ts';
import { accessWords, type Route } from './compile.ts';
import { componentOf, named, type JsonSchema } from './forms.ts';
import { takesBody, type Input } from './inputs.ts';
import { PROBLEM_SCHEMA, PROBLEM_TYPE, problem, problemCodes } from './problem.ts';

type OpenApiOptions = {
  readonly title: string;
  readonly version: string;
  readonly basePath: string;
  /** Operations that are not REST routes but are described in the document. */
  readonly besides: readonly Described[];
  /** Recorded requests to a relay with their answers, by operation. */
  readonly examples: Examples;
};

/** An OpenAPI 3.1 document. */
export type OpenApiDocument = JsonSchema;

const DESCRIPTION =
  'Relays commands between callers and connected clients, keeps the evidence, and shows an operator what is true.';
const LICENSE = { name: 'MIT', identifier: 'MIT' };

type Operation = JsonSchema & {
  readonly operationId: string;
  readonly parameters: readonly Parameter[];
  readonly responses: Readonly<Record<string, JsonSchema>>;
};
type PathOperation = { readonly method: string; readonly path: string; readonly operation: Operation };

/**
 * Builds the OpenAPI 3.1 document of the routes and of the operations in `besides`. Each schema of a GraphQL type, and
 * each parameter that several operations have, becomes a component.
 */
export function describeRoutes(routes: readonly Route[], options: OpenApiOptions): OpenApiDocument {
  const { title, version, basePath, besides, examples } = options;
  const components = createComponents();
  const operations: readonly PathOperation[] = [
    ...routes.map((route) => ({ ...route, operation: describeRoute(route, examples) })),
    ...besides.map((other) => ({ ...other, operation: describeOther(other) })),
  ].map(({ method, path, operation }) => ({
    method,
    path,
    operation: components.resolve(operation, operation.operationId),
  }));
  const shared = shareParameters(
    operations.flatMap(({ operation, path }) =>
      operation.parameters.map((parameter) => ({ parameter, tag: tagOf({ path }) })),
    ),
  );
  const paths: Record<string, Record<string, JsonSchema>> = {};
  for (const { method, path, operation } of operations) {
    const parameters = operation.parameters.map(shared.refer);
    (paths[path] ??= {})[method.toLowerCase()] = { ...operation, ...(parameters.length > 0 && { parameters }) };
  }
  const statuses = new Set(operations.flatMap(({ operation }) => Object.keys(operation.responses)));
  const responses = components.resolve(problemComponents(statuses), 'Problems');
  return {
    openapi: '3.1.1',
    info: { title, version, description: DESCRIPTION, license: LICENSE },
    servers: [{ url: basePath || '/' }],
    security: [{ bearer: [] }],
    tags: tagsOf(operations),
    paths,
    components: {
      schemas: sorted(components.schemas),
      responses,
      parameters: sorted(shared.parameters),
      securitySchemes: Object.assign(
        { bearer: { type: 'http', scheme: 'bearer' } },
        ...besides.map(({ securitySchemes }) => securitySchemes),
      ),
    },
  };
}

function tagsOf(operations: readonly PathOperation[]): readonly JsonSchema[] {
  const names = [...new Set(operations.map(({ operation }) => String(operation['tags'])))];
  return names.sort().map((name) => ({ name, description: `Everything under /${name}.` }));
}

/** Returns the tag of an operation: the first segment of its path. */
function tagOf({ path }: { readonly path: string }): string {
  return path.split('/')[1] ?? '';
}

function describeRoute(route: Route, { operations, parameters }: Examples): Operation {
  const inputs = [...route.inputs.values()];
  const example = operations[route.id];
  return {
    operationId: route.id,
    tags: [tagOf(route)],
    ...(route.summary !== null && { summary: route.summary }),
    description: accessWords(route),
    parameters: inputs.filter(({ place }) => place !== 'body').map((input) => describeParameter(input, parameters)),
    ...(inputs.some(({ place }) => place === 'body') && { requestBody: describeBody(route, inputs, example) }),
    responses: describeResponses(route, example?.responses ?? {}),
  };
}

function describeOther(other: Described): Operation {
  const { method: _method, path, problems: statuses, securitySchemes: _schemes, ...operation } = other;
  const responses = { ...problems(statuses), ...operation.responses };
  return { tags: [tagOf({ path })], ...operation, parameters: operation.parameters ?? [], responses };
}

function describeParameter(input: Input, examples: Examples['parameters']): Parameter {
  const example = Object.hasOwn(examples, input.name) ? examples[input.name] : undefined;
  // An enum needs no example, because its values are listed in the schema.
  const shown = example !== undefined && !isEnum(input.schema);
  return {
    name: input.name,
    in: input.place,
    required: input.required,
    ...(input.description !== null && { description: input.description }),
    ...('list' in input && input.list && { style: input.place === 'path' ? 'simple' : 'form', explode: false }),
    schema: input.schema,
    ...(shown && { example }),
  };
}

function isEnum(schema: JsonSchema): boolean {
  return Array.isArray((componentOf(schema)?.schema ?? schema)['enum']);
}

function describeBody(route: Route, inputs: readonly Input[], example: OperationExample | undefined): JsonSchema {
  const members = inputs.filter(({ place }) => place === 'body');
  const whole = route.bodyAs === null ? undefined : route.inputs.get(route.bodyAs);
  const required = members.filter((input) => input.required).map(({ name }) => name);
  const schema =
    whole?.schema ??
    named(`${route.id}${BODY}`, {
      type: 'object',
      properties: Object.fromEntries(members.map((input) => [input.name, describeMember(input)])),
      ...(required.length > 0 && { required }),
      additionalProperties: false,
    });
  const shown = example?.requestBody !== undefined && { example: example.requestBody };
  return { required: required.length > 0, content: { 'application/json': { schema, ...shown } } };
}

function describeMember({ schema, description }: Input): JsonSchema {
  return description === null ? schema : { ...schema, description };
}

function sorted<T>(record: Readonly<Record<string, T>>): Readonly<Record<string, T>> {
  return Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)));
}

// Collects the components of the document: schemas and parameters that it defines once and refers to.

/** A parameter object of OpenAPI. */
type Parameter = JsonSchema & { readonly name: string; readonly in: string };

/** The suffix of the component names of request bodies. */
const BODY = 'Body';

/**
 * Creates `resolve`, which returns a value in which each named schema is replaced by a `$ref`, and adds these schemas
 * to `schemas`. `owner`: the name of the part of the document that uses the value. If a name already belongs to another
 * schema, the component is called `<name>Of<owner>`.
 */
function createComponents() {
  const schemas: Record<string, JsonSchema> = {};
  const add = (name: string, schema: JsonSchema, owner: string): string => {
    // Body components are named after an operation. If another operation has the same body, they share one component.
    const twin =
      name.endsWith(BODY) && Object.keys(schemas).find((one) => one.endsWith(BODY) && isSame(schemas[one], schema));
    if (twin) return twin;
    const candidates = [name, `${name}Of${owner}`];
    const free = candidates.find((one) => !schemas[one] || isSame(schemas[one], schema));
    if (free === undefined) throw new Error(`The component ${name} has three forms; the third is in ${owner}.`);
    schemas[free] = schema;
    return free;
  };
  const resolve = (value: unknown, owner: string): unknown => {
    if (Array.isArray(value)) return value.map((one: unknown) => resolve(one, owner));
    if (!isSchema(value)) return value;
    const rest = Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, resolve(inner, owner)]));
    const component = componentOf(value);
    if (!component) return rest;
    const whole = resolve(component.schema, owner);
    return { $ref: `#/components/schemas/${add(component.name, isSchema(whole) ? whole : {}, owner)}`, ...rest };
  };
  // The cast is safe, because only named schemas are replaced, and by other schemas.
  return { schemas, resolve: <T>(value: T, owner: string): T => resolve(value, owner) as T };
}

/** A parameter with the tag of one operation that has it. */
type UsedParameter = { readonly parameter: Parameter; readonly tag: string };

/** Finds the parameters that occur more than once with equal descriptions, and names a component for each. */
function shareParameters(all: readonly UsedParameter[]) {
  const groups = Map.groupBy(all, ({ parameter }) => JSON.stringify(parameter));
  const shared = [...groups].filter(([, uses]) => uses.length > 1).sort(([, a], [, b]) => b.length - a.length);
  const names = new Map<string, string>();
  const parameters: Record<string, Parameter> = {};
  for (const [key, [first]] of shared) {
    if (!first) continue;
    const name = freeName(first, parameters);
    names.set(key, name);
    parameters[name] = first.parameter;
  }
  return {
    parameters,
    /** Returns a `$ref` if the parameter is shared, otherwise the parameter itself. */
    refer(parameter: Parameter): JsonSchema {
      const name = names.get(JSON.stringify(parameter));
      return name === undefined ? parameter : { $ref: `#/components/parameters/${name}` };
    },
  };
}

/**
 * Returns a component name: `ClientIdInPath` for a path parameter, `ClientId` for any other, and `ClientIdOfContexts`
 * if that name is taken.
 */
function freeName({ parameter, tag }: UsedParameter, taken: Readonly<Record<string, unknown>>): string {
  const name = capitalized(parameter.name) + (parameter.in === 'path' ? 'InPath' : '');
  const candidates = [name, `${name}Of${capitalized(tag)}`];
  const free = candidates.find((one) => !(one in taken));
  if (free === undefined) throw new Error(`The parameter ${name} has several forms in ${tag}.`);
  return free;
}

function capitalized(name: string): string {
  const words = name.split(/[_-]/).map((word) => word.charAt(0).toUpperCase() + word.slice(1));
  return words.join('');
}

function isSchema(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null;
}

function isSame(one: JsonSchema | undefined, other: JsonSchema): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** An operation that is not a REST route, for the OpenAPI document. */
export type Described = JsonSchema & {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly operationId: string;
  readonly parameters?: readonly Parameter[];
  readonly responses: Readonly<Record<string, JsonSchema>>;
  /** The statuses with which it answers with a problem. */
  readonly problems: readonly string[];
  /** The security schemes that only this operation uses. */
  readonly securitySchemes?: Readonly<Record<string, JsonSchema>>;
};

/** A request to an operation, with the answers of a relay by status. */
type OperationExample = {
  readonly requestBody?: unknown;
  readonly responses: Readonly<Record<string, unknown>>;
};

export type Examples = {
  /** An example value for each parameter, by wire name. */
  readonly parameters: Readonly<Record<string, unknown>>;
  /** The example of each operation, by its operation id. */
  readonly operations: Readonly<Record<string, OperationExample>>;
};

/** No examples, for documents that do not ship with callboard. */
export const NO_EXAMPLES: Examples = { parameters: {}, operations: {} };

/** Reads the examples that ship with callboard. `scripts/docs/record-examples.ts` recorded them from a relay. */
export function readExamples(): Examples {
  return JSON.parse(readFileSync(new URL('../../generated/openapi-examples.json', import.meta.url), 'utf8'));
}

// Describes the responses of routes: for each status the schema and examples.

type Responses = Readonly<Record<string, JsonSchema>>;

type ProblemStatus = { readonly name: string; readonly says: string; readonly example: readonly [Code, string] };

const RETRY_AFTER = {
  'Retry-After': { description: 'Seconds to wait.', schema: { type: 'integer', minimum: 1 } },
};

/** The problem responses, by status. Each becomes a component of the document. */
const PROBLEMS: Readonly<Record<string, ProblemStatus>> = {
  400: {
    name: 'BadRequest',
    says: 'An input is missing, unknown or invalid; `errors` names each.',
    example: ['invalid_argument', 'limit: expected an integer, 1 to 1000'],
  },
  401: {
    name: 'Unauthorized',
    says: 'The token is missing, invalid or expired.',
    example: ['unauthenticated', 'A bearer token is needed.'],
  },
  403: {
    name: 'Forbidden',
    says: 'The token, a rule of the policy or a setting of the relay does not allow this.',
    example: ['forbidden', 'This path is for administrators only.'],
  },
  404: {
    name: 'NotFound',
    says: 'There is no such thing, or it belongs to another user.',
    example: ['not_found', 'There is no such thing, or it is not yours.'],
  },
  409: {
    name: 'Conflict',
    says: 'The state of the target does not allow this, or several targets fit the request.',
    example: ['not_connected', 'The client is not connected.'],
  },
  413: {
    name: 'PayloadTooLarge',
    says: 'The body or a payload is too large.',
    example: ['payload_too_large', 'A body may have at most 1048576 bytes.'],
  },
  415: {
    name: 'UnsupportedMediaType',
    says: 'The body is not JSON in UTF-8, or it is compressed.',
    example: ['unsupported_media_type', 'A body must be application/json in UTF-8, not compressed.'],
  },
  429: {
    name: 'TooManyRequests',
    says: 'A limit on rate, capacity or a share is reached.',
    example: ['rate_limited', 'Too many failed tokens from this address.'],
  },
  500: {
    name: 'InternalError',
    says: 'The relay failed; `id` is in its log.',
    example: ['internal', 'The relay failed; its log has the cause under the id 7c7bd5a4.'],
  },
  501: {
    name: 'NotSupported',
    says: 'The store of this deployment cannot do it.',
    example: ['not_supported', 'The store of this deployment has no pauses. A relay alone, and owners, have them.'],
  },
  503: {
    name: 'Unavailable',
    says: 'The relay cannot do this now: its store does not answer, it is full, or the node is draining.',
    example: ['draining', 'This node admits no new commands.'],
  },
};

/** The component for those statuses that only the HTTP server itself sends, such as 408 and 431. */
const OTHER_PROBLEM = 'OtherProblem';

/** Returns the response components for these statuses, to which `problems` refers. */
function problemComponents(statuses: ReadonlySet<string>): Responses {
  const used = Object.entries(PROBLEMS).filter(([status]) => statuses.has(status));
  return {
    ...Object.fromEntries(used.map(([status, about]) => [about.name, problemComponent(Number(status), about)])),
    [OTHER_PROBLEM]: problemResponse('The HTTP server refused the request.', { schema: PROBLEM_SCHEMA }),
  };
}

function problemComponent(status: number, { says, example: [code, detail] }: ProblemStatus): JsonSchema {
  const own = { properties: { status: { const: status }, code: { enum: problemCodes(status) } } };
  const { body } = problem({ code, detail });
  return {
    ...problemResponse(says, { schema: { allOf: [PROBLEM_SCHEMA, own] }, example: body }),
    ...((status === 429 || status === 503) && { headers: RETRY_AFTER }),
    ...(status === 401 && { headers: { 'WWW-Authenticate': { schema: { const: 'Bearer' } } } }),
  };
}

/** Returns references to the problem responses of these statuses, and to that of the HTTP server. */
function problems(statuses: readonly string[]): Responses {
  const refer = (name: string): JsonSchema => ({ $ref: `#/components/responses/${name}` });
  const listed = statuses.map((status) => [status, refer(PROBLEMS[status]?.name ?? OTHER_PROBLEM)]);
  return { ...Object.fromEntries(listed), default: refer(OTHER_PROBLEM) };
}

/** Returns those statuses in PROBLEMS with which the route may answer. */
function problemStatuses(route: Route): readonly string[] {
  const missing = route.mutates || route.body.nullable || namesSomething(route);
  const invokes = route.body.variants.some(({ kind }) => kind === 'invocation');
  return [
    ...['400', '401', '403'],
    ...(missing ? ['404'] : []),
    ...(route.mutates || mayBeAmbiguous(route) ? ['409'] : []),
    ...(takesBody(route) ? ['413', '415'] : []),
    ...['429', '500'],
    ...(route.mutates && !invokes ? ['501'] : []),
    '503',
  ];
}

const INVOCATION = 'An admitted invocation, as its caller sees it. With its ids the command can be awaited again.';

/**
 * Whether the path names something that several clients may have, so that a parameter must say which client is meant.
 */
function mayBeAmbiguous({ path, inputs }: Route): boolean {
  const client = [...inputs.values()].some(({ goesInto }) => goesInto === 'clientId');
  return client && path.includes('{') && !path.includes('{client_id}');
}

/** Whether a request may name something that does not exist or that the requester may not see. */
function namesSomething({ path, access, inputs }: Route): boolean {
  const targets = [...inputs.values()].map(({ goesInto }) => goesInto);
  if (path.includes('{') || targets.includes('stream')) return true;
  return access !== 'ADMIN' && (targets.includes('userId') || targets.includes('owner'));
}

/** Returns the responses of a route. `examples`: an example answer for each status. */
function describeResponses(route: Route, examples: Readonly<Record<string, unknown>>): Responses {
  const successes =
    route.body.variants.length === 0 ? { '200': success('Found.', [route.body.schema]) } : describeVariants(route);
  const shown = Object.entries(successes).map(([status, response]) => [
    status,
    withExample(response, examples[status]),
  ]);
  const responses: Responses = { ...Object.fromEntries(shown), ...problems(problemStatuses(route)) };
  return route.streams ? { ...responses, '200': withEvents(responses['200']) } : responses;
}

function describeVariants({ body: { variants }, waitsBy }: Route): Responses {
  const shapesOf = (kind: Variant['kind']) =>
    variants.filter((variant) => variant.kind === kind).map(({ schema }) => schema);
  const [members] = shapesOf('invocation').map((schema) => componentOf(schema)?.schema ?? schema);
  // Every type of invocation has the same members.
  const invocation = members && named('Invocation', { ...members, description: INVOCATION });
  const ended = [...(invocation ? [invocation] : []), ...shapesOf('plain')];
  const done = ended.length > 0 ? { '200': success('Done.', ended) } : {};
  const created = shapesOf('created');
  if (created.length > 0) return { ...done, '201': success('Created.', created) };
  if (!invocation) return done;
  const pending = 'The command has not ended: the awaited stage was reached, or the wait ended first.';
  const unknown = 'The end of the command is not known, or its deadline passed before it was written to its client.';
  const schema = named('CommandProblem', {
    description: 'A problem about a command, with the members of the command.',
    allOf: [
      PROBLEM_SCHEMA,
      { properties: { status: { const: 504 }, code: { enum: problemCodes(504) } } },
      { properties: members['properties'] },
    ],
  });
  return {
    ...done,
    '202': success(pending, [invocation]),
    '504': problemResponse(waitsBy === null ? unknown : `Only with \`${waitsBy}\`: ${unknown}`, { schema }),
  };
}

function success(description: string, schemas: readonly JsonSchema[]): JsonSchema {
  const [only] = schemas;
  const schema = schemas.length === 1 && only !== undefined ? only : { anyOf: schemas };
  return { description, content: { 'application/json': { schema } } };
}

function problemResponse(description: string, content: JsonSchema): JsonSchema {
  return { description, content: { [PROBLEM_TYPE]: content } };
}

const EVENTS =
  'With `Accept: text/event-stream`, once the wait begins: `admitted` with the id of the command, `progress` for each report of the client (the id of the event is the number of the report; a gap means that reports are missing), and `answer` with the `status` and the `body` of the response that it replaces.';

/** Adds the event stream as a second content type to the response of a call. */
function withEvents(response: JsonSchema = {}): JsonSchema {
  const content = {
    ...(response['content'] ?? {}),
    'text/event-stream': { schema: { type: 'string', description: EVENTS } },
  };
  return { ...response, content };
}

function withExample(response: JsonSchema, example: unknown): JsonSchema {
  const [[type = '', media] = []] = Object.entries(response['content'] ?? {});
  return example === undefined ? response : { ...response, content: { [type]: { ...media, example } } };
}
