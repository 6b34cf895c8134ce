/** Tests `POST /ingest`. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { spillShares } from '../contract/spill.ts';
import { createMemorySpill } from '../../src/backends/spill/memory.ts';
import { CODES, isCode } from '../../src/protocol/codes.ts';
import { createCrypto } from '../../src/platform/system.ts';
import { connect, user } from '../kit/core.ts';
import { startRestRelay, type Reply } from './kit/rest-server.ts';

type Started = Awaited<ReturnType<typeof startRestRelay>>;

const event = {
  message_id: 'm1',
  kind: 'event',
  stream_suffix: 'sites/board/events',
  client_id: 'tab',
  instance_id: 'i1',
  trace_id: 't',
  parent_span_id: 's',
  payload: { name: 'saved', data: [1] },
};
const RETAINED = {
  message_id: 'm1',
  stream: 'alice/sites/board/events',
  retained: true,
  duplicate: false,
  published: false,
  refused_by: 'owner',
  error: null,
};

function ingest(relay: Started, body: unknown, requester: string | null = 'alice:host'): Promise<Reply> {
  return relay.ask({ method: 'POST', path: '/ingest', requester, body });
}

describe('POST /ingest', () => {
  test('of one message answers its verdict, and the message is in history under the authenticated user', async () => {
    await using relay = await startRestRelay();
    const reply = await ingest(relay, event);
    expect([reply.status, reply.body]).toEqual([200, { items: [RETAINED] }]);
    const { body } = await relay.ask('/history/messages?stream=alice/sites/board/events&include_payload=true');
    expect(body.items).toMatchObject([
      {
        message_id: 'm1',
        stream: 'alice/sites/board/events',
        kind: 'event',
        client_id: 'tab',
        instance_id: 'i1',
        command_id: null,
        trace_id: 't',
        parent_span_id: 's',
        payload: event.payload,
        payload_state: 'included',
      },
    ]);
  });

  test('of a duplicate is 200 and reports it, alone and in an array', async () => {
    await using relay = await startRestRelay();
    await ingest(relay, event);
    const duplicate = { ...RETAINED, retained: false, duplicate: true, refused_by: null };
    expect((await ingest(relay, event)).body).toEqual({ items: [duplicate] });
    expect((await ingest(relay, [event])).body).toEqual({ items: [duplicate] });
  });

  test('of an array is 200 with a verdict per message in the order sent, including refused ones', async () => {
    await using relay = await startRestRelay();
    await connect(relay.core, user('alice'), { clientId: 'live', instanceId: 'i2' });
    const reply = await ingest(relay, [
      { ...event, stream_suffix: 'clients/tab' },
      event,
      { ...event, message_id: 'm2', client_id: 'live' },
      { ...event, message_id: 'm3', kind: 'result' },
      { ...event, message_id: 'm4', stream_suffix: 'notes' },
    ]);
    expect(reply.status).toBe(200);
    const { items } = reply.body;
    expect(items.map((item: { error: { code: string } | null }) => item.error?.code ?? null)).toEqual([
      'reserved_stream',
      null,
      'stale_instance',
      'invalid_argument',
      null,
    ]);
    expect(items[1]).toEqual(RETAINED);
    expect(items[3].error.errors).toEqual([
      { parameter: 'kind', detail: 'expected event: nothing else can be ingested' },
    ]);
    expect(items[4]).toMatchObject({ message_id: 'm4', stream: 'alice/notes', retained: true, refused_by: null });
    expect((await relay.ask('/history/streams?user_id=alice')).body.items).toHaveLength(2);
  });

  test.each([
    [{ stream_suffix: 'clients/tab' }, 400, 'reserved_stream'],
    [{ instance_id: 'i9' }, 409, 'stale_instance'],
    [{ kind: 'result' }, 400, 'invalid_argument'],
    [{ stream_suffix: '../x' }, 400, 'invalid_argument'],
  ])('of one message that is refused before it is retained answers its problem: %j', async (change, status, code) => {
    await using relay = await startRestRelay();
    await connect(relay.core, user('alice'));
    const reply = await ingest(relay, { ...event, ...change });
    expect([reply.status, reply.body.code]).toEqual([status, code]);
    expect(reply.headers['content-type']).toBe('application/problem+json');
    if (code === 'invalid_argument') expect(reply.body.errors).toHaveLength(1);
    // If the message is sent in an array, the same refusal is a verdict in a successful answer.
    expect((await ingest(relay, [{ ...event, ...change }])).status).toBe(200);
    expect((await relay.ask('/dedup/stats')).body.seen).toBe(0);
  });

  test('of one message without room for its payload is 503 store_full', async () => {
    const full = (clock: Parameters<typeof createMemorySpill>[0]) =>
      createMemorySpill(clock, createCrypto('x'), spillShares(1));
    await using relay = await startRestRelay({ spill: full });
    const reply = await ingest(relay, { ...event, payload: 'x'.repeat(20_000) });
    expect([reply.status, reply.body.code]).toEqual([503, 'store_full']);
  });

  test.each([
    [undefined, 'messages'],
    [null, 'body'],
    ['text', 'body'],
    [[], 'messages'],
    [Array.from({ length: 101 }, () => event), 'messages'],
    [{ ...event, user_id: 'bob' }, 'user_id'],
    [[event, { ...event, stream: 'bob/x' }], '[1].stream'],
    [{ ...event, client_id: undefined }, 'client_id'],
    [{ ...event, client_id: 5 }, 'client_id'],
    [[event, 'text'], '[1]'],
    [[[event]], '[0]'],
  ])('of a malformed body is 400, names the place, and retains nothing: %j', async (body, parameter) => {
    await using relay = await startRestRelay();
    const reply = await ingest(relay, body);
    expect([reply.status, reply.body.code]).toEqual([400, 'invalid_argument']);
    expect(reply.body.errors.map((fault: { parameter: string }) => fault.parameter)).toContain(parameter);
    expect((await relay.ask('/history/streams?user_id=alice')).body.items).toEqual([]);
  });

  test('requires the scope host of a user: an administrator has no user', async () => {
    await using relay = await startRestRelay();
    const statuses = [];
    for (const requester of [null, 'admin', 'alice:connect', 'alice:invoke', 'alice:host'])
      statuses.push((await ingest(relay, event, requester)).status);
    expect(statuses).toEqual([401, 403, 403, 403, 200]);
  });

  test('fuzz: answers no 5xx and shows nothing of another user, for any body', async () => {
    await using relay = await startRestRelay();
    await ingest(relay, { ...event, payload: 'canary of bob' }, 'bob:host');
    const member = fc.oneof(fc.constantFrom(...Object.values(event)), fc.jsonValue(), fc.constantFrom('bob', '../bob'));
    const message = fc.oneof(
      fc.record(Object.fromEntries(Object.keys(event).map((name) => [name, member])), { requiredKeys: ['kind'] }),
      fc.dictionary(fc.string(), fc.jsonValue()),
      fc.jsonValue(),
    );
    await fc.assert(
      fc.asyncProperty(fc.oneof(message, fc.array(message, { maxLength: 5 })), async (body) => {
        const reply = await ingest(relay, body);
        expect(reply.status).toBeLessThan(500);
        if (reply.status !== 200) expect(isCode(reply.body.code)).toBe(true);
        else for (const { error } of reply.body.items) if (error) expect(CODES).toHaveProperty(error.code);
        expect(reply.text).not.toContain('canary');
        expect(reply.text).not.toContain('"bob/');
      }),
      { numRuns: 300 },
    );
    const { body } = await relay.ask('/users');
    expect(body.items.map((one: { user_id: string }) => one.user_id)).not.toContain('');
    expect((await relay.ask('/history/streams?user_id=bob')).body.items).toHaveLength(1);
  });
});
