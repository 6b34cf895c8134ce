/** Tests that random input to REST, GraphQL and links makes nothing fail. */
import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { UP } from '../../src/protocol/frames.ts';
import { postJson, type Answer } from '../http/kit/http-relay.ts';
import { FIELDS } from './kit/access-fields.ts';
import { ROUTES } from './kit/access-routes.ts';
import { codeOf } from './kit/test-relay.ts';
import { isStable, startAttackedRelay, type AttackedRelay } from './kit/attacked-relay.ts';
import { documentOf, rootFields } from './kit/selection.ts';
import { numRuns } from '../kit/store.ts';

let at: AttackedRelay;
beforeAll(async () => {
  at = await startAttackedRelay();
});
afterEach(() => at.sound());
afterAll(async () => {
  at.clean();
  await at[Symbol.asyncDispose]();
});

const awkwardText = fc.oneof(
  fc.constantFrom(
    '',
    ' ',
    '..',
    '%00',
    '__proto__',
    'constructor',
    'neighbour',
    'calm',
    '-1',
    '1e999',
    'null',
    '[]',
    '💥',
  ),
  fc.constantFrom('x'.repeat(129), 'neighbour/clients/calm', "'; DROP TABLE users", '${7*7}', '\r\nx: y'),
  fc.string({ unit: 'binary', maxLength: 40 }).map((text) => text.toWellFormed()),
);
const requester = fc.constantFrom('admin', 'mallory', 'mallory:host', 'nobody');

/** Draws one of the texts with one character changed. */
const mutated = (texts: readonly string[]): fc.Arbitrary<string> =>
  fc
    .record({
      text: fc.constantFrom(...texts),
      place: fc.nat(),
      put: fc.string({ unit: 'binary', maxLength: 3 }),
      cut: fc.nat(4),
    })
    .map(({ text, place, put, cut }) => {
      const start = place % (text.length + 1);
      return text.slice(0, start) + put + text.slice(start + cut);
    });

function judge({ status, text, headers }: Answer, code: unknown): void {
  expect([status, status < 500 || status === 504, text.slice(0, 200)]).toEqual([status, true, expect.any(String)]);
  if (status >= 400)
    expect([headers['content-type'], code, isStable(code)]).toEqual([expect.stringContaining('json'), code, true]);
  expect(text).not.toMatch(/node:internal|\/src\/|\.ts:\d/);
}

it('no path, parameter or body of REST makes the relay fail', async () => {
  const names = [
    'user_id',
    'client_id',
    'cursor',
    'limit',
    'status',
    'stream',
    'kinds',
    'after_time',
    'within_ms',
    'prefix',
    'x',
  ];
  const operation = fc.constantFrom(...Object.keys(ROUTES));
  const query = fc.dictionary(fc.oneof(fc.constantFrom(...names), awkwardText), awkwardText, { maxKeys: 4 });
  const members = ['params', 'command_id', 'wait_for', 'connect_within_ms', 'instance_id', 'reason', '__proto__', 'x'];
  const body = fc.oneof(
    fc.jsonValue({ maxDepth: 3 }),
    fc.dictionary(fc.constantFrom(...members), fc.oneof(awkwardText, fc.jsonValue({ maxDepth: 2 }))),
  );
  await fc.assert(
    fc.asyncProperty(
      operation,
      fc.array(awkwardText),
      query,
      body,
      requester,
      async (name, parts, search, sent, requester) => {
        const [method = '', template = ''] = name.split(' ');
        const left = [...parts];
        const path = template.replaceAll(/\{\w+\}/g, () =>
          encodeURIComponent(left.pop() || 'x').replaceAll('.', '%2E'),
        );
        const target = `${path}?${new URLSearchParams(search)}`;
        const options = method === 'GET' ? {} : postJson(sent);
        // An administrator may disconnect clients and drain nodes, so this input would do harm. A user sends it
        // instead.
        const asks = /disconnect|drain/.test(template) && requester === 'admin' ? 'mallory' : requester;
        const answer = await at.ask(target, { ...options, method, token: await at.token(asks) });
        judge(answer, codeOf(answer));
      },
    ),
    { numRuns: numRuns(400) },
  );
});

