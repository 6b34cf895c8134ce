/** Tests that calls are answered alike with and without the fast path. */
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseDown } from '../../src/protocol/frame-codec.ts';
import { ask, postJson, type Answer, type Ask } from '../http/kit/http-relay.ts';
import { FakeClock, meanwhile } from '../kit/clock.ts';
import { startTestRelay, until, type TestRelay } from './kit/test-relay.ts';
import { startSlowRelay } from './kit/slow-relay.ts';

/**
 * A relay that is called in two ways: through its own handlers, and through handlers over the same core without the
 * fast path.
 */
let at: TestRelay;
let slow: AsyncDisposable & { readonly url: string };
beforeAll(async () => {
  at = await startTestRelay({}, { clock: new FakeClock(Date.now()) });
  slow = await startSlowRelay(at);
  await answering();
});
afterAll(async () => {
  await slow[Symbol.asyncDispose]();
  await at[Symbol.asyncDispose]();
});

/** Connects a client that does what the params say: `give` a result, `fail`, `ack`, or nothing. */
async function answering(): Promise<void> {
  const actions = [{ name: 'open' }, { name: 'open.all-of:it' }];
  const tab = await at.client({ instance_id: 'i1', payload: { actions } });
  tab.ws.on('message', (data) => {
    const frame = parseDown(String(data));
    if (frame?.type === 'ping') tab.send({ type: 'pong' });
    if (frame?.type !== 'command') return;
    const { command_id } = frame;
    const { give, fail, ack } = JSON.parse(String(data).split('\n')[1] || '{}');
    if (ack) tab.send({ type: 'ack', command_id });
    if (fail) tab.send({ type: 'error', command_id, code: 'handler_failed', message: fail });
    else if (give !== undefined) tab.send({ type: 'result', command_id }, give);
  });
}

const CHANCE = /"(command_id|rpc_id|commandId|rpcId|id)":"[0-9a-f-]{36}"/g;
let calls = 0;

/** Returns the parts of an answer that do not depend on which handler gives it. */
function shown({ status, headers, text }: Answer, id: string): unknown {
  const { date: _date, 'x-request-id': request, 'content-length': _length, ...rest } = headers;
  expect(request).toBeTypeOf('string');
  return { status, headers: rest, text: text.replaceAll(CHANCE, '"$1":"<chance>"').replaceAll(id, '<own>') };
}

/**
 * The time by which the clock moves in each step, in milliseconds. Over Redis, each step waits until the store is idle.
 */
const STEP_MS = 100;

type Call = { readonly path: string; readonly ask: Ask; readonly requester?: string };

/**
 * Repeats a call until its document is known to the fast path. Each time the answer must equal that of the slow path.
 * `<id>` is replaced by a new id in each call.
 */
async function alike({ path, ask: requested, requester = 'alice' }: Call, times = 2): Promise<Answer> {
  const token = requester === 'wrong' ? 'wrong' : await at.token(requester);
  const answers: unknown[] = [];
  let last: Answer | null = null;
  for (const url of [slow.url, ...Array<string>(times).fill(at.url)]) {
    const id = `own-${calls++}-${'x'.repeat(20)}`;
    const body = typeof requested.body === 'string' ? requested.body.replaceAll('<id>', id) : requested.body;
    const own = { ...requested, token, ...(body !== undefined && { body }) };
    last = await meanwhile(at.clock, ask(url + path, own), STEP_MS);
    answers.push(shown(last, id));
    if (requested.body?.includes('<id>'))
      answers.push(shown(await meanwhile(at.clock, ask(url + path, own), STEP_MS), id));
  }
  const round = answers.length / (times + 1);
  for (let i = round; i < answers.length; i++) expect(answers[i]).toEqual(answers[i % round]);
  if (!last) throw new Error('Nothing was asked.');
  return last;
}

const TAB = { user: 'alice', client: 'tab', action: 'open' };
const pathOf = ({ user, client, action }: typeof TAB): string =>
  `/connections/${user}/${client}/actions/${encodeURIComponent(action)}`;

const LINES = {
  text: '\u2028 " \\ é 😀 \u0000',
  n: [1.5, -0, 1e21, null, true],
  outcome: null,
  o: { outcome: 'expired' },
};

