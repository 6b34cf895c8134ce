/** Tests that the bounds in the OpenAPI document are those that the relay enforces. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { defaultPolicy } from '../../src/core/auth/policy.ts';
import { readOperations } from '../../src/rest/compile.ts';
import { user } from '../kit/core.ts';
import { startRestRelay, type Reply } from './kit/rest-server.ts';
import { allowed, odd, resolverOf, type Schema } from './kit/schema-values.ts';

type Relay = Awaited<ReturnType<typeof startRestRelay>>;
type Operation = {
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly requester: string;
  readonly parameters: readonly Schema[];
  readonly body: Schema | undefined;
};
type Request = { readonly given: Readonly<Record<string, unknown>>; readonly body: unknown };

/** The codes that refuse the form of a request. */
const OF_FORM = ['invalid_argument', 'invalid_user', 'reserved_parameter', 'reserved_stream'];
/**
 * Returns whether a request was refused with one of these codes. A preflight itself succeeds, and names the code with
 * which the invocation would be refused.
 */
function isRefused(body: any, codes: readonly string[]): boolean {
  return codes.includes(body?.code) || codes.includes(body?.first_refusal?.code);
}

/** The names of parameters that are secret ids. A malformed id gets the same answer as an unknown one. */
const SECRET_IDS = ['session_id', 'grant_id'];

let relay: Relay;
let document: Schema;
let resolve: (schema: Schema) => Schema;
let isAllowed: (schema: Schema, value: unknown) => boolean;
/** The ids of rows that exist, so that requests reach the checks behind them. */
const known: Record<string, string> = { user_id: 'alice', client_id: 'tab', site_id: 'board' };

beforeAll(async () => {
  // Every invocation is refused by the policy after its form was checked, so none of them waits.
  const policy = { ...defaultPolicy, decide: () => ({ allowed: false, rule: 'none' }) as const };
  relay = await startRestRelay({ policy, rawMessages: true });
  document = JSON.parse(JSON.stringify(await relay.handler.openapi()));
  resolve = resolverOf(document);
  const ajv = new Ajv2020({ strict: false });
  formats.default(ajv);
  ajv.addSchema({ $id: 'openapi', ...document });
  isAllowed = (schema, value) => ajv.validate(absolute(schema), value);
  await openSite();
});
afterAll(() => relay[Symbol.asyncDispose]());

async function openSite(): Promise<void> {
  const alice = user('alice');
  const capabilityProfile = { actionInvocation: true, sharing: true };
  await relay.core.sites.register(alice, { siteId: 'board', clientId: 'tab', actions: ['open'], capabilityProfile });
  const opened = await relay.core.sites.open(alice, 'board', {});
  known['session_id'] = opened?.view.session.sessionId ?? '';
}

/** Returns the schema with references that include the id of the document. */
function absolute(schema: Schema): Schema {
  return JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"openapi#/'));
}

function operationOf(name: string): Operation {
  const [method = '', path = ''] = name.split(' ');
  const operation: Schema = document['paths'][path][method.toLowerCase()];
  // An administrator must name the owner of a site, which no schema can say.
  const isOwners = /scope `host`|holder of a grant/.test(operation['description']) || path.startsWith('/sites');
  return {
    ...{ name, method, path, requester: isOwners ? 'alice' : 'admin' },
    parameters: (operation['parameters'] ?? []).map(resolve),
    body: operation['requestBody']?.content['application/json'].schema,
  };
}

