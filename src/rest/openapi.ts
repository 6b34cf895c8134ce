/** Generates the OpenAPI document from the compiled routes. */
import { ACCESS_WORDS } from './access.ts';
import type { Variant } from './body.ts';
import type { Route } from './compile.ts';
import type { Method } from './directive.ts';
import { takesBody, type Input } from './inputs.ts';
import type { JsonSchema } from './leaf.ts';
import { PROBLEM_SCHEMA, PROBLEM_TYPE } from './problem.ts';

type Responses = Record<string, JsonSchema>;
export type OpenApiOptions = { readonly title: string; readonly version: string; readonly basePath: string };

/** An operation that no document serves, described beside those of the documents. */
export type Described = {
  readonly method: Method;
  readonly path: string;
  /** The OpenAPI operation without what is added to every operation: its tag and its problem responses. */
  readonly operation: JsonSchema & { readonly operationId: string; readonly responses: Responses };
  /** The statuses of its problem responses, including `default`. */
  readonly problems: readonly string[];
  /** Security schemes that only this operation uses. */
  readonly securitySchemes: Readonly<Record<string, JsonSchema>>;
};

const DESCRIPTION =
  'Relays commands between callers and connected clients, keeps the evidence, and shows an operator what is true.';
const LICENSE = { name: 'MIT', identifier: 'MIT' };

type DescribedOperation = { readonly method: Method; readonly path: string; readonly operation: JsonSchema };

/**
 * The OpenAPI 3.1 document of the routes, generated from the documents that serve them, and of the operations in
 * `besides`.
 */
export function describeRoutes(
  routes: readonly Route[],
  about: OpenApiOptions,
  besides: readonly Described[] = [],
): object {
  const operations: readonly DescribedOperation[] = [
    ...routes.map((route) => ({ ...route, operation: describeRoute(route) })),
    ...besides.map((other) => ({ ...other, operation: describeOther(other) })),
  ];
  const paths: Record<string, Record<string, JsonSchema>> = {};
  for (const { method, path, operation } of operations) (paths[path] ??= {})[method.toLowerCase()] = operation;
  return {
    openapi: '3.1.0',
    info: { title: about.title, version: about.version, description: DESCRIPTION, license: LICENSE },
    servers: [{ url: about.basePath || '/' }],
    security: [{ bearer: [] }],
    tags: [...new Set(operations.map(tagOf))]
      .sort()
      .map((name) => ({ name, description: `Everything under /${name}.` })),
    paths,
    components: {
      schemas: { Problem: PROBLEM_SCHEMA },
      responses: { Problem: problemResponse({ $ref: '#/components/schemas/Problem' }, 'Refused or failed.') },
      securitySchemes: Object.assign(
        { bearer: { type: 'http', scheme: 'bearer' } },
        ...besides.map(({ securitySchemes }) => securitySchemes),
      ),
    },
  };
}

/** The first segment of the path. */
function tagOf({ path }: Pick<Route, 'path'>): string {
  return path.split('/')[1] ?? '';
}

function describeRoute(route: Route): JsonSchema {
  const inputs = [...route.inputs.values()];
  return {
    operationId: route.id,
    tags: [tagOf(route)],
    ...(route.summary !== null && { summary: route.summary }),
    description: ACCESS_WORDS[route.access],
    parameters: inputs.filter(({ place }) => place !== 'body').map(describeParameter),
    ...(takesBody(route) && { requestBody: describeBody(route, inputs) }),
    responses: describeResponses(route),
  };
}

function describeParameter(input: Input): JsonSchema {
  return {
    name: input.name,
    in: input.place,
    required: input.required,
    ...(input.description !== null && { description: input.description }),
    ...('list' in input && input.list && { style: input.place === 'path' ? 'simple' : 'form', explode: false }),
    schema: input.schema,
  };
}

function describeBody(route: Route, inputs: readonly Input[]): JsonSchema {
  const members = inputs.filter(({ place }) => place === 'body');
  const whole = route.bodyAs === null ? undefined : route.inputs.get(route.bodyAs);
  const required = members.filter((input) => input.required).map(({ name }) => name);
  const schema = whole?.schema ?? {
    type: 'object',
    properties: Object.fromEntries(members.map((input) => [input.name, describeMember(input)])),
    ...(required.length > 0 && { required }),
    additionalProperties: false,
  };
  return { required: required.length > 0, content: { 'application/json': { schema } } };
}

function describeMember({ schema, description }: Input): JsonSchema {
  return description === null ? schema : { ...schema, description };
}

function describeResponses(route: Route): Responses {
  const { body } = route;
  const responses: Responses = {};
  if (body.variants.length === 0) responses['200'] = success('Found.', [body.schema]);
  else describeVariants(route, responses);
  const refusals = ['400', '401', '403', '404', ...(route.mutates ? ['409', '429'] : []), 'default'];
  return { ...responses, ...problems(refusals) };
}

function problems(statuses: readonly string[]): Responses {
  return Object.fromEntries(statuses.map((status) => [status, { $ref: '#/components/responses/Problem' }]));
}

function describeOther({ operation, problems: statuses, ...other }: Described): JsonSchema {
  return { tags: [tagOf(other)], ...operation, responses: { ...operation.responses, ...problems(statuses) } };
}

function describeVariants({ body: { variants }, waitsBy }: Route, responses: Responses): void {
  const shapesOf = (kind: Variant['kind']) =>
    variants.filter((variant) => variant.kind === kind).map(({ schema }) => schema);
  const invocations = distinct(shapesOf('invocation'));
  const ended = [...invocations, ...distinct(shapesOf('plain'))];
  if (ended.length > 0) responses['200'] = success('Done.', ended);
  if (invocations.length === 0) return;
  responses['202'] = success(
    'The command has not ended: the awaited stage was reached, or the wait ended first.',
    invocations,
  );
  const members = invocations.map((shape) => ({ type: 'object', properties: shape['properties'] }));
  const schema = { allOf: [{ $ref: '#/components/schemas/Problem' }, oneOrAny(members)] };
  const unknown = 'The end of the command is not known, or its deadline passed before it was written to its client.';
  responses['504'] = problemResponse(schema, waitsBy === null ? unknown : `Only with \`${waitsBy}\`: ${unknown}`);
}

function distinct(schemas: readonly JsonSchema[]): readonly JsonSchema[] {
  return [...new Map(schemas.map((schema) => [JSON.stringify(schema), schema])).values()];
}

function success(description: string, schemas: readonly JsonSchema[]): JsonSchema {
  return { description, content: { 'application/json': { schema: oneOrAny(schemas) } } };
}

function oneOrAny(schemas: readonly JsonSchema[]): JsonSchema {
  const [only] = schemas;
  return schemas.length === 1 && only !== undefined ? only : { anyOf: schemas };
}

function problemResponse(schema: JsonSchema, description: string): JsonSchema {
  return { description, content: { [PROBLEM_TYPE]: { schema } } };
}
