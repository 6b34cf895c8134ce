/** Tests that the examples of the OpenAPI document are what a relay answers. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startHttpRelay, type HttpRelay } from '../http/kit/http-relay.ts';
import { conformanceOf, OTHER_OPERATIONS } from './kit/conformance.ts';
import { resolverOf, type Schema } from './kit/schema-values.ts';

let relay: HttpRelay;
let document: Schema;
let faultsOf: (schema: Schema, value: unknown) => string | null;
beforeAll(async () => {
  relay = await startHttpRelay();
  document = (await relay.ask('/openapi.json')).json ?? {};
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  formats.default(ajv);
  ajv.addSchema({ $id: 'openapi', ...document });
  faultsOf = (schema, value) => {
    const whole = JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"openapi#/'));
    return ajv.validate(whole, value) ? null : ajv.errorsText();
  };
});
afterAll(() => relay[Symbol.asyncDispose]());

/** Returns every object of the document that has an example and a schema, with its path in the document. */
function examples(value: unknown, place: string): readonly { place: string; schema: Schema; example: unknown }[] {
  if (typeof value !== 'object' || value === null) return [];
  const inside = Object.entries(value).flatMap(([key, inner]) =>
    key === 'example' ? [] : examples(inner, `${place} ${key}`),
  );
  return 'example' in value && 'schema' in value
    ? [{ place, schema: value.schema as Schema, example: value.example }, ...inside]
    : inside;
}

function operations(): readonly { name: string; operation: Schema }[] {
  return Object.entries<Schema>(document['paths']).flatMap(([path, methods]) =>
    Object.entries<Schema>(methods).map(([method, operation]) => ({
      name: `${method.toUpperCase()} ${path}`,
      operation,
    })),
  );
}

describe('the examples', () => {
  it('fit their schemas', () => {
    const found = examples(document, '');
    expect(found.length).toBeGreaterThan(90);
    const wrong = found.flatMap(({ place, schema, example }) => {
      const fault = faultsOf(schema, example);
      return fault === null ? [] : [`${place}: ${fault}`];
    });
    expect(wrong).toEqual([]);
  });

  it('are there for every body and every answer of every REST operation', () => {
    const missing = operations().flatMap(({ name, operation }) => {
      if (OTHER_OPERATIONS.includes(name)) return [];
      const ok = (operation['responses']['200'] ?? operation['responses']['201']).content['application/json'];
      const body = operation['requestBody']?.content['application/json'];
      return [ok, ...(body ? [body] : [])].every((media) => 'example' in media) ? [] : [name];
    });
    expect(missing).toEqual([]);
    const resolve = resolverOf(document);
    const bare = operations().flatMap(({ name, operation }) =>
      (operation['parameters'] ?? [])
        .map(resolve)
        .filter(({ required, example }: Schema) => required === true && example === undefined)
        .map((parameter: Schema) => `${name} ${parameter['name']}`),
    );
    expect(bare.filter((name: string) => !OTHER_OPERATIONS.some((other) => name.startsWith(other)))).toEqual([]);
  });

  it('show no token', () => {
    expect(JSON.stringify(document)).not.toMatch(/"(token|ticket)":"(?!shown-only-once")/);
  });
});

it.each([
  ['GET', '/healthz', null],
  ['GET', '/readyz', null],
  ['GET', '/openapi.json', null],
  ['GET', '/users', 'admin'],
  ['GET', '/users', null],
  ['GET', '/users?nothing=1', 'admin'],
  ['GET', '/metrics', null],
  ['GET', '/users/nobody-of-this-name', 'admin'],
])('%s %s answers a relay as the document says (token: %s)', async (method, path, token) => {
  const conformance = await conformanceOf({ openapi: async () => document });
  const { status, headers, json } = await relay.ask(path, { method, ...(token === null && { token: null }) });
  const type = String(headers['content-type']);
  expect(conformance.check({ method, path: path.split('?')[0] ?? '', status, type, body: json })).toEqual([]);
  expect(conformance.seen.size).toBe(1);
});

it('a relay that is not ready answers as the document says', async () => {
  await using leaving = await startHttpRelay();
  await leaving.callboard.drain(0);
  const conformance = await conformanceOf({ openapi: async () => document });
  const { status, headers, json } = await leaving.ask('/readyz', { token: null });
  expect(status).toBe(503);
  const given = { method: 'GET', path: '/readyz', status, type: String(headers['content-type']), body: json };
  expect(conformance.check(given)).toEqual([]);
});