/** The shipped operations by name, such as `GET /users`. Those that end something come last. */
const NAMES: readonly string[] = readOperations()
  .flatMap(({ text }) => [...text.matchAll(/@rest\(\s*(get|post|put|delete): "([^"]+)"/g)])
  .map(([, method = '', path = '']) => `${method.toUpperCase()} ${path}`)
  .sort((a, b) => Number(/DELETE|drain|disconnect/.test(a)) - Number(/DELETE|drain|disconnect/.test(b)));

/**
 * Draws random requests that the document allows. Cursors are left out, because only a cursor from an answer is valid.
 */
function requestsOf({ parameters, body }: Operation): fc.Arbitrary<Request> {
  const shown = parameters.filter(({ name }) => name !== 'cursor');
  const values = shown.map(({ name, schema }) => {
    const any = allowed(schema, resolve);
    return [name, known[name] === undefined ? any : fc.oneof(fc.constant(known[name]), any)] as const;
  });
  const requiredKeys = shown.filter(({ required }) => required).map(({ name }) => String(name));
  return fc.record({
    given: fc.record(Object.fromEntries(values), { requiredKeys }),
    body: body ? allowed(body, resolve) : fc.constant(undefined),
  });
}

function send({ method, path, parameters, requester }: Operation, { given, body }: Request): Promise<Reply> {
  const text = (value: unknown): string => encodeURIComponent(Array.isArray(value) ? value.join(',') : String(value));
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => text(given[name]));
  const inQuery = parameters.filter(({ in: place, name }) => place === 'query' && Object.hasOwn(given, name));
  const query = inQuery.map(({ name }) => `${name}=${text(given[name])}`).join('&');
  return relay.ask({ method, path: query ? `${filled}?${query}` : filled, requester, body });
}

it('covers every operation of the document', () => {
  const described = Object.entries<object>(document['paths']).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  expect(described.filter((name) => !NAMES.includes(name)).sort()).toEqual([
    ...['GET /healthz', 'GET /metrics', 'GET /openapi.json', 'GET /readyz', 'GET /site-sessions/{session_id}/events'],
    'POST /graphql',
  ]);
});

describe('a request that the document allows', () => {
  it.each(NAMES)('is never refused for its form: %s', async (name) => {
    const operation = operationOf(name);
    await fc.assert(
      fc.asyncProperty(requestsOf(operation), async (request) => {
        const { status, body } = await send(operation, request);
        const { code = null, detail } = status >= 400 ? body : {};
        expect({ isOfForm: OF_FORM.includes(code) || [400, 413, 415].includes(status), detail }).toEqual({
          isOfForm: false,
          detail,
        });
        // A refusal of a single message is a problem. With several messages, each has its own error.
        for (const { error } of body?.items ?? []) expect(OF_FORM).not.toContain(error?.code);
      }),
      { numRuns: 25 },
    );
  });
});

describe('a request that the document does not allow is refused', () => {
  it.each(NAMES)('for a parameter: %s', async (name) => {
    const operation = operationOf(name);
    const [base] = fc.sample(requestsOf({ ...operation }), { numRuns: 1, seed: 7 });
    for (const { name: parameter, schema, in: place } of operation.parameters) {
      if (parameter === 'cursor') continue;
      for (const value of odd(schema, resolve)) {
        const text = String(value);
        // A path with an empty segment would name another route.
        if (typeof value === 'object' || (place === 'path' && text === '') || takesText(schema, text)) continue;
        const { status, body } = await send(operation, {
          body: base?.body,
          given: { ...base?.given, ...known, [parameter]: text },
        });
        const codes = SECRET_IDS.includes(parameter) ? [...OF_FORM, 'not_found'] : OF_FORM;
        expect([parameter, text, isRefused(body, codes) ? 'refused' : [status, body]]).toEqual([
          parameter,
          text,
          'refused',
        ]);
      }
    }
  });

  it.each(NAMES.filter((name) => /^(POST|PUT)/.test(name)))('for a member of its body: %s', async (name) => {
    const operation = operationOf(name);
    const schema = resolve(operation.body ?? {});
    const item = schema['anyOf'] ? resolve(schema['anyOf'][1]) : schema;
    const [base] = fc.sample(requestsOf(operation), { numRuns: 1, seed: 7 });
    const [whole] = fc.sample(allowed(item, resolve), { numRuns: 1, seed: 7 });
    const members = Object.entries<Schema>(item['properties'] ?? {});
    const faulty = members.flatMap(([member, one]) =>
      odd(one, resolve)
        .filter((value) => !isAllowed(one, value))
        .map((value) => ({ member, value })),
    );
    const missing = (item['required'] ?? []).map((member: string) => ({ member, value: undefined }));
    for (const { member, value } of [...faulty, ...missing, { member: 'unknown_member', value: 1 }]) {
      const body = { ...Object(whole), [member]: value };
      const reply = await send(operation, { given: { ...base?.given, ...known }, body });
      const shown = [member, JSON.stringify(value)?.slice(0, 80)];
      expect([...shown, isRefused(reply.body, OF_FORM) ? 'refused' : [reply.status, reply.body]]).toEqual([
        ...shown,
        'refused',
      ]);
    }
  });
});

/** Returns whether the schema allows the value of this text in a path or query. */
function takesText(schema: Schema, text: string): boolean {
  const whole = resolve(schema);
  const parts: readonly Schema[] =
    whole['type'] === 'array' ? [resolve(whole['items'])] : [whole, ...(whole['anyOf'] ?? [])];
  const types = parts.flatMap(({ type }) => type ?? []);
  const values: readonly unknown[] = [
    ...(types.includes('string') ? [text] : []),
    ...(types.includes('integer') && /^-?\d+$/.test(text) ? [Number(text)] : []),
    ...(types.includes('boolean') && /^(true|false)$/.test(text) ? [text === 'true'] : []),
  ];
  return values.some((value) => isAllowed(whole['type'] === 'array' ? whole['items'] : schema, value));
}
