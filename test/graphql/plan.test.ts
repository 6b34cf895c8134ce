/** Tests plans of operations, and their cost. */
import {
  GraphQLError,
  GraphQLInputObjectType,
  GraphQLInt,
  GraphQLList,
  GraphQLObjectType,
  GraphQLSchema,
  GraphQLString,
  execute,
  parse,
  validate,
  type ExecutionResult,
} from 'graphql';
import { describe, expect, it } from 'vitest';
import { writeJson } from '../../src/core/json.ts';
import type { Principal } from '../../src/core/auth/principal.ts';
import { CLIENT_CONTEXTS, COUNT_SCAN, QUERY_COST_USER } from '../../src/core/limits.ts';
import { SCAN_BUDGET } from '../../src/core/page.ts';
import { schema as relaySchema } from '../../src/graphql/schema/schema.ts';
import { createPlans } from '../../src/graphql/execute/executor.ts';
import { admin, user } from '../kit/core.ts';
import { createFeeds, smallSchema as schema, type SmallContext } from './kit/small-schema.ts';

const ann = user('ann');

type Case = readonly [document: string, variables?: Record<string, unknown>];

/** Documents for which executors might differ: defaults, coercion, nulls, abstract types, directives, fragments. */
const corpus: readonly Case[] = [
  ['{ hello }'],
  ['{ hello(name: null) }'],
  ['{ hello(name: "x") a: hello a: hello }'],
  ['query ($name: String) { hello(name: $name) }'],
  ['query ($name: String) { hello(name: $name) }', { name: null }],
  ['query ($name: String = "z") { hello(name: $name) }'],
  ['query ($name: String = "z") { hello(name: $name) }', { name: null }],
  ['query ($name: String! = "z") { hello(name: $name) }'],
  ['query ($name: String! = "z") { hello(name: $name) }', { name: null }],
  ['query ($name: String!) { hello(name: $name) }'],
  ['query ($n: Int! = 100) { count(n: $n) }'],
  ['query ($n: Int! = 100) { count(n: $n) }', { n: 4 }],
  ['query ($n: Int) { count(n: $n) hello }'],
  ['query ($n: Int) { count(n: $n) hello }', { n: null }],
  ['query ($n: Int = 9) { count(n: $n) }'],
  ['query ($n: Int!) { count(n: $n) }', { n: 1.5 }],
  ['query ($n: Int!) { count(n: $n) }', { n: '1' }],
  ['query ($n: Int!) { count(n: $n) }', {}],
  ['query ($n: Int) { maybe(n: $n) }'],
  ['query ($n: Int) { maybe(n: $n) }', { n: null }],
  ['{ maybe(n: null) b: maybe }'],
  ['query ($extra: Int) { hello(name: "k") maybe(n: $extra) }', { other: 5 }],
  ['{ filter(filter: {}) }'],
  ['{ filter(filter: { text: null, inner: {} }) }'],
  ['{ filter }'],
  ['query ($f: Filter) { filter(filter: $f) }'],
  ['query ($f: Filter) { filter(filter: $f) }', { f: {} }],
  ['query ($f: Filter) { filter(filter: $f) }', { f: { inner: {} } }],
  ['query ($f: Filter) { filter(filter: $f) }', { f: { within: 'x' } }],
  ['query ($f: Filter) { filter(filter: $f) }', { f: { unknown: 1 } }],
  ['query ($f: Filter = { text: "d" }) { filter(filter: $f) }'],
  ['query ($t: String) { filter(filter: { text: $t }) }'],
  ['query ($t: String!) { filter(filter: { text: $t, tags: [$t, "b"] }) }', { t: 'q' }],
  ['query ($c: Color!) { filter(filter: { waitFor: $c }) }', { c: 'BLUE' }],
  ['query ($t: [String!]) { tags(tags: $t) }'],
  ['query ($t: [String!]) { tags(tags: $t) }', { t: 'one' }],
  ['query ($t: [String!]) { tags(tags: $t) }', { t: ['a', null] }],
  ['query ($t: String!) { tags(tags: [$t, "b"]) }', { t: 'a' }],
  ['{ tags(tags: "one") }'],
  ['{ json(value: { a: [1, 2.5, "x", null, true, E] }) }'],
  ['query ($v: JSON) { json(value: $v) }', { v: { deep: [{ a: null }], __proto: 1 } }],
  ['query ($v: JSON) { json(value: $v) }'],
  ['query ($v: JSON = { a: 1 }) { json(value: $v) }'],
  ['query ($v: JSON) { json(value: { a: $v }) }', { v: 3 }],
  ['query ($v: JSON) { json(value: { a: $v, b: 1 }) }'],
  ['{ day day2: day(at: "day 5") }'],
  ['query ($at: Day) { day(at: $at) }', { at: 'day 8' }],
  ['query ($at: Day) { day(at: $at) }', { at: 'monday' }],
  ['query ($at: Day = "day 3") { day(at: $at) }'],
  ['{ color c2: color(like: RED) }'],
  ['query ($c: Color) { color(like: $c) }'],
  ['query ($c: Color) { color(like: $c) }', { c: 'RED' }],
  ['query ($c: Color = RED) { color(like: $c) }'],
  ['query ($c: Color) { color(like: $c) }', { c: 'red-ish' }],
  ['query ($c: Color) { color(like: $c) }', { c: 'GREEN' }],
  ['{ pets { __typename ... on Cat { id lives } ... on Dog { name tricks } } }'],
  ['{ pets { ... on Named { id name } ... on Cat { friends(first: 2) { __typename name } } } }'],
  ['query ($n: Int) { named(first: $n) { id ...D } } fragment D on Dog { tricks weight }', { n: 2 }],
  ['query ($n: Int = 4) { named(first: $n) { id ...D } } fragment D on Dog { tricks weight }'],
  ['query ($n: Int) { sized(first: $n) { id name } hello }', { n: null }],
  ['query ($n: Int) { sized(first: $n) { id name } hello }'],
  ['query ($n: Int! = 1) { sized(first: $n) { id name ... on Dog { tricks @include(if: true) } } hello }'],
  [
    'query ($yes: Boolean!) { named { ... on Cat @include(if: $yes) { lives } id @skip(if: $yes) __typename } }',
    { yes: false },
  ],
  [
    'query ($yes: Boolean!) { named { ... on Cat @include(if: $yes) { lives } id @skip(if: $yes) __typename } }',
    { yes: true },
  ],
  ['{ strictDog { name weight } hello }'],
  ['{ cat { friends(first: 3) { id ... on Cat { friends(first: 1) { id } } } } }'],
  [
    'query ($yes: Boolean!) { hello @include(if: $yes) me @skip(if: $yes) cat { id @include(if: $yes) name } }',
    { yes: true },
  ],
  [
    'query ($yes: Boolean!) { hello @include(if: $yes) me @skip(if: $yes) cat { id @include(if: $yes) name } }',
    { yes: false },
  ],
  ['query ($yes: Boolean! = true) { ...F @skip(if: $yes) me } fragment F on Query { cat { name } }'],
  ['query ($yes: Boolean! = true) { ...F @skip(if: $yes) me } fragment F on Query { cat { name } }', { yes: false }],
  ['query ($yes: Boolean!) { pets { ... on Cat @include(if: $yes) { lives } __typename } }', { yes: false }],
  ['{ hello @skip(if: true) @include(if: true) me @include(if: false) __typename }'],
  ['{ boom hello }'],
  ['{ boomLater boom me }'],
  ['{ badInt hello }'],
  ['{ absent wrong hello }'],
  ['{ __typename me }'],
  ['{ __type(name: "Color") { enumValues { name } } }'],
  ['{ __schema { queryType { name } } hello }'],
  ['mutation { touch @skip(if: true) __typename }'],
];

