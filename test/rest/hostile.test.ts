/** Tests that random requests to REST are answered with a documented code. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { startRestRelay, type Reply } from './kit/rest-server.ts';
import { startSmall } from './kit/small-schema.ts';

/** Text for a request line: other characters than ASCII are sent escaped, and some escapes are invalid. */
const rawText = fc.oneof(
  fc.string({ maxLength: 40 }).map(encodeURIComponent),
  fc.string({ unit: 'grapheme', maxLength: 10 }).map((text) => encodeURIComponent(text.toWellFormed())),
  fc.constantFrom('%ZZ', '%', '%00', '%FF', '%2F..%2F', '..', '__proto__', 'constructor', '-1', 'NaN', '9'.repeat(400)),
  fc.string({ unit: fc.constantFrom(..."abz09-._~:@!$'()*+,;="), minLength: 1, maxLength: 600 }),
);

const names = [
  'user_id',
  'client_id',
  'status',
  'cursor',
  'limit',
  'stream',
  'kinds',
  'after_time',
  'min_age_ms',
  'within_ms',
  'wait_for',
  'include_payload',
  'prefix',
];
const query = fc
  .array(fc.tuple(fc.oneof(fc.constantFrom(...names), rawText), rawText), { maxLength: 6 })
  .map((pairs) => pairs.map(([name, value]) => `${name}=${value}`).join('&'));

const members = [
  'params',
  'command_id',
  'wait_for',
  'connect_within_ms',
  'respond_within_ms',
  'instance_id',
  'trace_id',
  'reason',
  '__proto__',
];
const body = fc.oneof(
  fc.jsonValue({ maxDepth: 4 }),
  fc.dictionary(fc.constantFrom(...members), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 5 }),
);

function judge({ status, body: answer, headers }: Reply): void {
  expect([status, status < 500 || status === 504 ? 'fine' : answer]).toEqual([status, 'fine']);
  if (headers['x-no-route'] !== undefined || status < 400) return;
  expect(headers['content-type']).toBe('application/problem+json');
  expect(answer).toMatchObject({ type: 'about:blank', status, code: expect.any(String), detail: expect.any(String) });
}

test('no path, query or body makes any route fail', async () => {
  await using relay = await startRestRelay();
  const operations = fc.constantFrom(...relay.handler.operations);
  const requester = fc.constantFrom('admin', 'alice', 'alice:host');
  await fc.assert(
    fc.asyncProperty(
      operations,
      requester,
      fc.array(rawText),
      query,
      body,
      async (operation, requester, parts, search, sent) => {
        const left = [...parts];
        const path = operation.path.replaceAll(/\{\w+\}/g, () => left.pop() ?? 'x');
        const { method } = operation;
        const target = `${path}${search === '' ? '' : `?${search}`}`;
        judge(await relay.ask({ method, path: target, requester, ...(method === 'POST' && { body: sent }) }));
      },
    ),
    { numRuns: 600 },
  );
});

test('resolvers get only what their types allow, for any body', async () => {
  await using relay = await startSmall();
  relay.small.answer = { __typename: 'Receipt', state: 'red' };
  const fields = ['color', 'params', 'at', 'capability_profile', 'times', 'id', '__proto__'];
  const sent = fc.dictionary(fc.constantFrom(...fields), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 4 });
  await fc.assert(
    fc.asyncProperty(sent, async (given) => {
      relay.small.seen.length = 0;
      const reply = await relay.ask({ method: 'POST', path: '/things/a', body: given });
      judge(reply);
      expect(relay.small.seen.length).toBe(reply.status === 200 ? 1 : 0);
      if (reply.status === 200) expect(relay.small.seen[0]).toMatchObject({ input: { id: 'a' } });
      else expect(reply.body.code).toBe('invalid_argument');
    }),
    { numRuns: 300 },
  );
});

test('a NUL, an emoji, a lone surrogate and other odd names are refused as values, not as failures', async () => {
  await using relay = await startRestRelay();
  for (const value of ['%00', 'a%00b', '%F0%9F%92%A9', '%ED%A0%80', '%0d%0aset-cookie:x', '%E2%80%A8']) {
    for (const path of [`/users/${value}`, `/connections?user_id=${value}`, `/history/messages?stream=${value}`]) {
      const reply = await relay.ask(path);
      judge(reply);
      expect([path, reply.headers['set-cookie']]).toEqual([path, undefined]);
    }
  }
});