/** The REST calls: [what, status, members of the body, target, requester]. */
const ROWS: readonly (readonly [string, number, object, Partial<typeof TAB>?, string?])[] = [
  ['completed', 200, { params: { give: { ok: 1 } } }],
  ['completed with every kind of value', 200, { params: { give: LINES } }],
  ['completed with null', 200, { params: { give: null } }],
  ['completed, an action of another name', 200, { params: { give: 1 } }, { action: 'open.all-of:it' }],
  ['completed by an administrator', 200, { params: { give: [] } }, {}, 'admin'],
  ['completed with every member', 200, everyMember({ give: 'all' })],
  ['asked twice by one id', 200, { params: { give: 2 }, command_id: '<id>' }],
  ['failed by its handler', 200, { params: { fail: 'no "luck" \\' } }],
  ['admitted', 202, { wait_for: 'admitted' }],
  ['admitted, asked twice by one id', 202, { wait_for: 'admitted', command_id: '<id>' }],
  ['acknowledged', 202, { wait_for: 'acknowledged', params: { ack: true } }],
  ['without an end', 504, { respond_within_ms: 1000 }],
  ['without an end, and asked once more', 504, { respond_within_ms: 1000, command_id: '<id>' }],
  ['not connected', 409, {}, { client: 'gone' }],
  ['not connected in time', 504, { connect_within_ms: 500 }, { client: 'gone' }],
  ['not advertised', 404, {}, { action: 'close' }],
  ['another instance', 409, { instance_id: 'i9' }],
  ['null members', 200, { params: { give: 1 }, command_id: null, wait_for: null, trace_id: null }],
  ['parameters that are no object', 400, { params: [1] }],
  ['parameters of the relay’s own', 400, { params: { __cooperative_site_id: 'x' } }],
  ['a time that is too short', 400, { respond_within_ms: -1 }],
  ['a word that is none', 400, { wait_for: 'forever' }],
  ['a number for a text', 400, { trace_id: 5 }],
  ['an unknown member', 400, { constructor: 1 }],
  ['several faults', 400, { wait_for: 5, connect_within_ms: 'x', command_id: '' }],
  ['a trace that is too long', 400, { trace_id: 'x'.repeat(3000) }],
  ['a trace with a control character', 400, { trace_id: 'a\u0000b' }],
  ['a span with a control character', 400, { parent_span_id: '\u0000' }],
  ['a client that is none', 400, {}, { client: ' ' }],
  ['another user’s', 404, {}, {}, 'bob'],
  ['without the scope', 403, {}, {}, 'alice:connect'],
  ['without a token', 401, {}, {}, 'nobody'],
  ['with a bad token', 401, {}, {}, 'wrong'],
];

const CALLS = ROWS.map(([what, status, body, target = {}, requester = 'alice']) => ({
  what,
  status,
  body,
  target,
  requester,
}));

function everyMember(params: object): object {
  return {
    params,
    wait_for: 'completed',
    connect_within_ms: 10,
    respond_within_ms: 5000,
    instance_id: 'i1',
    trace_id: 't',
    parent_span_id: 'p',
  };
}

describe('a call over REST', () => {
  it.each(CALLS)('is answered identically: $what, $status', async ({ status, body, target, requester }) => {
    const answer = await alike({ path: pathOf({ ...TAB, ...target }), ask: postJson(body), requester }, 3);
    expect(answer.status).toBe(status);
  });

  it('is answered identically for any body', async () => {
    const bodies = ['', '{', '[]', 'null', '5', '"x"', `{"params":${'['.repeat(300)}${']'.repeat(300)}}`];
    for (const body of bodies) await alike({ path: pathOf(TAB), ask: { ...postJson({}), body } });
    await alike({ path: pathOf(TAB), ask: { ...postJson({}), headers: { 'content-type': 'text/plain' } } });
    await alike({ path: `${pathOf(TAB)}?wait_for=admitted&x=%zz`, ask: postJson({}) });
    await alike({ path: '/connections/alice/%zz/actions/open', ask: postJson({}) });
    await alike({ path: pathOf(TAB), ask: { method: 'PUT' } });
    await alike({ path: pathOf(TAB), ask: postJson({}, { headers: { origin: 'https://elsewhere.example' } }) });
  });

  it('is awaited again identically, at every stage, and audited', async () => {
    const id = 'asked-anew';
    const path = `/commands/alice/tab/${id}`;
    await alike({ path, ask: {} });
    await meanwhile(at.clock, at.post(pathOf(TAB), { command_id: id, params: { give: { late: 1 } } }));
    const audits = () => at.lines.filter((line) => line.includes('"audit":"payload"')).length;
    const before = audits();
    for (const requester of ['admin', 'alice', 'bob']) {
      await alike({ path, ask: {}, requester });
      await alike({ path: `${path}?within_ms=1000&wait_for=acknowledged`, ask: {}, requester });
      await alike({ path: `${path}?within_ms=x`, ask: {}, requester });
      await alike({ path, ask: { method: 'HEAD' }, requester });
    }
    // Three of the administrator's requests show the result. Each is sent once without the fast path and twice with it.
    expect(audits() - before).toBe(9);
  });
});

