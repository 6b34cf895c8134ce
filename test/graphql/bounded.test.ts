/** Tests that hostile variables and documents cost little, and that their errors are short. */
import { getIntrospectionQuery, parse, type DocumentNode, type GraphQLSchema } from 'graphql';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  ANONYMOUS_INTROSPECTION_CHARS,
  QUERY_CHARS,
  QUERY_FRAGMENTS,
  QUERY_MERGES,
  QUERY_NESTING,
  QUERY_OPERATIONS,
} from '../../src/core/limits.ts';
import { shapeFaults } from '../../src/graphql/execute/document-bounds.ts';
import { mergeSteps } from '../../src/graphql/execute/merge-cost.ts';
import { createPlans } from '../../src/graphql/execute/executor.ts';
import { startGraphqlServer, type GraphqlServer } from './kit/graphql-server.ts';
import { smallSchema } from './kit/small-schema.ts';

const repeat = (n: number, make: (i: number) => string): string =>
  Array.from({ length: n }, (_, i) => make(i)).join(' ');

/** Returns an object with these members, and a function that tells how often its members were listed. */
function counted(members: Record<string, unknown>): { readonly value: object; readonly listed: () => number } {
  let listed = 0;
  const value = new Proxy(members, { ownKeys: (target) => (listed++, Reflect.ownKeys(target)) });
  return { value, listed: () => listed };
}

const unknownKeys = (n: number): Record<string, unknown> =>
  Object.fromEntries(Array.from({ length: n }, (_, i) => [`k${i}`, 1]));

describe('variables that do not match their types', () => {
  const filter = (of: GraphQLSchema): { document: DocumentNode; plans: ReturnType<typeof createPlans> } => ({
    document: parse('query ($f: Filter) { filter(filter: $f) }'),
    plans: createPlans(of),
  });

  it('are listed and printed only a few times, however many of their members are wrong', async () => {
    const { document, plans } = filter(smallSchema);
    const plan = plans.of(document);
    const { value, listed } = counted(unknownKeys(3000));
    const bound = plan?.bind({ f: value });
    expect(bound?.cost(null)).toBe(0);
    expect(await bound?.write({})).toBeNull();
    const afterWrite = listed();
    const answer = await bound?.run({});
    expect(answer?.errors).toHaveLength(1);
    expect(afterWrite).toBeLessThan(10);
    // The errors in these variables are already known, so the members are not listed again.
    expect(listed()).toBe(afterWrite);
  });

  it('are answered with one error, whose message is short', async () => {
    await using server = await startGraphqlServer();
    const variables = { f: unknownKeys(50_000) };
    for (let i = 0; i < 3; i++) {
      const answer = await server.ask('query ($f: Filter) { filter(filter: $f) }', { variables });
      expect([answer.status, answer.code, answer.errors.length]).toEqual([400, 'invalid_argument', 1]);
      expect(answer.text.length).toBeLessThan(2_000);
      expect(answer.errors[0]?.message).toContain('Variable "$f" has invalid value');
    }
  });

  it('are not printed if they are large, whatever is wrong with them', async () => {
    await using server = await startGraphqlServer();
    const large = unknownKeys(20_000);
    const text = async (query: string, variables: Record<string, unknown>) => {
      const { errors, code } = await server.ask(query, { variables });
      return [code, errors.length, errors[0]?.message];
    };
    expect(await text('query ($f: Filter) { filter(filter: $f) }', { f: large })).toEqual([
      'invalid_argument',
      1,
      'Variable "$f" has invalid value: Expected value of type "Filter" not to include unknown field "k0".',
    ]);
    expect(await text('query ($f: Filter) { filter(filter: $f) }', { f: [large] })).toEqual([
      'invalid_argument',
      1,
      'Variable "$f" has invalid value: Expected value of type "Filter".',
    ]);
    expect(await text('query ($n: Int) { named(first: $n) { id } }', { n: large })).toEqual([
      'invalid_argument',
      1,
      'Variable "$n" has invalid value: Expected value of type "Int".',
    ]);
    // The relay prints small values once. graphql-js would print them with each error.
    const many = await server.ask('query ($f: Filter) { filter(filter: $f) }', { variables: { f: unknownKeys(20) } });
    expect([many.errors.length, many.text.split('found: ').length]).toEqual([1, 2]);
    const [, , small] = await text('query ($f: Filter) { filter(filter: $f) }', { f: { odd: 1 } });
    expect(small).toContain('found: { odd: 1 }');
  });

  it('of a subscription are refused in the same way', async () => {
    await using server = await startGraphqlServer();
    const response = await fetch(server.url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'text/event-stream',
        authorization: 'Bearer alice',
      },
      body: JSON.stringify({
        query: 'subscription ($a: Int) { ticks(times: $a) }',
        variables: { a: 'x'.repeat(5_000) },
      }),
    });
    const text = await response.text();
    expect(text).toContain('invalid_argument');
    expect(text.length).toBeLessThan(3_000);
  });

  it('keep their errors apart by operation', async () => {
    const plans = createPlans(smallSchema);
    const document = parse('query A($n: Int) { hello @include(if: true) } query B($n: String) { hello }');
    const variables = { n: 'text' };
    expect((await plans.of(document, 'A')?.bind(variables).run({}))?.errors).toHaveLength(1);
    expect((await plans.of(document, 'B')?.bind(variables).run({}))?.errors).toBeUndefined();
  });
});

