/** Tests that faults in REST documents prevent the start of a relay. */
import { buildSchema } from 'graphql';
import { expect, test } from 'vitest';
import { CallboardError } from '../../src/core/errors.ts';
import { createPlans } from '../../src/graphql/execute/executor.ts';
import { restSchema } from '../../src/graphql/schema/schema.ts';
import { compileRoutes, readOperations } from '../../src/rest/compile.ts';
import { smallSchema } from './kit/small-schema.ts';

const schema = smallSchema({ seen: [], logged: [], answer: {}, signal: undefined });

function faultsOf(...texts: string[]): string[] {
  const documents = texts.map((text, i) => ({ name: `${i}.graphql`, text }));
  try {
    compileRoutes(schema, documents, createPlans(schema));
    return [];
  } catch (error) {
    if (!(error instanceof CallboardError)) throw error;
    for (const { detail } of error.details.errors ?? []) expect(error.message).toContain(detail);
    return (error.details.errors ?? []).map(({ parameter, detail }) => `${parameter}: ${detail}`);
  }
}

test('every fault of every document is reported at once, with its file', () => {
  const faults = faultsOf(
    'query A @rest(get: "/a", access: ADMIN) { thing(id: "1") { id wings } }',
    'query B( {',
    'query C($id: ID) @rest(get: "/c/{id}", access: ADMIN) { things(ownerId: $id) { nextCursor } }',
    'query D @rest(get: "/d") { thing(id: "1") { id } }',
    'query E { thing(id: "1") { id } }',
  );
  const files = ['1.graphql', '0.graphql', '3.graphql', '2.graphql', '4.graphql'];
  expect(faults.map((fault) => fault.slice(0, 9))).toEqual(files);
  expect(faults.join('\n')).toContain('Cannot query field "wings"');
  expect(faults.join('\n')).toContain('{id} needs a variable $id of a non-null type');
  expect(faults.join('\n')).toContain('"@rest(access:)" of type "RestAccess!" is required');
  expect(faults.join('\n')).toContain('E: it has no @rest directive');
});