const DOCUMENT = `mutation Call($input: InvokeActionInput!) { call: invokeAction(input: $input) {
  __typename
  ... on Invocation { commandId rpcId outcome stage execution result error { code message } command { action outcome delivery { stage } waiters { action } } }
  ... on Refusal { code message by retryAfterMs givenCommandId }
} }`;
const LITERAL = `mutation ($user: ID!, $params: JSON, $wait: WaitStage = COMPLETED, $ms: Int! = 1000) {
  invokeAction(input: { userId: $user, clientId: "tab", action: "open", params: $params, waitFor: $wait, respondWithinMs: $ms }) {
    __typename
    ... on InvokeActionOutcome { outcome result }
    ... on InvokeActionPending { stage }
  }
}`;

function inputOf(body: object, target: Partial<typeof TAB>): object {
  const camel = (name: string): string => name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
  const { user, client, action } = { ...TAB, ...target };
  const members = Object.entries(body).map(([name, value]) => [
    camel(name),
    name === 'wait_for' && typeof value === 'string' ? value.toUpperCase() : value,
  ]);
  return { userId: user, clientId: client, action, ...Object.fromEntries(members) };
}

describe('a call over GraphQL', () => {
  it.each(CALLS)(
    'is answered identically from the first call to the known document: $what',
    async ({ body, target, requester }) => {
      const input = inputOf(body, target);
      const requested = postJson({ query: DOCUMENT, variables: { input } });
      await alike({ path: '/graphql', ask: requested, requester }, 5);
    },
  );

  it('is answered identically with variables inside its input: given, absent, null and wrong', async () => {
    const params = { give: { ok: true } };
    const sets = [
      { user: 'alice', params },
      { user: 'alice', params, wait: 'ADMITTED' },
      { user: 'alice', params, wait: null },
      { user: 'alice', params: null, ms: 1000 },
      { user: 'alice' },
      { user: 'alice', params, ms: 1.5 },
      { user: 'alice', params, ms: null },
      { user: 'alice', params: [params], more: 1 },
      { user: 5, params },
      { params },
      null,
    ];
    for (const variables of sets) await alike({ path: '/graphql', ask: postJson({ query: LITERAL, variables }) }, 5);
    const accept = 'application/graphql-response+json';
    for (const variables of sets)
      await alike({ path: '/graphql', ask: postJson({ query: LITERAL, variables }, { headers: { accept } }) });
  });

  it('is answered identically if the document contains it twice, under conditions, or with other mutations', async () => {
    const one =
      'invokeAction(input: { userId: "alice", clientId: "tab", action: "open", params: { give: 1 } }) { __typename }';
    const documents = [
      `mutation { a: ${one} b: ${one} }`,
      `mutation { a: ${one} __typename }`,
      `mutation ($x: Boolean = false) { a: ${one} @include(if: $x) }`,
      `mutation ($x: Boolean = false) { a: ${one.replace('__typename', '__typename @skip(if: $x)')} }`,
      `mutation ($x: JSON = 7) { a: ${one.replace('give: 1', 'give: $x')} }`,
      `mutation { a: ${one} ...More } fragment More on Mutation { disconnectClient(userId: "alice", clientId: "none") { __typename } }`,
      `mutation { ...More } fragment More on Mutation { ${one} }`,
    ];
    for (const query of documents) await alike({ path: '/graphql', ask: postJson({ query }) }, 5);
  });
});

describe('a caller that hangs up', () => {
  it.each([
    ['REST', pathOf(TAB), JSON.stringify({ respond_within_ms: 60_000 })],
    ['GraphQL', '/graphql', JSON.stringify({ query: DOCUMENT, variables: { input: inputOf({}, {}) } })],
  ])('over %s ends its wait, on the fast path too', async (_over, path, body) => {
    const input = inputOf({ params: { give: 1 } }, {});
    await alike({ path: '/graphql', ask: postJson({ query: DOCUMENT, variables: { input } }) }, 5);
    const waiting = async (): Promise<unknown> => (await at.rest('/rpc/pending/count')).json?.['count'];
    const token = await at.token('alice');
    const socket = connect(at.port, '127.0.0.1');
    const type = `content-type: application/json\r\ncontent-length: ${body.length}`;
    socket.write(`POST ${path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${token}\r\n${type}\r\n\r\n${body}`);
    await until(async () => (await waiting()) === 1);
    socket.destroy();
    await until(async () => (await waiting()) === 0);
  });
});
