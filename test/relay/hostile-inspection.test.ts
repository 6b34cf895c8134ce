/** Tests that random input to the reading routes shows nothing of other users. */
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { postJson } from '../http/kit/http-relay.ts';
import { codeOf } from './kit/test-relay.ts';
import { isStable } from './kit/attacked-relay.ts';
import { MARK, OTHER, OWNER, PLANTED, withoutGiven, world, type World } from './kit/planted.ts';
import { numRuns } from '../kit/store.ts';

let at: World;
beforeAll(async () => {
  at = await world();
});
afterAll(async () => {
  // None of the input may have caused an error in the relay, or affected its users.
  expect(at.lines.filter((line) => line.includes('"level":"error"'))).toEqual([]);
  expect((await at.rest(`/contexts/count?user_id=${OWNER}`)).json).toMatchObject({ count: 2 });
  expect((await at.rest(`/history/streams?user_id=${OWNER}`)).json?.['items']).toHaveLength(1);
  await at[Symbol.asyncDispose]();
});

const known = [OWNER, PLANTED.client, PLANTED.command, PLANTED.stream, PLANTED.window, PLANTED.task, PLANTED.context];
const odd = [
  '',
  '..',
  '%',
  '\u0000',
  '__proto__',
  '-1',
  '1e999',
  'NaN',
  'true',
  'worker',
  'terminal',
  '💥',
  'x'.repeat(200),
];
const value = fc.oneof(
  fc.constantFrom(...known, ...odd),
  fc.string({ unit: 'binary', maxLength: 30 }).map((text) => text.toWellFormed()),
  fc.integer().map(String),
);
const PATHS = [
  ...['/dedup/stats', '/dedup/backend', '/history/raw-messages', '/history/streams', '/history/messages'],
  ...['/delivery/summary', '/delivery/nodes', '/delivery/tenants', '/delivery/status', '/delivery/commands'],
  ...['/contexts', '/contexts/count', '/browser-windows', '/browser-windows/count', '/browser-windows/{}'],
  ...['/workers', '/workers/available', '/workers/tasks/{}', '/history/command/{}/{}'],
];
const PARAMETERS = [
  ...['user_id', 'client_id', 'command_id', 'node_id', 'client_type', 'status', 'ownership', 'window_id', 'stage'],
  ...['outcome', 'admitted_after', 'window_seconds', 'stream', 'values_only', 'include_payload', 'limit', 'cursor'],
];
const requester = fc.constantFrom('admin', OTHER, `${OTHER}:host`, 'nobody');

type Answered = { readonly status: number; readonly text: string; readonly code: unknown };

/**
 * Checks that an answer is no failure, has only documented codes, and shows nothing of the owner to anybody except an
 * administrator.
 */
function judge(requester: string, { status, text, code }: Answered): void {
  expect([status, text.slice(0, 300), status < 500]).toEqual([status, text.slice(0, 300), true]);
  if (status >= 400) expect([code, isStable(code)]).toEqual([code, true]);
  if (requester !== 'admin') expect(withoutGiven(text, PLANTED)).not.toContain(MARK);
}

it('no query of the inspection routes makes them fail, or shows anything of another user', async () => {
  const query = fc.array(fc.tuple(fc.constantFrom(...PARAMETERS), value), { maxLength: 4 });
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...PATHS),
      fc.array(value),
      query,
      requester,
      async (path, parts, pairs, requester) => {
        const left = [...parts];
        const filled = path.replaceAll('{}', () => encodeURIComponent(left.pop() || 'x').replaceAll('.', '%2E'));
        const answer = await at.rest(`${filled}?${new URLSearchParams(pairs)}`, { requester });
        judge(requester, { ...answer, code: codeOf(answer) });
      },
    ),
    { numRuns: numRuns(500) },
  );
});

it('no body of ingestion makes it fail, or writes to another user', async () => {
  const names = ['kind', 'stream_suffix', 'client_id', 'instance_id', 'message_id', 'trace_id', 'payload', '__proto__'];
  const member = fc.oneof(
    value,
    fc.constantFrom('event', 'result', 'notes', 'clients/x'),
    fc.jsonValue({ maxDepth: 3 }),
  );
  const message = fc.oneof(
    fc.dictionary(fc.constantFrom(...names), member),
    fc.record({
      kind: fc.constant('event'),
      stream_suffix: value,
      client_id: value,
      instance_id: value,
      payload: member,
    }),
    fc.jsonValue(),
  );
  await fc.assert(
    fc.asyncProperty(fc.oneof(message, fc.array(message, { maxLength: 6 })), requester, async (body, requester) => {
      const answer = await at.rest('/ingest', { ...postJson(body), requester });
      judge(requester, { ...answer, code: codeOf(answer) });
      if (answer.status !== 200) return;
      const { items } = JSON.parse(answer.text);
      expect(items).toHaveLength(Array.isArray(body) ? body.length : 1);
      for (const { stream, error } of items) {
        if (stream !== null) expect(stream.startsWith(`${OTHER}/`)).toBe(true);
        if (error) expect([error.code, isStable(error.code)]).toEqual([error.code, true]);
      }
    }),
    { numRuns: numRuns(300) },
  );
});

it('no variables of GraphQL make the same queries fail, or show anything of another user', async () => {
  const queries = [
    'query ($a: ID!, $n: Int!) { contexts(filter: { userId: $a }, first: $n) { nodes { id: contextId title metadata } } }',
    'query ($a: ID!, $b: ID!) { browserWindow(userId: $a, windowId: $b) { id: windowId state } }',
    'query ($a: ID!, $b: ID!) { workers(userId: $a, first: 5) { idle { id: contextId } forTask(taskId: $b) { items { id: contextId } } } }',
    'query ($a: ID!, $b: ID!) { delivery { status(userId: $a, clientId: $b, commandId: $b) { commandId reason } } }',
    'query ($n: Int!) { dedup { stats(windowSeconds: $n) { seen } backend { namespace } } }',
    'query ($b: String, $n: Int!) { rawMessages(stream: $b, limit: $n) { items } }',
    'query ($a: ID!, $b: String) { streams(userId: $a, prefix: $b) { nodes { key } } }',
  ];
  const given = fc.record({
    a: fc.oneof(value, fc.jsonValue({ maxDepth: 1 })),
    b: fc.oneof(value, fc.jsonValue({ maxDepth: 1 })),
    n: fc.oneof(fc.integer(), fc.integer({ min: 1, max: 60 }), value),
  });
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...queries), given, requester, async (query, variables, requester) => {
      const used = Object.fromEntries(Object.entries(variables).filter(([name]) => query.includes(`$${name}`)));
      const answer = await at.graphql(query, { requester, variables: used });
      judge(requester, answer);
      for (const { extensions } of answer.errors) expect(isStable(extensions?.['code'])).toBe(true);
    }),
    { numRuns: numRuns(300) },
  );
});
