/** Tests that mutations which are written without graphql-js are resolved once. */
import { readFileSync, readdirSync } from 'node:fs';
import {
  concatAST,
  execute,
  getOperationAST,
  GraphQLObjectType,
  GraphQLSchema,
  GraphQLString,
  parse,
  separateOperations,
  type DocumentNode,
  type ExecutionResult,
  type GraphQLFieldConfig,
} from 'graphql';
import { expect, it } from 'vitest';
import type { Core, Invocation } from '../../src/core/core.ts';
import { CallboardError } from '../../src/core/errors.ts';
import { createContext } from '../../src/graphql/schema/context.ts';
import { createPlans } from '../../src/graphql/execute/executor.ts';
import { schema, restSchema } from '../../src/graphql/schema/schema.ts';
import { createWriter } from '../../src/graphql/writer/compile.ts';
import { admin, connect, testCore, user } from '../kit/core.ts';

const operations = (file: string): string =>
  readFileSync(new URL(`../../src/rest/operations/${file}`, import.meta.url), 'utf8').replaceAll(/@rest\([^)]*\)/g, '');
const CALLS = operations('invoke.graphql');
const INGEST = operations('ingest.graphql');
const CALL = parse(`mutation Call($user: ID! = "alice", $params: JSON) {
  a: invokeAction(input: { userId: $user, clientId: "tab", action: "open", params: $params, commandId: "c1", waitFor: ADMITTED }) {
    __typename
    ... on Invocation { commandId outcome stage execution result error { code message } command { userId trace: action } }
    ... on Refusal { code message by retryAfterMs givenCommandId }
  }
}`);

const shown = ({ data, errors }: ExecutionResult): unknown =>
  JSON.parse(
    JSON.stringify({ data, errors: errors?.map(({ message, path, locations }) => ({ message, path, locations })) }),
  );

/** Opens a core whose invocations get this answer, and counts the invocations. */
async function invoking(come: (core: Core) => Promise<Invocation>) {
  const { core, ...rest } = await testCore();
  const counted = { calls: 0 };
  const invoke: Core['rpc']['invoke'] = () => (counted.calls++, come(core));
  const own: Core = { ...core, rpc: { ...core.rpc, invoke } };
  return { ...rest, counted, context: () => createContext({ core: own, requester: admin }) };
}

async function both(of: { context(): object }, document: DocumentNode, variableValues = {}) {
  const plan = createPlans(schema).of(document);
  const contextValue = of.context();
  const expected = await execute({
    schema,
    document,
    variableValues,
    contextValue: of.context(),
    hideSuggestions: true,
  });
  const bound = plan?.bind(variableValues);
  const text = await bound?.write(contextValue);
  return { expected, text, run: () => bound?.run(contextValue) };
}

it.each([
  ['InvokeAction', restSchema],
  ['AwaitCommand', restSchema],
  ['InvokeAction', schema],
])('the document of %s is written as text, every time', async (name, of) => {
  await using test = await testCore();
  await connect(test.core, user('alice'));
  const plan = createPlans(of).of(parse(CALLS), name);
  const variables = { user_id: 'alice', client_id: 'tab', action: 'open', command_id: 'c1' };
  const stage = { wait_for: name === 'AwaitCommand' ? 'COMPLETED' : 'ADMITTED' };
  await test.core.rpc.invoke(admin, {
    userId: 'alice',
    clientId: 'tab',
    action: 'open',
    params: null,
    commandId: 'c1',
    waitFor: 'admitted',
  });
  for (let time = 0; time < 3; time++) {
    const context = createContext({ core: test.core, requester: admin });
    expect(await plan?.bind({ ...variables, ...(name === 'InvokeAction' && stage) }).write(context)).toContain(
      '"command_id":"c1"',
    );
  }
});

it('every mutation of REST is written without graphql-js', () => {
  const folder = new URL('../../src/rest/operations/', import.meta.url);
  const whole = concatAST(readdirSync(folder).map((file) => parse(operations(file))));
  const mutations = Object.entries(separateOperations(whole)).flatMap(([name, document]) => {
    const operation = getOperationAST(document, name);
    return operation?.operation === 'mutation' ? [{ name, source: { schema: restSchema, document, operation } }] : [];
  });
  expect(mutations.length).toBeGreaterThan(10);
  const left = mutations.filter(({ source }) => createWriter({ ...source, fragments: null }) === null);
  expect(left.map(({ name }) => name)).toEqual([]);
});

