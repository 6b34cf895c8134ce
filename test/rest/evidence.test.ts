/** Tests deduplication, raw messages and spilled payloads over REST. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { spillShares } from '../contract/spill.ts';
import { createMemorySpill } from '../../src/backends/spill/memory.ts';
import { toJson } from '../../src/core/json.ts';
import { createCrypto } from '../../src/platform/system.ts';
import { connect, user } from '../kit/core.ts';
import { numRuns, STORE } from '../kit/store.ts';
import { startRestRelay } from './kit/rest-server.ts';

type Started = Awaited<ReturnType<typeof startRestRelay>>;

const alice = user('alice');
const NO_PAYLOAD = Symbol('no payload');

/** What a store says of itself: its count of live marks, its deduplicator, and what it keeps beside a message. */
const OWN = {
  memory: { liveKeys: 4, dedup: { implementation: 'memory', namespace: null } },
  owned: { liveKeys: 4, dedup: { implementation: 'owned', namespace: expect.any(String) } },
  // No marks are counted, because Redis itself removes expired ones.
  redis: { liveKeys: null, dedup: { implementation: 'redis', namespace: expect.any(String) } },
}[STORE];
/** Owners keep messages in their memory. */
const BESIDE = STORE === 'redis' ? { adapter: 'redis' } : { adapter: 'memory', rowBytes: 1031 };

function retain({ core }: Started, count: number, payload: unknown = { n: 1 }, userId = 'alice') {
  const messages = Array.from({ length: count }, (_, i) => ({
    messageId: `m${i}`,
    kind: 'event',
    streamSuffix: 'notes',
    clientId: 'tab',
    instanceId: 'i1',
    payload: payload === NO_PAYLOAD ? null : toJson(payload),
  }));
  return core.ingest.ingest(user(userId), messages);
}

describe('GET /dedup/stats', () => {
  test('counts what was ingested and what links sent again, in the requested window', async () => {
    await using relay = await startRestRelay();
    await retain(relay, 3);
    await retain(relay, 2);
    const client = await connect(relay.core, alice);
    const path = '/connections/alice/tab/actions/open';
    const waiting = relay.ask({ method: 'POST', path, requester: 'alice', body: { command_id: 'c1' } });
    await expect.poll(() => client.sent.length).toBe(1);
    for (let i = 0; i < 3; i++) await client.result(client.last);
    await waiting;
    const { body } = await relay.ask('/dedup/stats?window_seconds=60');
    expect(body).toEqual({
      window_seconds: 60,
      seen: 8,
      unique: 4,
      duplicates: 4,
      exact: true,
      grain_seconds: 10,
      live_keys: OWN.liveKeys,
    });
    expect((await relay.ask('/dedup/stats')).body.window_seconds).toBe(300);
    await relay.clock.leap(60_000);
    expect((await relay.ask('/dedup/stats?window_seconds=10')).body).toMatchObject({
      seen: 0,
      live_keys: OWN.liveKeys,
    });
  });

  test.each(['9', '3601', '0', '-1', '1.5', 'x', ''])('refuses the window %j', async (window) => {
    await using relay = await startRestRelay();
    const { status, body } = await relay.ask(`/dedup/stats?window_seconds=${window}`);
    expect([status, body.errors[0].parameter]).toEqual([400, 'window_seconds']);
  });
});

describe('GET /dedup/backend', () => {
  test('describes the deduplicator, without secrets', async () => {
    await using relay = await startRestRelay();
    const { body } = await relay.ask('/dedup/backend');
    expect(body).toEqual({ ttl_seconds: 120, ...OWN.dedup });
    expect((await relay.ask('/dedup/backend?namespace=x')).status).toBe(400);
  });
});

