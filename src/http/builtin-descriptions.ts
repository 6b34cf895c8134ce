/** The OpenAPI descriptions of the routes outside REST: health, metrics, GraphQL and the description itself. */
import { named, type JsonSchema } from '../rest/forms.ts';
import type { Described } from '../rest/openapi.ts';
import { problemCodes } from '../rest/problem.ts';

const OPEN = { security: [] } as const;
const TEXT_SCHEMA = { type: 'string' } as const;

function object(properties: object, required?: readonly string[]): JsonSchema {
  return { type: 'object', ...(required && { required }), properties };
}

function json(schema: object, example: unknown): JsonSchema {
  return { 'application/json': { schema, example } };
}

const HERE = 'Only for a program on the machine of the relay, and not through a proxy.';
const RUNS = object(
  {
    status: { const: 'ok' },
    version: { ...TEXT_SCHEMA, description: `The version of the relay. ${HERE}` },
    node_id: { ...TEXT_SCHEMA, description: `The id of the node. ${HERE}` },
    pid: { type: 'integer', description: `The process of the relay. ${HERE}` },
  },
  ['status'],
);
const FULL_SHARES = {
  type: 'array',
  items: TEXT_SCHEMA,
  description: 'The shares whose total is used up: users who hold much of one are refused more of it.',
};
const STORE_LOST = {
  const: true,
  description: 'Records were missing when the relay started, so commands that had not ended ended as unknown.',
};
const POLICY_FAULT = {
  const: true,
  description: 'The policy file has changed and is not used: the policy before it stays in use.',
};
const READY = object(
  { status: { const: 'ready' }, full_shares: FULL_SHARES, store_lost: STORE_LOST, policy_fault: POLICY_FAULT },
  ['status'],
);
const NOT_READY = object(
  {
    status: { const: 'not_ready' },
    code: { type: 'string', enum: problemCodes(503) },
    reason: { type: 'string', description: 'What an operator must mend.' },
  },
  ['status', 'code'],
);

const CODE = { type: 'string', description: 'A code of the one table of codes.' };
const GRAPHQL_ERROR = object({ message: TEXT_SCHEMA, extensions: object({ code: CODE }) }, ['message']);
const GRAPHQL_RESULT = named(
  'GraphqlResult',
  object({
    data: { description: 'The result; null or absent if the request failed as a whole.' },
    errors: { type: 'array', items: GRAPHQL_ERROR },
  }),
);
const GRAPHQL_REQUEST = object(
  {
    query: { type: 'string', minLength: 1 },
    operationName: { type: ['string', 'null'] },
    variables: { type: ['object', 'null'] },
    extensions: { type: ['object', 'null'] },
  },
  ['query'],
);
const GRAPHQL_CONTENT = {
  ...json(GRAPHQL_RESULT, { data: { viewer: { kind: 'USER' } } }),
  'application/graphql-response+json': { schema: GRAPHQL_RESULT },
};
const GRAPHQL_REFUSALS = ['400', '401', '403', '406', '413', '415', '429', '500', '503'];

export const BUILTIN_DESCRIPTIONS: readonly Described[] = [
  {
    method: 'GET',
    path: '/healthz',
    ...OPEN,
    operationId: 'Healthz',
    summary: 'Whether the process runs.',
    description: 'Needs no token.',
    responses: {
      '200': {
        description: 'It runs.',
        content: json(RUNS, { status: 'ok' }),
      },
    },
    problems: ['400', '500'],
  },
  {
    method: 'GET',
    path: '/readyz',
    ...OPEN,
    operationId: 'Readyz',
    summary: 'Whether the node accepts new links and commands.',
    description: 'Needs no token.',
    responses: {
      '200': { description: 'It is ready.', content: json(READY, { status: 'ready' }) },
      '503': {
        description: 'It is not ready.',
        headers: { 'Retry-After': { schema: { type: 'integer' } } },
        content: json(NOT_READY, { status: 'not_ready', code: 'draining' }),
      },
    },
    problems: ['400', '500'],
  },
  {
    method: 'GET',
    path: '/metrics',
    operationId: 'Metrics',
    summary: 'Metrics for Prometheus.',
    description: 'Administrators, and the holder of the metrics token.',
    responses: {
      '200': {
        description: 'The text format of Prometheus, or OpenMetrics where the request asks for it.',
        content: { 'text/plain': { schema: TEXT_SCHEMA }, 'application/openmetrics-text': { schema: TEXT_SCHEMA } },
      },
    },
    problems: ['400', '401', '403', '429', '500'],
  },
  {
    method: 'GET',
    path: '/openapi.json',
    ...OPEN,
    operationId: 'OpenApi',
    summary: 'This document.',
    description:
      'Needs no token. It has an `ETag`, and is compressed with Brotli or gzip where the request accepts that.',
    responses: {
      '200': {
        description: 'The document.',
        headers: { ETag: { schema: TEXT_SCHEMA } },
        content: { 'application/json': { schema: { type: 'object' } } },
      },
      '304': { description: 'The `ETag` in `If-None-Match` is still that of the document.' },
    },
    problems: ['400', '500'],
  },
  {
    method: 'POST',
    path: '/graphql',
    operationId: 'GraphQL',
    summary: 'Executes one GraphQL operation.',
    description: 'Everyone with a valid token. Failures are GraphQL errors and not problem documents.',
    requestBody: { required: true, content: json(GRAPHQL_REQUEST, { query: '{ viewer { kind } }' }) },
    responses: {
      '200': { description: 'The result, which may hold errors.', content: GRAPHQL_CONTENT },
      ...Object.fromEntries(
        GRAPHQL_REFUSALS.map((code) => [code, { description: 'Refused as a whole.', content: GRAPHQL_CONTENT }]),
      ),
    },
    problems: [],
  },
];
