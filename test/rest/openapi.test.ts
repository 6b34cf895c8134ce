/** Tests the content of the OpenAPI document. */
import { Validator } from '@seriousme/openapi-schema-validator';
import { expect, test } from 'vitest';
import { startRestRelay } from './kit/rest-server.ts';
import { resolverOf } from './kit/schema-values.ts';
import { startSmall } from './kit/small-schema.ts';

test('the description of the shipped routes is valid OpenAPI 3.1', async () => {
  await using relay = await startRestRelay();
  const { valid, errors } = await new Validator().validate({ ...structuredClone(await relay.handler.openapi()) });
  expect(errors).toBeUndefined();
  expect(valid).toBe(true);
});

test('it survives serialization as JSON, and names every operation once', async () => {
  await using relay = await startRestRelay();
  const openapi = JSON.parse(JSON.stringify(await relay.handler.openapi()));
  expect(openapi).toEqual(await relay.handler.openapi());
  const described = Object.entries<object>(openapi.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  const served = relay.handler.operations.map(({ method, path }) => `${method} ${path}`);
  expect(described.sort()).toEqual(
    [
      ...served,
      ...['GET /healthz', 'GET /metrics', 'GET /openapi.json', 'GET /readyz', 'GET /site-sessions/{session_id}/events'],
      'POST /graphql',
    ].sort(),
  );
});

test('it states bounds, defaults, words, bodies and every status of an invocation', async () => {
  await using relay = await startRestRelay();
  const document: any = await relay.handler.openapi();
  const { paths, components } = document;
  const resolve = resolverOf(document);
  const parameter = (path: string, name: string) =>
    paths[path].get.parameters.map(resolve).find((one: any) => one.name === name);
  expect(resolve(parameter('/connections', 'status').schema)['enum']).toEqual(['connected', 'disconnected', 'stale']);
  expect(parameter('/history/messages', 'kinds')).toMatchObject({
    style: 'form',
    explode: false,
    schema: { type: 'array' },
  });
  const invoke = paths['/connections/{user_id}/{client_id}/actions/{action}'].post;
  const body: any = resolve(invoke.requestBody.content['application/json'].schema);
  expect(Object.keys(body.properties).sort()).toEqual([
    'command_id',
    'connect_within_ms',
    'context_id',
    'instance_id',
    'params',
    'parent_span_id',
    'respond_within_ms',
    'trace_id',
    'wait_for',
  ]);
  expect(body).toMatchObject({
    additionalProperties: false,
    properties: {
      wait_for: { anyOf: [{ $ref: '#/components/schemas/WaitStage' }, { type: 'null' }], default: 'completed' },
      respond_within_ms: { minimum: 1000, maximum: 300_000, default: 30_000 },
      connect_within_ms: { minimum: 0, maximum: 300_000, default: 0 },
    },
  });
  expect(Object.keys(invoke.responses).sort()).toEqual([
    '200',
    '202',
    '400',
    '401',
    '403',
    '404',
    '409',
    '413',
    '415',
    '429',
    '500',
    '503',
    '504',
    'default',
  ]);
  expect(components.securitySchemes.bearer).toEqual({ type: 'http', scheme: 'bearer' });
});

test('a whole body is described by the input type', async () => {
  await using relay = await startSmall();
  const document: any = await relay.handler.openapi();
  const [several, one] = document.paths['/kept'].put.requestBody.content['application/json'].schema.anyOf;
  expect(several).toEqual({ type: 'array', items: one });
  expect(resolverOf(document)(one)).toMatchObject({ required: ['client_id'], additionalProperties: false });
});

test('what several operations share is a component, and nothing is written twice', async () => {
  await using relay = await startRestRelay();
  const document: any = JSON.parse(JSON.stringify(await relay.handler.openapi()));
  const seen = new Map<string, number>();
  const count = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    if ('example' in value && value.example !== null) return count({ ...value, example: null });
    // Types are objects with members. Lists of single items, and schemas that only add bounds to another schema, do not
    // count.
    const isType = 'properties' in value && 'type' in value;
    const isParameter = 'in' in value && 'schema' in value;
    if (isType || isParameter) seen.set(JSON.stringify(value), (seen.get(JSON.stringify(value)) ?? 0) + 1);
    Object.values(value).forEach(count);
  };
  count({ ...document, info: null });
  expect(seen.size).toBeGreaterThan(60);
  expect([...seen].filter(([, times]) => times > 1)).toEqual([]);
  const names = Object.keys(document.components.schemas);
  for (const name of ['ConnectionSnapshot', 'ConnectionSnapshotPage', 'DeliveryRecord', 'Invocation', 'Site', 'UserId'])
    expect(names).toContain(name);
});

test('every status has a component of its own, with the codes of that status', async () => {
  await using relay = await startRestRelay();
  const { paths, components }: any = await relay.handler.openapi();
  const { get } = paths['/users'];
  expect(get.responses['429']).toEqual({ $ref: '#/components/responses/TooManyRequests' });
  const { schema } = components.responses['TooManyRequests'].content['application/problem+json'];
  expect(schema.allOf[1].properties).toEqual({
    status: { const: 429 },
    code: { enum: ['capacity_exceeded', 'queue_full', 'rate_limited', 'share_exceeded'] },
  });
});