describe('documents built to be slow', () => {
  const long: readonly (readonly [says: string, text: string, word: string])[] = [
    ['one field again and again', `{ cat { ${repeat(3900, () => 'id')} } }`, 'too often'],
    ['fields that merge', `{ cat { ${repeat(98, () => `friends { ${repeat(30, (i) => `f${i}`)} }`)} } }`, 'too often'],
    [
      'fragments that all spread each other',
      `{ cat { ...F0 } } ${repeat(45, (i) => `fragment F${i} on Cat { ${repeat(35, (j) => `...F${(i + j) % 45}`)} id }`)}`,
      'too often',
    ],
    [
      'fragments of many fields in one place',
      `{ cat { ${repeat(50, (i) => `...F${i}`)} } } ${repeat(50, (i) => `fragment F${i} on Cat { ${repeat(60, (j) => `x${i}_${j}`)} }`)}`,
      'too often',
    ],
    [
      'too many fragments',
      `{ cat { ...F0 } } ${repeat(QUERY_FRAGMENTS + 1, (i) => `fragment F${i} on Cat { id }`)}`,
      'fragments',
    ],
    ['lists within lists', `{ tags(tags: ${'['.repeat(1900)}${']'.repeat(1900)}) }`, 'deep'],
    ['objects within objects, never closed', `{ tags(tags: ${'{a:'.repeat(1300)}`, 'deep'],
    ['types within types', `query ($a: ${'['.repeat(QUERY_NESTING)}Int${']'.repeat(QUERY_NESTING)}) { hello }`, 'deep'],
    ['introspection without an end', `{ __schema { types ${'{ ofType '.repeat(300)} ${'}'.repeat(300)} } }`, 'deep'],
    ['a long text', `{ tags(tags: ["${'x'.repeat(QUERY_CHARS)}"]) }`, 'characters'],
    ['a long comment', `#${'x'.repeat(QUERY_CHARS)}\n{ hello }`, 'characters'],
  ];

  let server: GraphqlServer;
  beforeAll(async () => {
    server = await startGraphqlServer();
    return () => server[Symbol.asyncDispose]();
  });

  it.each(long)('are refused before they are validated: %s', async (_says, text, word) => {
    const answer = await server.ask(text, { requester: 'admin' });
    expect(answer).toMatchObject({ status: 400, code: 'too_complex', data: undefined });
    expect(answer.errors[0]?.message).toContain(word);
  });

  it('are refused if they contain too many operations', () => {
    const operations = (n: number) => shapeFaults(parse(repeat(n, (i) => `query Q${i} { hello }`)));
    expect(operations(QUERY_OPERATIONS)).toEqual([]);
    expect(operations(QUERY_OPERATIONS + 1).map(({ code }) => code)).toEqual(['too_complex']);
  });

  it('get only a few of their faults listed, briefly', async () => {
    const faults = await server.ask(`{ cat { ${repeat(3000, (i) => `f${i}`)} } }`);
    expect(faults.status).toBe(400);
    expect(faults.errors.length).toBeLessThanOrEqual(11);
    const deep = `{ tags(tags: {a: "${'x'.repeat(50_000)}"}) }`;
    expect((await server.ask(deep)).text.length).toBeLessThan(5_000);
  });

  it('are accepted at the bound of nesting', async () => {
    const depth = QUERY_NESTING - 2;
    const answer = await server.ask(`{ tags(tags: ${'['.repeat(depth)}${']'.repeat(depth)}) }`);
    expect(answer.code).not.toBe('too_complex');
    const open = await server.ask(`{ tags(tags: ["${'['.repeat(2 * QUERY_NESTING)}"]) }`);
    expect(open).toMatchObject({ status: 200, errors: [] });
  });
});

describe('the steps of merging fields', () => {
  const steps = (text: string): number => mergeSteps(parse(text), QUERY_MERGES);

  it('are few if names differ, and grow with the square for one name', () => {
    expect(steps('{ a { b c } d }')).toBe(4);
    expect(steps('{ a a a a }')).toBe(4 + 6);
    expect(steps(`{ ${repeat(100, () => 'a')} }`)).toBe(100 + 4950);
    expect(steps('{ a { b } a { b } }')).toBe(4 + 2 + 1);
  });

  it('stop soon after the bound, also for cycles and doubling fragments', () => {
    const doubling = repeat(40, (i) => `fragment F${i} on Q { a { ...F${i + 1} } b { ...F${i + 1} } }`);
    expect(steps(`{ ...F0 } ${doubling}`)).toBeLessThan(2 * QUERY_MERGES);
    expect(steps('{ ...F } fragment F on Q { a { ...F } }')).toBeLessThan(200);
  });
});

describe('without a token', () => {
  it.each([
    ['{ __typename }', 200],
    ['query Q { ...F } fragment F on Query { __typename }', 200],
    ['{ hello', 401],
    ['{ nothing }', 401],
    ['mutation { touch }', 401],
    ['{ __schema { description } }', 401],
    ['{ __typename } query B { hello }', 401],
    [`{ ${repeat(200, () => '__typename')} }`, 401],
  ])('%s is answered with %s', async (query, status) => {
    await using server = await startGraphqlServer();
    expect((await server.ask(query, { requester: null })).status).toBe(status);
  });

  it('nothing longer than the open fields need is parsed', async () => {
    await using server = await startGraphqlServer({ introspection: 'all' });
    const status = async (query: string) => (await server.ask(query, { requester: null })).status;
    expect(await status(getIntrospectionQuery())).toBe(200);
    expect(await status(`{ __typename }${' '.repeat(ANONYMOUS_INTROSPECTION_CHARS)}`)).toBe(401);
  });
});
