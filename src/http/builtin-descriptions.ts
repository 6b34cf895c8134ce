/** The OpenAPI descriptions of the routes outside REST: health, metrics, GraphQL and the description itself. */
import { named } from '../rest/named.ts';
import { problemCodes } from '../rest/problem.ts';
import type { Described } from '../rest/openapi/described.ts';

const OPEN = { security: [] } as const;
const json = (schema: object, example: unknown): object => ({ 'application/json': { schema, example } });
const status = (word: string): object => ({
  type: 'object',
  required: ['status'],
  properties: { status: { const: word } },
});

const READY = {
  type: 'object',
  required: ['status'],
  properties: {
    status: { const: 'ready' },
    full_shares: {
      type: 'array',
      items: { type: 'string' },
      description: 'The shares whose total is used up: users who hold much of one are refused more of it.',
    },
  },
};

const NOT_READY = {
  type: 'object',
  required: ['status', 'code'],
  properties: {
    status: { const: 'not_ready' },
    code: { type: 'string', enum: problemCodes(503) },
    reason: { type: 'string', description: 'What an operator must mend.' },
  },
};

const HEALTH: Described = {
  method: 'GET',
  path: '/healthz',
  operation: {
    ...OPEN,
    operationId: 'Healthz',
    summary: 'Whether the process runs.',
    description: 'Needs no token.',
    responses: { '200': { description: 'It runs.', content: json(status('ok'), { status: 'ok' }) } },
  },
  problems: ['400', '500'],
};

const READINESS: Described = {
  method: 'GET',
  path: '/readyz',
  operation: {
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
  },
  problems: ['400', '500'],
};

const METRICS: Described = {
  method: 'GET',
  path: '/metrics',
  operation: {
    operationId: 'Metrics',
    summary: 'Metrics for Prometheus.',
    description: 'Administrators, and the holder of the metrics token.',
    responses: {
      '200': {
        description: 'The text format of Prometheus, or OpenMetrics where the request asks for it.',
        content: {
          'text/plain': { schema: { type: 'string' } },
          'application/openmetrics-text': { schema: { type: 'string' } },
        },
      },
    },
  },
  problems: ['400', '401', '403', '429', '500'],
};

const DESCRIPTION: Described = {
  method: 'GET',
  path: '/openapi.json',
  operation: {
    ...OPEN,
    operationId: 'OpenApi',
    summary: 'This document.',
    description:
      'Needs no token. It has an `ETag`, and is compressed with Brotli or gzip where the request accepts that.',
    responses: {
      '200': {
        description: 'The document.',
        headers: { ETag: { schema: { type: 'string' } } },
        content: { 'application/json': { schema: { type: 'object' } } },
      },
      '304': { description: 'The `ETag` in `If-None-Match` is still that of the document.' },
    },
  },
  problems: ['400', '500'],
};

const GRAPHQL_RESULT = named('GraphqlResult', {
  type: 'object',
  properties: {
    data: { description: 'The result; null or absent if the request failed as a whole.' },
    errors: {
      type: 'array',
      items: {
        type: 'object',
        required: ['message'],
        properties: {
          message: { type: 'string' },
          extensions: {
            type: 'object',
            properties: { code: { type: 'string', description: 'A code of the one table of codes.' } },
          },
        },
      },
    },
  },
});

const graphqlContent = {
  'application/json': { schema: GRAPHQL_RESULT, example: { data: { viewer: { kind: 'USER' } } } },
  'application/graphql-response+json': { schema: GRAPHQL_RESULT },
};
const refusedStatuses = ['400', '401', '403', '406', '413', '415', '429', '500', '503'];

const GRAPHQL: Described = {
  method: 'POST',
  path: '/graphql',
  operation: {
    operationId: 'GraphQL',
    summary: 'Executes one GraphQL operation.',
    description: 'Everyone with a valid token. Failures are GraphQL errors and not problem documents.',
    requestBody: {
      required: true,
      content: json(
        {
          type: 'object',
          required: ['query'],
          properties: {
            query: { type: 'string', minLength: 1 },
            operationName: { type: ['string', 'null'] },
            variables: { type: ['object', 'null'] },
            extensions: { type: ['object', 'null'] },
          },
        },
        { query: '{ viewer { kind } }' },
      ),
    },
    responses: {
      '200': { description: 'The result, which may hold errors.', content: graphqlContent },
      ...Object.fromEntries(
        refusedStatuses.map((code) => [code, { description: 'Refused as a whole.', content: graphqlContent }]),
      ),
    },
  },
  problems: [],
};

export const BUILTIN_DESCRIPTIONS: readonly Described[] = [HEALTH, READINESS, METRICS, DESCRIPTION, GRAPHQL];