it('no document and no variables of GraphQL make the relay fail', async () => {
  const queries = rootFields()
    .filter(({ operation }) => operation === 'query')
    .flatMap((field) => (FIELDS[field.name] ?? []).map(({ call }) => documentOf(field, call)));
  const variables = fc.dictionary(
    fc.constantFrom('user', 'client', 'command', 'stream', 'action', 'params', 'after'),
    fc.oneof(awkwardText, fc.jsonValue({ maxDepth: 2 })),
  );
  const document = fc.oneof(mutated(queries), fc.constantFrom(...queries));
  await fc.assert(
    fc.asyncProperty(document, variables, requester, async (query, given, requester) => {
      const answer = await at.graphql(query, { requester, variables: given });
      judge(answer, answer.code);
      for (const { extensions } of answer.errors)
        expect([extensions?.['code'], isStable(extensions?.['code'])]).toEqual([extensions?.['code'], true]);
    }),
    { numRuns: numRuns(250) },
  );
});

it('no cursor opens except the issued ones, whichever character of one is changed', async () => {
  for (let i = 0; i < 3; i++) await at.client({ user: 'mallory', client_id: `tab-${i}`, payload: {} });
  const read = (after: string) =>
    at.graphql('query ($after: String) { connections(first: 1, after: $after) { nextCursor } }', {
      requester: 'mallory',
      variables: { after },
    });
  const first = await at.data('{ connections(first: 1) { nextCursor } }', { requester: 'mallory' });
  const good: string = first['connections'].nextCursor;
  expect((await read(good)).code).toBeUndefined();
  await fc.assert(
    fc.asyncProperty(fc.oneof(mutated([good]), awkwardText, fc.base64String()), async (cursor) => {
      if (cursor !== good) expect([cursor, (await read(cursor)).code]).toEqual([cursor, 'invalid_cursor']);
    }),
    { numRuns: numRuns(200) },
  );
});

it('no token is accepted except the signed ones, whichever character of one is changed', async () => {
  const good = (await at.token('mallory')) ?? '';
  const [head = '', claims = '', signature = ''] = good.split('.');
  const forged = fc.oneof(
    mutated([good]).map((text) => text.replaceAll(/[^\x21-\x7e]/g, '')),
    fc.json().map((json) => `${head}.${Buffer.from(json).toString('base64url')}.${signature}`),
    fc.constantFrom(`${head}.${claims}.`, `.${claims}.${signature}`, `${head}.${claims}`),
  );
  const same = (token: string): boolean =>
    token.split('.').slice(0, 2).join('.') === `${head}.${claims}` && token.length === good.length;
  await fc.assert(
    fc.asyncProperty(forged, async (token) => {
      if (token === '' || same(token)) return;
      const answer = await at.ask('/users', { token });
      expect([token, [401, 429].includes(answer.status), isStable(codeOf(answer))]).toEqual([token, true, true]);
    }),
    { numRuns: numRuns(100) },
  );
  await at.pass(61_000);
});

it("no frames make the relay fail, nor another user's link", async () => {
  const types = fc.constantFrom(...Object.keys(UP), 'welcome', '__proto__');
  const members = [...new Set(Object.values(UP).flatMap((table) => Object.keys(table)))];
  const header = fc.tuple(
    types,
    fc.dictionary(fc.constantFrom(...members), fc.oneof(awkwardText, fc.integer(), fc.constant(null))),
  );
  const frame = fc.oneof(
    header.map(([type, rest]) => JSON.stringify({ ...rest, type })),
    fc.tuple(header, fc.json()).map(([[type, rest], payload]) => `${JSON.stringify({ ...rest, type })}\n${payload}`),
    awkwardText,
  );
  await fc.assert(
    fc.asyncProperty(fc.array(frame, { maxLength: 10 }), fc.boolean(), async (frames, isClient) => {
      const peer = isClient ? await at.client({ user: 'mallory' }) : await at.caller('mallory');
      for (const text of frames) if (peer.ws.readyState === peer.ws.OPEN) peer.raw(text);
      peer.ws.close(1000);
      await peer.closed;
      for (const { code } of peer.seen('refused')) expect([code, isStable(code)]).toEqual([code, true]);
    }),
    { numRuns: numRuns(100) },
  );
});