const contextValue: SmallContext = { requester: admin, subscriptions: createFeeds(), seen: new Set() };

const OF_A_RESULT = /^(Int cannot represent|Expected a value of type|Cannot return null)/;

/** Returns the data, the paths of errors and, for request errors, the exact messages. */
function shown({ data, errors }: ExecutionResult): unknown {
  const faults = errors?.map(({ path, message, locations }) => ({
    path,
    message: OF_A_RESULT.test(message) ? '(of a result)' : message,
    located: (locations?.length ?? 0) > 0,
  }));
  return JSON.parse(JSON.stringify({ data, faults: faults?.sort((a, b) => `${a.path}`.localeCompare(`${b.path}`)) }));
}

describe('a plan', () => {
  it.each(corpus.map(([text, variables]) => ({ text, variables })))(
    'answers as graphql-js does: $text $variables',
    async ({ text, variables }) => {
      const document = parse(text);
      expect(validate(schema, document)).toEqual([]);
      const variableValues = variables ?? {};
      const expected = shown(await execute({ schema, document, contextValue, variableValues, hideSuggestions: true }));
      const plan = createPlans(schema).of(document);
      expect(shown((await plan?.bind(variables).run(contextValue)) ?? {})).toEqual(expected);
      const { data, errors } = await execute({ schema, document, contextValue, variableValues });
      const written = await plan?.bind(variables).write(contextValue);
      if (errors) expect(written).toBeNull();
      else expect([null, writeJson(data)]).toContain(written);
      for (let run = 0; run < 3; run++)
        expect(shown((await plan?.bind(variables).run(contextValue)) ?? {})).toEqual(expected);
    },
  );

  it('writes most good answers as text', async () => {
    let good = 0;
    let written = 0;
    for (const [text, variables] of corpus) {
      const document = parse(text);
      const { errors } = await execute({ schema, document, contextValue, variableValues: variables ?? {} });
      if (errors || text.startsWith('mutation')) continue;
      good++;
      const own = await createPlans(schema).of(document)?.bind(variables).write(contextValue);
      written += own === null ? 0 : 1;
    }
    expect(written).toBeGreaterThan(good * 0.6);
  });

  it('answers 400 for a request that cannot run, and never throws', async () => {
    const plan = createPlans(schema).of(parse('query ($n: Int!) { count(n: $n) }'));
    for (const variables of [{}, { n: 'x' }, null, undefined]) {
      const answer = await plan?.bind(variables).run(contextValue);
      expect(answer).not.toHaveProperty('data');
      expect(answer?.errors?.[0]?.extensions['http']).toEqual({ status: 400, spec: true });
      expect(answer?.errors?.[0]).toBeInstanceOf(GraphQLError);
    }
  });

  it('finds no operation if the document does not determine one', () => {
    const plans = createPlans(schema);
    const two = parse('query A { hello } query B { me }');
    expect(plans.of(two)).toBe(null);
    expect(plans.of(two, 'C')).toBe(null);
    expect(plans.of(two, 'B')).toBe(plans.of(two, 'B'));
    expect(plans.of(two, 'B')).not.toBe(plans.of(two, 'A'));
  });

  it('answers each operation of a document separately', async () => {
    const plans = createPlans(schema);
    const two = parse('query A($n: Int! = 1) { count(n: $n) } query B { me }');
    expect(await plans.of(two, 'A')?.bind({}).run(contextValue)).toEqual({ data: { count: 1 } });
    expect(await plans.of(two, 'B')?.bind({}).run(contextValue)).toEqual({ data: { me: 'admin' } });
  });

  it('includes the fields that a document selects through fragments', () => {
    const plan = (text: string) => createPlans(schema).of(parse(text));
    expect(plan('{ ...F } fragment F on Query { ... { __schema { description } } }')).toMatchObject({
      introspects: true,
      onlyMeta: true,
    });
    expect(plan('{ __typename ...F } fragment F on Query { ... { hello } }')).toMatchObject({
      introspects: false,
      onlyMeta: false,
    });
    expect(plan('{ a: __type(name: "X") { name } hello }')).toMatchObject({ introspects: true, onlyMeta: false });
  });
});

