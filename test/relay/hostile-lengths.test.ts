/** Tests that a hostile text costs almost nothing wherever a relay accepts text. */
import { resolverOf } from '../rest/kit/schema-values.ts';
import {
  getNamedType,
  isInputObjectType,
  isLeafType,
  isListType,
  isNonNullType,
  isEnumType,
  type GraphQLField,
  type GraphQLInputType,
} from 'graphql';
import { describe, expect, it } from 'vitest';
import { canonicalUser } from '../../src/core/ids.ts';
import { schema } from '../../src/graphql/schema/schema.ts';
import { postJson, startHttpRelay, tokenOf, type HttpRelay } from '../http/kit/http-relay.ts';

/** Returns texts for which a backtracking expression, a normalization or a split would take quadratic time. */
const hostile = (chars: number): readonly string[] => [
  `a@${'.'.repeat(chars - 3)}@`,
  '\u0315\u0300'.repeat(chars / 2),
  '/'.repeat(chars),
  'a.'.repeat(chars / 2),
  `${' '.repeat(chars - 1)}x`,
];

/**
 * The limit of CPU time that the process may use for one request, in milliseconds. Without checks of length, the texts
 * of `hostile` take six seconds.
 */
const MOST_CPU_MS = 1_000;

async function cpuOf<T>(act: () => Promise<T>): Promise<{ readonly ms: number; readonly value: T }> {
  const before = process.cpuUsage();
  const value = await act();
  const { user, system } = process.cpuUsage(before);
  return { ms: (user + system) / 1000, value };
}

type Root = { readonly kind: 'query' | 'mutation'; readonly field: GraphQLField<unknown, unknown> };

function roots(): readonly Root[] {
  const of = (kind: Root['kind'], type = kind === 'query' ? schema.getQueryType() : schema.getMutationType()) =>
    Object.values(type?.getFields() ?? {}).map((field): Root => ({ kind, field }));
  return [...of('query'), ...of('mutation')].filter(({ field }) => field.args.length > 0);
}

/** Returns a value of the type in which every text is `text`; numbers, times and enums are valid. */
function valueOf(type: GraphQLInputType, text: string, depth = 0): unknown {
  if (isNonNullType(type)) return valueOf(type.ofType, text, depth);
  if (isListType(type)) return depth > 3 ? [] : [valueOf(type.ofType, text, depth + 1)];
  const named = getNamedType(type);
  if (isInputObjectType(named)) {
    const fields = Object.values(named.getFields()).filter(() => depth < 4);
    return Object.fromEntries(fields.map((field) => [field.name, valueOf(field.type, text, depth + 1)]));
  }
  if (isEnumType(named)) return named.getValues()[0]?.name;
  if (named.name === 'Int' || named.name === 'Float') return 1;
  if (named.name === 'Boolean') return true;
  return named.name === 'DateTime' ? '2026-01-01T00:00:00Z' : text;
}

function documentOf({ kind, field }: Root): string {
  const names = field.args.map(({ name, type }) => ({ name, type: String(type) }));
  const below = isLeafType(getNamedType(field.type)) ? '' : ' { __typename }';
  return `${kind} (${names.map(({ name, type }) => `$${name}: ${type}`).join(', ')}) { ${field.name}(${names
    .map(({ name }) => `${name}: $${name}`)
    .join(', ')})${below} }`;
}

async function expectCheap(at: HttpRelay, path: string, requested: Parameters<HttpRelay['ask']>[1]): Promise<void> {
  const { ms, value } = await cpuOf(() => at.ask(path, requested));
  expect([path.slice(0, 80), value.status < 500 || value.status === 501]).toEqual([path.slice(0, 80), true]);
  // The description of the interface contains every code, so it is left out.
  if (!path.startsWith('/openapi.json')) expect(value.text).not.toContain('"internal"');
  expect(ms).toBeLessThan(MOST_CPU_MS);
}

describe('a hostile text costs almost nothing', () => {
  it('in every argument of GraphQL', async () => {
    await using at = await startHttpRelay();
    const token = await tokenOf('alice', 'invoke', 'host', 'connect');
    for (const root of roots()) {
      for (const text of hostile(64 * 1024)) {
        const variables = Object.fromEntries(root.field.args.map(({ name, type }) => [name, valueOf(type, text)]));
        const query = documentOf(root);
        await expectCheap(at, '/graphql', postJson({ query, variables }, { token }));
      }
    }
  });

  it('in every path, parameter and body of REST', async () => {
    await using at = await startHttpRelay();
    const { json } = await at.ask('/openapi.json');
    const { paths } = json as { paths: Record<string, Record<string, Operation>> };
    const resolve = resolverOf(json ?? {});
    expect(Object.keys(paths).length).toBeGreaterThan(20);
    for (const [path, operations] of Object.entries(paths)) {
      // The OpenAPI document contains every code, and takes no input.
      if (path === '/openapi.json') continue;
      for (const [method, operation] of Object.entries(operations)) {
        if (!METHODS.includes(method)) continue;
        const [media] = Object.values(operation.requestBody?.content ?? {});
        const body = resolve(media?.schema ?? {})['properties'];
        const parameters = (operation.parameters ?? []).map((one) => resolve(one) as Parameter);
        // These are the longest texts that fit into a request line.
        for (const text of hostile(2_000))
          await expectCheap(at, ...requestOf({ path, method, operation: { ...operation, parameters, body } }, text));
      }
    }
  });

  it('as a cursor, and as the last event of a stream', async () => {
    await using at = await startHttpRelay();
    for (const text of hostile(64 * 1024)) {
      const query = 'query ($after: String) { connections(after: $after) { nodes { clientId } } }';
      await expectCheap(at, '/graphql', postJson({ query, variables: { after: text } }));
    }
    for (const text of hostile(8_000).filter((one) => /^[\x20-\x7e]+$/.test(one))) {
      const headers = { 'last-event-id': text, accept: 'text/event-stream' };
      await expectCheap(at, `/site-sessions/s1/events?ticket=x`, { headers });
    }
  });

  it('as a user, wherever one is read', async () => {
    for (const text of hostile(1024 * 1024)) {
      const { ms } = await cpuOf(async () => expect(() => canonicalUser(text)).toThrow());
      expect(ms).toBeLessThan(MOST_CPU_MS);
    }
  });
});

type Parameter = { readonly name: string; readonly in: string };
type Operation = {
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Record<string, { readonly schema: object }> };
  /** The members of the body. */
  readonly body?: object;
};
const METHODS = ['get', 'post', 'put', 'delete'];

function requestOf(
  { path, method, operation }: { path: string; method: string; operation: Operation },
  text: string,
): [string, Parameters<HttpRelay['ask']>[1]] {
  const encoded = encodeURIComponent(text);
  const names = (operation.parameters ?? []).filter((one) => one.in === 'query').map(({ name }) => name);
  // Only one of the parameters is sent, so that the request line stays short.
  const search = names.length > 0 ? `?${names[0] ?? ''}=${encoded.slice(0, 4_000)}` : '';
  const where = `${path.replaceAll(/\{\w+\}/g, encoded.slice(0, 3_000))}${search}`;
  if (method === 'get' || method === 'delete') return [where, { method: method.toUpperCase() }];
  const properties = Object.keys(operation.body ?? {});
  const long = hostile(64 * 1024)[hostile(2_000).indexOf(text)] ?? text;
  const body = Object.fromEntries(properties.map((name) => [name, long]));
  return [where, postJson(body, { method: method.toUpperCase() })];
}
