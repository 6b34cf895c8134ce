/** Tests that queries are answered alike with and without the fast path, byte for byte. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { signToken } from '../../src/http/tokens.ts';
import { SECRET, ask, postJson, type Answer, type Ask } from '../http/kit/http-relay.ts';
import { FakeClock, meanwhile } from '../kit/clock.ts';
import { advertisement, connect, user } from '../kit/core.ts';
import { ROUTES } from './kit/access-routes.ts';
import { readRestDocuments, variablesOf } from './kit/rest-documents.ts';
import { ABSENT, OTHER, OWNER, PLANTED, VIEWER, world, type World } from './kit/planted.ts';
import { startSlowRelay } from './kit/slow-relay.ts';

/**
 * A relay that is queried in two ways: through its own handlers, and through handlers over the same core without the
 * fast path.
 */
let at: World;
let slow: AsyncDisposable & { readonly url: string };
beforeAll(async () => {
  at = await world({ clock: new FakeClock(Date.now()) });
  slow = await startSlowRelay(at);
});
afterAll(async () => {
  await slow[Symbol.asyncDispose]();
  await at[Symbol.asyncDispose]();
});

/** Returns the parts of an answer that do not depend on the time of the request. */
function shown({ status, headers, text }: Answer): unknown {
  const { date: _date, 'x-request-id': _id, ...rest } = headers;
  return { status, headers: rest, text: text.replaceAll(/"id":"[0-9a-f-]{36}"/g, '"id":"<chance>"') };
}

/**
 * Repeats a query until its document is known, its text is cached and Yoga is bypassed. Each time the answer must equal
 * that of the slow path.
 */
async function alike(path: string, options: Ask & { readonly requester?: string }, times = 4): Promise<Answer> {
  const { requester = 'admin', ...requested } = options;
  const shownToken = await at.token(requester);
  const token = { token: shownToken };
  const expected = await ask(slow.url + path, { ...requested, ...token });
  for (let time = 0; time < times; time++) {
    expect(shown(await ask(at.url + path, { ...requested, ...token }))).toEqual(shown(expected));
  }
  return expected;
}

const post = (query: string, more: object = {}, headers: Record<string, string> = {}): Ask =>
  postJson({ query, ...more }, { headers });

const questions = readRestDocuments();
const readings = questions.filter(({ operation }) => operation.operation === 'query');
const examples = readings.flatMap((question) =>
  (ROUTES[question.name] ?? [])
    .filter((route) => route.target(PLANTED).startsWith('/') && question.name.startsWith('GET'))
    .map((route) => ({ question, route, example: route.target(PLANTED) })),
);
const everyone = ['admin', OWNER, OTHER, VIEWER, 'nobody'];

describe('the fast path gives the same bytes as the slow path', () => {
  it.each(examples)(
    'for GET $example, for any requester, present or absent, right or wrong',
    async ({ question, route }) => {
      for (const requester of everyone) await alike(route.target(at.named(PLANTED)), { requester }, 2);
      await alike(route.target(ABSENT), {}, 2);
      await alike(route.target(at.named(PLANTED)), { method: 'HEAD' }, 2);
      const target = route.target(at.named(PLANTED));
      await alike(`${target}${target.includes('?') ? '&' : '?'}limit=0&strange=%zz`, {}, 2);
      expect(question.name).toMatch(/^GET/);
    },
  );

  it.each(examples)('for the document of GET $example over GraphQL, for any requester', async ({ question, route }) => {
    const variables = variablesOf(question, route.target(at.named(PLANTED)), undefined);
    for (const requester of everyone) await alike('/graphql', { ...post(question.text, { variables }), requester });
    await alike('/graphql', post(question.text, { variables: { ...variables, limit: -1, user_id: {} } }));
  });
});

