/** Tests the limits of documents, of cost, of time and of introspection. */
import { getIntrospectionQuery } from 'graphql';
import { describe, expect, it } from 'vitest';
import {
  QUERY_ALIASES,
  QUERY_DEPTH,
  QUERY_DIRECTIVES,
  QUERY_MS,
  QUERY_ROOT_FIELDS,
  QUERY_TOKENS,
} from '../../src/core/limits.ts';
import { settle } from '../kit/clock.ts';
import { startGraphqlServer, type GraphqlServer } from './kit/graphql-server.ts';

const times = (n: number, make: (i: number) => string): string =>
  Array.from({ length: n }, (_, i) => make(i)).join(' ');
/** Returns a query of `depth` nested fields. The root field and the leaf count too. */
const deep = (depth: number): string =>
  `{ cat { ${'friends(first: 1) { ... on Cat { '.repeat(depth - 2)} id ${'} }'.repeat(depth - 2)} } }`;
const deepByFragments = (depth: number): string =>
  `{ cat { ...F2 } } ${times(depth - 2, (i) => `fragment F${i + 2} on Cat { friends(first: 1) { ...F${i + 3} } }`)} fragment F${depth} on Cat { id }`;
const aliases = (n: number): string => `{ cat { ${times(n, (i) => `a${i}: id`)} } }`;
const aliasesByFragments = (n: number): string =>
  `{ cat { ...F ...F } } fragment F on Cat { ${times(n / 2, (i) => `a${i}: id`)} }`;
const directives = (n: number): string => `{ cat { id ${times(n, () => '... @include(if: true) { id }')} } }`;
const rootFields = (n: number): string => `{ ...F } fragment F on Query { ${times(n, (i) => `a${i}: hello`)} }`;
const tokens = (n: number): string => `{ tags(tags: [${times(n - 9, () => '"x"')}]) }`;

async function expectTooComplex(server: GraphqlServer, query: string, word: string): Promise<void> {
  const answer = await server.ask(query);
  expect(answer).toMatchObject({ status: 400, code: 'too_complex', data: undefined });
  expect(answer.errors[0]?.message).toContain(word);
}

describe('the limits of documents', () => {
  it.each([
    ['depth', deep(QUERY_DEPTH), deep(QUERY_DEPTH + 1)],
    ['depth', deepByFragments(QUERY_DEPTH), deepByFragments(QUERY_DEPTH + 1)],
    ['aliases', aliases(QUERY_ALIASES), aliases(QUERY_ALIASES + 1)],
    ['aliases', aliasesByFragments(QUERY_ALIASES), aliasesByFragments(QUERY_ALIASES + 2)],
    ['directives', directives(QUERY_DIRECTIVES), directives(QUERY_DIRECTIVES + 1)],
    ['root fields', rootFields(QUERY_ROOT_FIELDS), rootFields(QUERY_ROOT_FIELDS + 1)],
  ])('accept a document at the bound of %s and refuse the next larger one', async (word, under, over) => {
    await using server = await startGraphqlServer();
    expect(await server.ask(under, { requester: 'admin' })).toMatchObject({ status: 200, errors: [] });
    await expectTooComplex(server, over, word);
    // The second request gets the same answer from the cache of validations.
    await expectTooComplex(server, over, word);
  });

  it('accept a document of 4 000 tokens and refuse one of 4 001', async () => {
    await using server = await startGraphqlServer();
    expect(await server.ask(tokens(QUERY_TOKENS))).toMatchObject({ status: 200, errors: [] });
    await expectTooComplex(server, tokens(QUERY_TOKENS + 1), '4000 tokens');
    await expectTooComplex(server, tokens(QUERY_TOKENS * 4), '4000 tokens');
    await expectTooComplex(server, tokens(QUERY_TOKENS * 20), 'characters');
  });

  it('withstand ten thousand aliases, cyclic fragments and doubling fragments', async () => {
    await using server = await startGraphqlServer();
    await expectTooComplex(server, aliases(5_000), '4000 tokens');
    const cycle = await server.ask(
      '{ cat { ...A } } fragment A on Cat { ...B } fragment B on Cat { friends { ...A } }',
    );
    expect(cycle).toMatchObject({ status: 400, data: undefined });
    expect(cycle.errors[0]?.message).toContain('Cannot spread fragment');
    const self = await server.ask('{ ...A } fragment A on Query { hello ...A }');
    expect(self.status).toBe(400);
    const bomb = `{ cat { ...F0 } } ${times(300, (i) => `fragment F${i} on Cat { a${i}: id ...F${i + 1} ...F${i + 1} }`)} fragment F300 on Cat { id }`;
    await expectTooComplex(server, bomb, 'aliases');
  });

  it('count each operation of a document separately', async () => {
    await using server = await startGraphqlServer();
    const six = times(6, (i) => `a${i}: hello`);
    const response = await fetch(server.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer alice' },
      body: JSON.stringify({ query: `query A { ${six} } query B { ${six} }`, operationName: 'B' }),
    });
    expect(Object.keys((await response.json()).data)).toHaveLength(6);
  });

  it('do not reveal which fields exist', async () => {
    await using server = await startGraphqlServer();
    const said = async (query: string, variables = {}) =>
      JSON.stringify((await server.ask(query, { variables })).errors);
    const all = [
      await said('{ helo }'),
      await said('{ hello(nam: 1) }'),
      await said('{ color(like: REDD) }'),
      await said('query ($f: Filter) { filter(filter: $f) }', { f: { tex: 1 } }),
      await said('query ($c: Color) { color(like: $c) }', { c: 'REDD' }),
      await said('query ($c: Colour) { color(like: $c) }'),
    ];
    for (const text of all) {
      expect(text).toContain('message');
      expect(text).not.toContain('Did you mean');
    }
  });
});