test.each([
  ['an unknown access', 'query A @rest(get: "/a", access: ALL) { thing(id: "1") { id } }', 'ALL'],
  ['two methods', 'query A @rest(get: "/a", post: "/a", access: ANY) { thing(id: "1") { id } }', 'exactly one of'],
  ['no method', 'query A @rest(access: ANY) { thing(id: "1") { id } }', 'exactly one of'],
  ['a path without a slash', 'query A @rest(get: "a", access: ANY) { thing(id: "1") { id } }', 'not a path'],
  ['a path parameter without variable', 'query A @rest(get: "/a/{b}", access: ANY) { thing(id: "1") { id } }', '{b}'],
  [
    'a parameter twice in a path',
    'query A($b: ID!) @rest(get: "/{b}/{b}", access: ANY) { thing(id: $b) { id } }',
    'twice',
  ],
  [
    'an input object in a query',
    'query A($p: ActInput!) @rest(get: "/a", access: ANY) { given(id: "1") } mutation B($p: ActInput!) @rest(get: "/b", access: ANY) { act(input: $p) { ... on Receipt { state } } }',
    'no form in a path or a query',
  ],
  [
    'several root fields',
    'query A @rest(get: "/a", access: ANY) { a: thing(id: "1") { id } thing(id: "2") { id } }',
    'body:',
  ],
  [
    'a body that nothing is at',
    'query A @rest(get: "/a", access: ANY, body: "thing.wings") { thing(id: "1") { id } }',
    '"thing.wings" names nothing',
  ],
  [
    'a body inside a list',
    'query A @rest(get: "/a", access: ANY, body: "thing.parts.id") { thing(id: "1") { parts { id } } }',
    '"thing.parts.id" names nothing',
  ],
  [
    'bodyAs on a GET',
    'query A($id: ID!) @rest(get: "/a", access: ANY, bodyAs: "id") { thing(id: $id) { id } }',
    'bodyAs needs post or put',
  ],
  [
    'bodyAs beside other variables',
    'mutation A($items: [ItemInput!]!, $x: ID!) @rest(post: "/a", access: ANY, bodyAs: "items") { keep(items: $items) act(input: {id: $x}) { ... on Receipt { state } } }',
    'must be the one variable',
  ],
  [
    'an item refusal at nothing',
    'mutation A($items: [ItemInput!]!) @rest(post: "/a", access: ANY, bodyAs: "items", itemRefusal: "list.items.wings") { judge(items: $items) { list { items { id why { code message } } } } }',
    'names no member of a list',
  ],
  [
    'an item refusal that is no list',
    'mutation A($items: [ItemInput!]!) @rest(post: "/a", access: ANY, bodyAs: "items", itemRefusal: "list.why") { judge(items: $items) { list { items { why { code message } } } } }',
    'names no member of a list',
  ],
  [
    'an item refusal without its code',
    'mutation A($items: [ItemInput!]!) @rest(post: "/a", access: ANY, bodyAs: "items", itemRefusal: "list.items.why") { judge(items: $items) { list { items { why { message } } } } }',
    'names no member of a list',
  ],
  [
    'an item refusal that is a text',
    'mutation A($items: [ItemInput!]!) @rest(post: "/a", access: ANY, bodyAs: "items", itemRefusal: "list.items.id") { judge(items: $items) { list { items { id } } } }',
    'names no member of a list',
  ],
  [
    'waiting by what is no variable',
    'query A($id: ID!) @rest(get: "/a/{id}", access: ANY, waitsBy: "within_ms") { thing(id: $id) { id } }',
    'waitsBy: there is no variable $within_ms',
  ],
  [
    'an item refusal without bodyAs',
    'mutation A($items: [ItemInput!]!) @rest(post: "/a", access: ANY, itemRefusal: "list.items.why") { judge(items: $items) { list { items { why { code message } } } } }',
    'itemRefusal needs bodyAs',
  ],
  [
    'a refusal without its code',
    'mutation A @rest(post: "/a", access: ANY) { act(input: {id: "1"}) { ... on Refusal { message } ... on Receipt { state } ... on Invocation { outcome error { code message } } } }',
    'Refusal must select code',
  ],
  [
    'a member of a union that is left out',
    'mutation A @rest(post: "/a", access: ANY) { act(input: {id: "1"}) { ... on Refusal { code message } ... on Invocation { outcome error { code message } } } }',
    'nothing is selected of Receipt',
  ],
  [
    'two routes that no request could tell apart',
    'query A($a: ID!) @rest(get: "/t/{a}", access: ANY) { thing(id: $a) { id } } query B($b: ID!) @rest(get: "/t/{b}", access: ANY) { thing(id: $b) { id } }',
    'same method and path as A',
  ],
])('%s prevents the start', (_what, text, words) => {
  expect(faultsOf(text).join('\n')).toContain(words);
});

test('a scalar without a form in JSON prevents the start', () => {
  const odd = buildSchema('scalar Blob type Query { blob: Blob }');
  const text = 'query A @rest(get: "/a", access: ANY) { blob }';
  expect(() => compileRoutes(odd, [{ name: 'a', text }], createPlans(odd))).toThrow('Blob has no JSON form');
});

test('shipped documents against a schema that lacks a field prevent the start, naming the file and the field', () => {
  const documents = readOperations().map(({ name, text }) => ({
    name,
    text: name === 'connections.graphql' ? text.replace('heartbeat', 'pulse') : text,
  }));
  expect(() => compileRoutes(restSchema, documents, createPlans(restSchema))).toThrow(
    /connections\.graphql:\d+: Cannot query field "pulse" on type "ConnectionSnapshot"/,
  );
});

test('every shipped document fits the schema and has a description', () => {
  const routes = compileRoutes(restSchema, readOperations(), createPlans(restSchema));
  expect(routes.length).toBeGreaterThan(0);
  for (const { id, summary } of routes) expect([id, summary?.endsWith('.')]).toEqual([id, true]);
});

test('parameters have the descriptions and bounds of the schema’s arguments', () => {
  const routes = compileRoutes(restSchema, readOperations(), createPlans(restSchema));
  const inputs = routes.find(({ id }) => id === 'ListConnections')?.inputs;
  expect(inputs?.get('limit')).toMatchObject({ schema: { type: 'integer', minimum: 1, maximum: 1000, default: 100 } });
  for (const route of routes) {
    for (const { name, description } of route.inputs.values()) {
      expect([route.id, name, Boolean(description)]).toEqual([route.id, name, true]);
    }
  }
});