describe('a known document', () => {
  const NESTED = `query Nested($first: Int! = 2, $status: ConnectionStatus) {
    users(first: $first) { nodes { id connections(first: 10, status: $status) { nodes { clientId status metadata actions { items { name } } } pageInfo { endCursor } } } }
  }
  query Own { connections { nodes { userId clientId lastSeenAt } } }
  mutation Gone { disconnectClient(userId: "nobody", clientId: "nowhere") { __typename } }`;
  const named = { operationName: 'Nested' };

  it('is answered completely with characters of more than one byte', async () => {
    await connect(at.callboard.core, user('zoë'), { metadata: '{"a":"\u{1f600}"}' as never });
    const query = '{ user(userId: "zoë") { id: userId connections { nodes { clientId metadata } } } }';
    const { text } = await alike('/graphql', post(query));
    expect(JSON.parse(text).data.user).toMatchObject({
      id: 'zoë',
      connections: { nodes: [{ metadata: { a: '\u{1f600}' } }] },
    });
  });

  it('is answered identically for every accept header that a client may send', async () => {
    const kinds = [
      '*/*',
      'application/json',
      'application/graphql-response+json',
      'application/graphql-response+json, application/json',
      'application/json, application/graphql-response+json',
      'application/graphql-response+json;q=0.5, application/json',
      'text/html',
      'image/png',
      '',
    ];
    for (const accept of kinds) await alike('/graphql', post(NESTED, named, { accept }));
    await alike('/graphql', post(NESTED, named));
    await alike('/graphql?operationName=Own', post(NESTED, named));
  });

  it('is refused as before: by its variables, its operation, its parameters, its requester and its cost', async () => {
    await alike('/graphql', post(NESTED, named));
    for (const variables of [{ first: 0 }, { first: 'x' }, { first: null }, { first: 5000 }, { status: 'x' }, [], 'x'])
      await alike('/graphql', post(NESTED, { ...named, variables }));
    for (const operationName of ['Own', 'Gone', 'Absent', 7, '', null])
      await alike('/graphql', post(NESTED, { operationName }));
    for (const extensions of [{}, { persistedQuery: {} }, 'x', null])
      await alike('/graphql', post(NESTED, { ...named, extensions }));
    for (const requester of everyone) await alike('/graphql', { ...post(NESTED, { operationName: 'Own' }), requester });
    const own = '{ connections(first: 1000) { nodes { contexts(first: 1000) { nodes { contextId } } } } }';
    const costly = await alike('/graphql', { ...post(own), requester: OWNER });
    expect(costly.json).toMatchObject({ errors: [{ extensions: { code: 'too_complex' } }] });
    await alike('/graphql', postJson([{ query: NESTED, ...named }]));
    await alike('/graphql', { ...post(NESTED, named), headers: { 'content-type': 'text/plain' } });
    await alike('/graphql', post(NESTED, named, { origin: 'https://elsewhere.example' }));
    await alike('/graphql', {
      ...post(NESTED, named),
      body: `{"query":${JSON.stringify(NESTED)}`,
      headers: { 'content-type': 'application/json' },
    });
  });

  it('reveals nothing for a bad token', async () => {
    const expected = await ask(`${slow.url}/graphql`, { ...post(NESTED, named), token: 'wrong' });
    expect(expected.status).toBe(401);
    for (let time = 0; time < 3; time++)
      expect(shown(await ask(`${at.url}/graphql`, { ...post(NESTED, named), token: 'wrong' }))).toEqual(
        shown(expected),
      );
  });

  it("is answered for each viewer with that viewer's rights", async () => {
    const own =
      '{ connections { nodes { userId clientId actions { items { name } } } nextCursor pageInfo { endCursor } } }';
    const answers = [];
    for (const requester of [OWNER, OTHER, 'admin', OWNER, OTHER])
      answers.push((await alike('/graphql', { ...post(own), requester })).text);
    expect(new Set(answers).size).toBe(3);
    expect(answers[1]).not.toContain(OWNER);
    expect(answers[4]).toBe(answers[1]);
  });
});

describe('no stale data is shown', () => {
  const WATCH = `{ connections { nodes { clientId instanceId status heartbeat lastSeenAt disconnectCause metadata actionNames actions { items { name summary } } } } }`;
  const now = async (requester: string = OWNER): Promise<string> => {
    await alike('/connections?limit=5', {}, 2);
    return (await alike('/graphql', { ...post(WATCH), requester })).text;
  };

  it('after time, other actions, another instance and a disconnect', async () => {
    const answers = [await now()];
    for (const ms of [24_000, 10_000, 12_000]) {
      await at.clock.advance(ms);
      answers.push(await now());
    }
    const key = { user: OWNER, client_id: PLANTED.client };
    const again = await at.client({ ...key, instance_id: 'second', payload: { actions: [{ name: 'first' }] } });
    answers.push(await now());
    again.send({ type: 'actions' }, { actions: [{ name: 'second', summary: 'other' }] });
    await expect.poll(() => now()).toContain('second');
    answers.push(await now());
    await meanwhile(at.clock, at.post(`/connections/${OWNER}/${PLANTED.client}/disconnect`, {}, 'admin'));
    await expect.poll(() => now()).toContain('OPERATOR');
    answers.push(await now());
    expect(new Set(answers).size).toBeGreaterThanOrEqual(answers.length - 1);
  });

  it('for a token that has expired', async () => {
    const token = { secret: SECRET, user: OWNER, scopes: ['invoke'], ttlSeconds: 30, now: at.clock.now() };
    at.know('short', await signToken(token));
    expect((await alike('/graphql', { ...post(WATCH), requester: 'short' })).status).toBe(200);
    // The token lives for 30 s, and the relay tolerates clocks that differ by 30 s. One second more, and the token has
    // expired.
    await at.clock.advance(61_000);
    expect((await alike('/graphql', { ...post(WATCH), requester: 'short' })).status).toBe(401);
  });
});

it('gives the same bytes for a large list, which is sent as cached bytes', async () => {
  const actions = Array.from({ length: 8 }, (_, i) => ({ ...advertisement(`open.${i}`), summary: 'x'.repeat(300) }));
  for (let i = 0; i < 10; i++)
    await connect(at.callboard.core, user('large@example.com'), { clientId: `c${i}`, actions });
  const query = `query ($id: ID!) { user(userId: $id) { id connections { nodes { clientId actions { items { name summary } } } }
    completeness { complete } } }`;
  const { text } = await alike('/graphql', post(query, { variables: { id: 'large@example.com' } }));
  expect(text.length).toBeGreaterThan(20_000);
  expect(JSON.parse(text).data.user.connections.nodes).toHaveLength(10);
  const read = await alike('/connections?user_id=large@example.com', {});
  expect(read.status).toBe(200);
  await alike('/connections?user_id=large@example.com', { method: 'HEAD' });
});
