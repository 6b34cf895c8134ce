/** Generates the OpenAPI document from the compiled routes. Loaded when the document is first requested. */
import { accessWords } from '../access.ts';
import type { Route } from '../compile.ts';
import type { Input } from '../inputs.ts';
import { componentOf, named, type JsonSchema } from '../named.ts';
import { BODY, createComponents, shareParameters, type Parameter } from './components.ts';
import type { Described } from './described.ts';
import type { Examples, OperationExample } from './examples.ts';
import { describeResponses, problemComponents, problems } from './responses.ts';

export type OpenApiOptions = {
  readonly title: string;
  readonly version: string;
  readonly basePath: string;
  /** The operations that no document serves. */
  readonly besides: readonly Described[];
  /** Recorded requests and answers of a relay, by operation. */
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
 * Builds the OpenAPI 3.1 document of the routes, generated from the documents that serve them, and of the operations in
 * `besides`. Each schema of a GraphQL type and each parameter of several operations is a component.
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

function describeOther({ operation, problems: statuses, ...other }: Described): Operation {
  const { parameters = [], responses } = operation;
  return { tags: [tagOf(other)], ...operation, parameters, responses: { ...problems(statuses), ...responses } };
}

function describeParameter(input: Input, examples: Examples['parameters']): Parameter {
  const example = Object.hasOwn(examples, input.name) ? examples[input.name] : undefined;
  // The values of an enum serve as its examples.
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
