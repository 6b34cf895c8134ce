import { Validator } from '@seriousme/openapi-schema-validator';
import { expect, test } from 'vitest';
import { startRestRelay } from './kit/rest-server.ts';
import { startSmall } from './kit/small-schema.ts';

test('the description of the shipped routes is valid OpenAPI 3.1', async () => {
  await using relay = await startRestRelay();
  const { valid, errors } = await new Validator().validate({ ...structuredClone(relay.handler.openapi) });
  expect(errors).toBeUndefined();
  expect(valid).toBe(true);
});

test('it survives serialization as JSON, and names every operation once', async () => {
  await using relay = await startRestRelay();
  const openapi = JSON.parse(JSON.stringify(relay.handler.openapi));
  expect(openapi).toEqual(relay.handler.openapi);
  const described = Object.entries<object>(openapi.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  const served = relay.handler.operations.map(({ method, path }) => `${method} ${path}`);
  expect(described.sort()).toEqual([...served, 'GET /site-sessions/{session_id}/events'].sort());
});

test('it states bounds, defaults, words, bodies and every status of an invocation', async () => {
  await using relay = await startRestRelay();
  const { paths, components }: any = relay.handler.openapi;
  const status = paths['/connections'].get.parameters.find((one: any) => one.name === 'status');
  expect(status.schema.enum).toEqual(['connected', 'disconnected', 'stale']);
  const kinds = paths['/history/messages'].get.parameters.find((one: any) => one.name === 'kinds');
  expect(kinds).toMatchObject({ style: 'form', explode: false, schema: { type: 'array' } });
  const invoke = paths['/connections/{user_id}/{client_id}/actions/{action}'].post;
  const body = invoke.requestBody.content['application/json'].schema;
  expect(Object.keys(body.properties).sort()).toEqual([
    'command_id',
    'connect_within_ms',
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
      wait_for: { enum: ['admitted', 'acknowledged', 'completed'], default: 'completed' },
      respond_within_ms: { minimum: 1000, maximum: 300_000, default: 30_000 },
      connect_within_ms: { minimum: 0, maximum: 300_000, default: 0 },
    },
  });
  expect(Object.keys(invoke.responses).sort()).toEqual(
    ['200', '202', '400', '401', '403', '404', '409', '429', '504', 'default'].sort(),
  );
  expect(components.securitySchemes.bearer).toEqual({ type: 'http', scheme: 'bearer' });
});

test('a whole body is described by the input type', async () => {
  await using relay = await startSmall();
  const { paths }: any = relay.handler.openapi;
  const [several, one] = paths['/kept'].put.requestBody.content['application/json'].schema.anyOf;
  expect(several).toEqual({ type: 'array', items: one });
  expect(one).toMatchObject({ required: ['client_id'], additionalProperties: false });
});