it('a mutation whose resolver fails is resolved once, and answered as graphql-js answers it', async () => {
  await using test = await invoking(() => Promise.reject(new CallboardError('store_unavailable', 'Not now.')));
  const { expected, text, run } = await both(test, CALL);
  expect([text, test.counted.calls]).toEqual([null, 2]);
  expect(shown((await run()) ?? {})).toEqual(shown(expected));
  expect(expected.errors?.[0]?.path).toEqual(['a']);
  expect(test.counted.calls).toBe(2);
});

it('a mutation whose answer cannot be written is resolved once', async () => {
  const refusal = {
    kind: 'refused',
    code: 'not_connected',
    message: null,
    by: 'target',
    retryAfterMs: null,
    commandId: null,
  };
  await using test = await invoking(() => Promise.resolve(JSON.parse(JSON.stringify(refusal))));
  const { expected, text, run } = await both(test, CALL);
  expect(text).toBeNull();
  expect(shown((await run()) ?? {})).toEqual(shown(expected));
  expect(expected.errors?.[0]?.path).toEqual(['a', 'message']);
  expect(test.counted.calls).toBe(2);
});

it('the document of IngestMessages is written as text, refused messages among them', async () => {
  await using test = await testCore();
  const plan = createPlans(restSchema).of(parse(INGEST));
  const context = createContext({ core: test.core, requester: user('alice') });
  const message = { kind: 'event', streamSuffix: 'notes', clientId: 'tab', instanceId: 'i1', payload: { a: [1] } };
  const messages = [
    { ...message, messageId: 'm1' },
    { ...message, messageId: 'm1' },
    { ...message, kind: 'other' },
  ];
  const { ingestMessages } = JSON.parse((await plan?.bind({ messages }).write(context)) ?? 'null');
  expect(ingestMessages.items).toMatchObject([
    { message_id: 'm1', retained: true, duplicate: false, error: null },
    { message_id: 'm1', retained: false, duplicate: true, error: null },
    { retained: false, error: { code: 'invalid_argument', errors: [{ parameter: 'kind' }] } },
  ]);
});

it('a mutation whose variables are wrong is not resolved', async () => {
  await using test = await invoking(() => Promise.reject(new Error('It was resolved.')));
  for (const variables of [{ user: null }, { user: {} }, { user: ['a'] }]) {
    const { expected, text, run } = await both(test, CALL, variables);
    expect(text).toBeNull();
    expect(shown((await run()) ?? {})).toEqual(shown(expected));
  }
  expect(test.counted.calls).toBe(0);
});

it("omitted arguments get the schema's default each time, also after calls that gave them", async () => {
  await using test = await testCore();
  const seen: unknown[] = [];
  const invoke: Core['rpc']['invoke'] = (_who, request) => {
    seen.push({ ...request });
    return Promise.reject(new CallboardError('not_found', 'None.'));
  };
  const core: Core = { ...test.core, rpc: { ...test.core.rpc, invoke } };
  const plan = createPlans(restSchema).of(parse(CALLS), 'InvokeAction');
  const base = { user_id: 'alice', client_id: 'tab', action: 'open' };
  const sets = [{}, { wait_for: 'ADMITTED', respond_within_ms: 5 }, { params: { a: 1 }, trace_id: 't' }];
  for (const more of [...sets, ...sets, ...sets])
    await plan?.bind({ ...base, ...more }).write(createContext({ core, requester: admin }));
  expect(seen.slice(3, 6)).toEqual(seen.slice(0, 3));
  expect(seen.slice(6)).toEqual(seen.slice(0, 3));
  expect(seen[0]).toMatchObject({ waitFor: 'completed', connectWithinMs: 0, respondWithinMs: 30_000 });
});

it('a mutation whose resolver needs info is left to graphql-js', async () => {
  const field = (resolve: NonNullable<GraphQLFieldConfig<unknown, unknown>['resolve']>) => ({
    type: GraphQLString,
    resolve,
  });
  const mutation = new GraphQLObjectType({
    name: 'Mutation',
    fields: { named: field((_parent, _args, _context, info) => info.fieldName), plain: field(() => 'written') },
  });
  const query = new GraphQLObjectType({ name: 'Query', fields: { a: { type: GraphQLString } } });
  const plans = createPlans(new GraphQLSchema({ query, mutation }));
  expect(await plans.of(parse('mutation { plain }'))?.bind({}).write({})).toBe('{"plain":"written"}');
  const bound = plans.of(parse('mutation { named }'))?.bind({});
  const context = {};
  expect((await bound?.write(context)) ?? null).toBeNull();
  expect(await bound?.run(context)).toEqual({ data: { named: 'named' } });
});