describe('the limits of cost', () => {
  const items = 'query ($n: Int) { named(first: $n) { id name } }';

  it('allow 20 000 for a user and 500 000 for an administrator', async () => {
    await using server = await startGraphqlServer();
    const status = async (requester: string, n: number) =>
      (await server.ask(items, { requester, variables: { n } })).status;
    expect(await status('alice', 9_999)).toBe(200);
    expect(await status('alice', 10_000)).toBe(400);
    expect(await status('admin', 10_000)).toBe(200);
    expect(await status('admin', 249_999)).toBe(200);
    expect(await status('admin', 250_000)).toBe(400);
    expect((await server.ask(items, { variables: { n: 10_000 } })).code).toBe('too_complex');
  });

  it('are checked before anything runs, mutations included', async () => {
    await using server = await startGraphqlServer();
    const first = await server.ask('mutation { touch }');
    const refused = await server.ask('mutation { touch touchMany(first: 20000) { id } }');
    expect(refused).toMatchObject({ status: 400, code: 'too_complex', data: undefined });
    const next = await server.ask('mutation { touch }');
    expect(Number(next.data?.['touch'])).toBe(Number(first.data?.['touch']) + 1);
  });
});

describe('the limit of time', () => {
  it('ends a query after 10 s, and not before', async () => {
    await using server = await startGraphqlServer();
    const reached = server.subscriptions.opened.promise;
    const requested = server.ask('{ stuck hello }');
    let answered = false;
    void requested.then(() => (answered = true));
    await reached;
    await server.clock.advance(QUERY_MS - 1);
    await settle();
    expect(answered).toBe(false);
    await server.clock.advance(1);
    expect(await requested).toMatchObject({ status: 503, code: 'store_unavailable', data: undefined });
  });

  it('leaves mutations to their own budgets, and aborts them when the requester hangs up', async () => {
    await using server = await startGraphqlServer();
    const hangUp = new AbortController();
    const reached = server.subscriptions.opened.promise;
    const requested = fetch(server.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer alice' },
      body: JSON.stringify({ query: 'mutation { stuck }' }),
      signal: hangUp.signal,
    }).then(() => 'answered');
    await reached;
    const first = await Promise.race([requested, server.clock.advance(60_000).then(() => 'waiting')]);
    expect(first).toBe('waiting');
    hangUp.abort();
    await expect(requested).rejects.toThrow('aborted');
    await server.subscriptions.aborted.promise;
  });
});

describe('introspection', () => {
  const schema = '{ __schema { queryType { name } } }';
  it.each([
    ['admin', { nobody: 401, alice: 403, admin: 200 }],
    ['all', { nobody: 200, alice: 200, admin: 200 }],
    ['off', { nobody: 401, alice: 403, admin: 403 }],
  ] as const)('set to "%s" is allowed for: %j', async (introspection, expected) => {
    await using server = await startGraphqlServer({ introspection });
    const status = async (query: string, requester: string | null) => (await server.ask(query, { requester })).status;
    for (const query of [
      schema,
      '{ __type(name: "Cat") { name } }',
      '{ ...F } fragment F on Query { __schema { description } }',
    ]) {
      expect([query, await status(query, null), await status(query, 'alice'), await status(query, 'admin')]).toEqual([
        query,
        expected.nobody,
        expected.alice,
        expected.admin,
      ]);
    }
    expect(await status('{ __typename }', null)).toBe(200);
  });

  it('answers the complete standard query', async () => {
    await using server = await startGraphqlServer();
    const answer = await server.ask(getIntrospectionQuery(), { requester: 'admin' });
    expect(answer).toMatchObject({ status: 200, errors: [] });
    expect(JSON.stringify(answer.data)).toContain('"Named"');
  });
});