describe('the cost of a plan', () => {
  const cost = (text: string, variables: Record<string, unknown> = {}) =>
    createPlans(schema).of(parse(text))?.bind(variables).cost(null);

  it('follows the sizes of nested lists', () => {
    expect(cost('{ hello }')).toBe(1);
    expect(cost('{ named(first: 10) { id name } }')).toBe(21);
    expect(cost('{ named(first: 10) { id ... on Cat { friends(first: 5) { id } } } }')).toBe(1 + 10 * (1 + 1 + 5));
  });

  it('takes sizes from variables, their defaults, and the default of the field', () => {
    const query = 'query ($n: Int = 20) { named(first: $n) { id } }';
    const plan = createPlans(schema).of(parse(query));
    expect([{}, { n: 3 }, {}, { n: null }, { n: 3 }].map((variables) => plan?.bind(variables).cost(null))).toEqual([
      21, 4, 21, 101, 4,
    ]);
  });

  it('is not affected by invalid variables of an earlier request', () => {
    const plan = createPlans(schema).of(parse('query ($c: Color) { color(like: $c) named(first: 50) { id } }'));
    expect(plan?.bind({ c: 'NONE' }).cost(null)).toBe(0);
    expect(plan?.bind({ c: 'RED' }).cost(null)).toBe(52);
  });

  it('is computed once for input objects of one structure, unless they are large', () => {
    let computed = 0;
    const sized = (): number => (computed++, 1);
    const input = new GraphQLInputObjectType({
      name: 'Names',
      fields: { names: { type: new GraphQLList(GraphQLString) }, size: { type: GraphQLInt } },
    });
    const found = { type: GraphQLString, args: { of: { type: input } } };
    const fields = { sized: { ...found, extensions: { complexity: sized } }, plain: found };
    const plans = createPlans(new GraphQLSchema({ query: new GraphQLObjectType({ name: 'Query', fields }) }));
    const dear = parse('query ($of: Names) { sized(of: $of) plain(of: $of) }');
    const times = (names: readonly string[], size = 1, document = dear): number => {
      const before = computed;
      plans.of(document)?.bind({ of: { names, size } }).cost(null);
      return computed - before;
    };
    expect([times(['a']), times(['b']), times(['b'], 2), times(['a', 'b']), times(['c', 'd'])]).toEqual([
      1, 0, 1, 1, 0,
    ]);
    const many = Array<string>(1_000).fill('a');
    expect([times(many), times(many)]).toEqual([1, 1]);
    expect(times(['a'], 1, parse('query ($of: Names) { plain(of: $of) }'))).toBe(0);
  });

  it('exceeds every bound if it cannot be computed', () => {
    const plan = createPlans(schema).of(parse('query ($n: Int) { sized(first: $n) { id } named(first: 900) { id } }'));
    expect(plan?.bind({ n: null }).cost(null)).toBe(Infinity);
    expect(plan?.bind({ n: null }).fault(null)?.message).toContain('first');
    expect(plan?.bind({ n: 1 }).fault(null)).toBeNull();
    expect(plan?.bind({ n: 1 }).cost(null)).toBe(903);
  });
});