describe('GET /history/raw-messages', () => {
  test('is 403 after administrative authentication if raw messages are not enabled, and 401 or 403 before', async () => {
    await using relay = await startRestRelay();
    await retain(relay, 1);
    const reported = async (requester: string | null) => {
      const { status, body } = await relay.ask({ path: '/history/raw-messages', requester });
      return [status, body.code];
    };
    expect(await reported(null)).toEqual([401, 'unauthenticated']);
    expect(await reported('alice')).toEqual([403, 'forbidden']);
    expect(await reported('admin')).toEqual([403, 'raw_history_disabled']);
  });

  test('disabled does not make other routes payload-free', async () => {
    await using relay = await startRestRelay();
    await retain(relay, 1, { secret: 's3cret' });
    const { body } = await relay.ask('/history/messages?stream=alice/notes&include_payload=true');
    expect(body.items[0].payload).toEqual({ secret: 's3cret' });
  });

  test('shows stored messages with what the backend stores beside them, newest first', async () => {
    await using relay = await startRestRelay({ rawMessages: true });
    await retain(relay, 3);
    const { body } = await relay.ask('/history/raw-messages?limit=2');
    const seq = body.items[0].seq;
    expect(body.items).toMatchObject([
      { ...BESIDE, id: 'm2', userId: 'alice', suffix: 'notes', payload: { n: 1 } },
      { seq: seq - 1, id: 'm1' },
    ]);
    expect(body.completeness).toMatchObject({
      complete: false,
      sources: [{ source: 'messages', observed: 2, limit: 2, reason: 'limit_reached' }],
    });
    expect((await relay.ask('/history/raw-messages')).body.completeness.complete).toBe(true);
  });

  test('is limited to one stream on request: an absent one is 404, an invalid one is 400', async () => {
    await using relay = await startRestRelay({ rawMessages: true });
    await retain(relay, 2);
    await retain(relay, 1, { n: 2 }, 'bob');
    expect((await relay.ask('/history/raw-messages')).body.items).toHaveLength(3);
    expect((await relay.ask('/history/raw-messages?stream=bob/notes')).body.items).toHaveLength(1);
    expect((await relay.ask('/history/raw-messages?stream=bob/none')).status).toBe(404);
    for (const stream of ['bob', 'bob/', '/notes', 'bob/a b'])
      expect((await relay.ask(`/history/raw-messages?stream=${encodeURIComponent(stream)}`)).status).toBe(400);
    for (const limit of ['0', '101', '-1', 'x'])
      expect((await relay.ask(`/history/raw-messages?limit=${limit}`)).status).toBe(400);
  });

  test('gives only payloads on request, fetches spilled ones, and skips messages without one', async () => {
    await using relay = await startRestRelay({ rawMessages: true });
    await retain(relay, 1, 'x'.repeat(20_000));
    await retain(relay, 1, NO_PAYLOAD, 'bob');
    await retain(relay, 1, null, 'carol');
    const { body } = await relay.ask('/history/raw-messages?values_only=true');
    expect(body.items).toEqual([null, 'x'.repeat(20_000)]);
    const stored = (await relay.ask('/history/raw-messages?stream=alice/notes')).body.items;
    expect(stored).toMatchObject([{ payload: null, spill: { bytes: 20_002 } }]);
  });

  test('is bounded by 1 MiB and by count, and gives one message even if it is larger', async () => {
    await using relay = await startRestRelay({ rawMessages: true });
    await retain(relay, 100, 'x'.repeat(15_000));
    const { body, text } = await relay.ask('/history/raw-messages');
    expect(body.items.length).toBeGreaterThan(60);
    expect(body.items.length).toBeLessThan(70);
    expect(text.length).toBeLessThan(1024 * 1024 + 2000);
    expect(body.completeness).toMatchObject({ complete: false, sources: [{ reason: 'limit_reached' }] });
    await relay.clock.advance(1);
    await retain(relay, 1, 'x'.repeat(2 ** 20 - 2), 'bob');
    expect((await relay.ask('/history/raw-messages?values_only=true')).body.items).toHaveLength(1);
  });

  test('reports payloads of the sample that cannot be read', async () => {
    const tiny = (clock: Parameters<typeof createMemorySpill>[0]) =>
      createMemorySpill(clock, createCrypto('x'), spillShares(25_000));
    await using relay = await startRestRelay({ rawMessages: true, spill: tiny });
    await retain(relay, 2, 'x'.repeat(20_000));
    const { body } = await relay.ask('/history/raw-messages?values_only=true');
    expect(body.items).toEqual(['x'.repeat(20_000), null]);
    expect(body.completeness).toMatchObject({ complete: false, sources: [{}, { reason: 'store_unavailable' }] });
  });
});

describe('GET /history/messages, with spilled payloads', () => {
  test('shows them on request, and the remainder of a lost one', async () => {
    const tiny = (clock: Parameters<typeof createMemorySpill>[0]) =>
      createMemorySpill(clock, createCrypto('x'), spillShares(25_000));
    await using relay = await startRestRelay({ spill: tiny });
    await retain(relay, 2, 'x'.repeat(20_000));
    const redacted = await relay.ask('/history/messages?stream=alice/notes');
    expect(redacted.body.items).toMatchObject([
      { payload: null, payload_state: 'redacted', payload_bytes: 20_002 },
      { payload: null, payload_state: 'redacted' },
    ]);
    expect(redacted.text).not.toContain('xxx');
    const { body } = await relay.ask('/history/messages?stream=alice/notes&include_payload=true');
    const sha256 = createCrypto('x').sha256(JSON.stringify('x'.repeat(20_000)));
    expect(body.items).toMatchObject([
      { payload: null, payload_state: 'unavailable', payload_bytes: 20_002, payload_sha256: sha256 },
      { payload: 'x'.repeat(20_000), payload_state: 'spilled_included', payload_sha256: sha256 },
    ]);
  });
});

describe('fuzz: the queries of these routes', () => {
  test('answer no 5xx and only documented codes', async () => {
    await using relay = await startRestRelay({ rawMessages: true });
    await retain(relay, 3);
    const value = fc.oneof(
      fc.string(),
      fc.string({ unit: 'binary' }),
      fc.constantFrom('true', 'false', '1', '60', 'alice/notes', 'alice/..', '../..', 'event', '2026-01-01T00:00:00Z'),
      fc.integer().map(String),
    );
    const name = fc.constantFrom(
      ...['stream', 'values_only', 'limit', 'window_seconds', 'prefix', 'user_id', 'cursor', 'kinds', 'after_time'],
      ...['before_time', 'include_payload', 'nonsense'],
    );
    const path = fc.constantFrom(
      ...['/history/raw-messages', '/dedup/stats', '/dedup/backend', '/history/streams', '/history/messages'],
      '/history/command/alice/c1',
    );
    await fc.assert(
      fc.asyncProperty(path, fc.array(fc.tuple(name, value), { maxLength: 4 }), async (requested, parameters) => {
        const query = parameters.map(([key, text]) => `${key}=${encodeURIComponent(text.toWellFormed())}`).join('&');
        const reply = await relay.ask(`${requested}?${query}`);
        expect(reply.status).toBeLessThan(500);
        if (reply.status >= 400) expect(reply.headers['content-type']).toBe('application/problem+json');
      }),
      { numRuns: numRuns(300) },
    );
  });
});