describe('the cost of the schema of the relay', () => {
  const costOf = (text: string, requester: Principal | null = ann) =>
    createPlans(relaySchema).of(parse(text))?.bind(undefined).cost(requester) ?? NaN;

  it('counts what is selected of a row for each row, and what is selected of a page once', () => {
    const page = (first: number, also = '') => costOf(`{ contexts(first: ${first}) { nodes { contextId } ${also} } }`);
    expect(page(101) - page(100)).toBe(1);
    const completeness = 'completeness { complete } pageInfo { endCursor } nextCursor';
    expect(page(1000, completeness) - page(1000)).toBe(page(1, completeness) - page(1));
    const nested = (first: number) =>
      costOf(`{ browserWindows(first: ${first}) { nodes { contexts(first: 10) { nodes { contextId } } } } }`);
    expect(nested(101) - nested(100)).toBe(1 + 1 + 10);
  });

  it('counts the rows that filters scan: of a client, of a page, or of a count', () => {
    const list = (filter: string) => costOf(`{ contexts(first: 1${filter}) { nodes { contextId } } }`);
    const count = (filter: string) => costOf(`{ contextCount${filter} { count } }`);
    const SCANNED = 50;
    expect(list(', filter: { userId: "ann" }')).toBe(list(''));
    expect(list(', filter: { status: IDLE }') - list('')).toBe(SCAN_BUDGET / SCANNED);
    expect(list(', filter: { clientId: "c", windowId: "w" }') - list('')).toBe(CLIENT_CONTEXTS / SCANNED);
    expect(count('')).toBe(2);
    expect(count('(filter: { status: IDLE })')).toBe(2 + COUNT_SCAN / SCANNED);
    const tasks = (n: number) =>
      costOf(
        `{ workers(userId: "ann") { ${Array.from({ length: n }, (_, i) => `t${i}: forTask(taskId: "${i}") { items { contextId } }`).join(' ')} } }`,
      );
    expect(tasks(2) - tasks(1)).toBeGreaterThan(COUNT_SCAN / SCANNED);
  });

  it('of what only administrators may read is not counted for a user, to whom it is forbidden', () => {
    const users = '{ users(first: 50) { nodes { connections(first: 20) { nodes { clientId status } } } } }';
    expect(costOf(users, admin)).toBeGreaterThan(50 * 20 * 2);
    expect(costOf(users)).toBe(2);
    expect(costOf('{ delivery { nodes(first: 1000) { nodes { nodeId links } } } }')).toBe(1);
  });

  it('is refused with what to request instead', () => {
    const advice = (text: string) =>
      createPlans(relaySchema).of(parse(text))?.bind(undefined).advice(ann, QUERY_COST_USER);
    expect(
      advice('{ browserWindows(first: 1000) { nodes { contexts(first: 100) { nodes { contextId title } } } } }'),
    ).toBe('Ask for at most 99 rows of "browserWindows" instead of 1000.');
    const windows = (first: number) =>
      costOf(`{ browserWindows(first: ${first}) { nodes { contexts(first: 100) { nodes { contextId title } } } } }`);
    expect([windows(99) <= QUERY_COST_USER, windows(100) <= QUERY_COST_USER]).toEqual([true, false]);
    const counts = Array.from({ length: 10 }, (_, i) => `c${i}: contextCount(filter: { windowId: "${i}" }) { count }`);
    expect(advice(`{ ${counts.join(' ')} }`)).toBe(
      'Let the filter of "c0" name a client, so that fewer rows are scanned.',
    );
  });
});
