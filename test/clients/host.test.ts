/** Tests publishing events of a site with the host library. */
import { describe, expect, test } from 'vitest';
import { createSiteEventPublisher, HostError, type HostRuntime } from '../../src/clients/host/index.ts';
import { FakeClock } from '../kit/clock.ts';

type Seen = { readonly url: string; readonly token: string | null; readonly body: Record<string, unknown> };
type Script = (seen: Seen, n: number) => Response | Promise<Response>;

const connected: HostRuntime['status'] = {
  state: 'connected',
  welcome: { type: 'welcome', payload: null, node_id: 'n1', ping_ms: 1, dead_ms: 1, max_frame_bytes: 1, in_flight: 1 },
};

function verdict(more: object = {}): Response {
  const good = { retained: true, duplicate: false, published: true, refused_by: null, error: null };
  return Response.json({ items: [{ message_id: 'm1', stream: 'alice/sites/board/events', ...good, ...more }] });
}

function startBench(script: Script, runtime: Partial<HostRuntime> = {}) {
  const seen: Seen[] = [];
  const clock = new FakeClock();
  const fetch: typeof globalThis.fetch = async (url, options) => {
    const token = new Headers(options?.headers).get('authorization');
    const request = { url: String(url), token, body: JSON.parse(String(options?.body)) };
    seen.push(request);
    return script(request, seen.length);
  };
  const base = {
    url: 'ws://127.0.0.1:4400/connect',
    clientId: 'desk',
    instanceId: 'i-1',
    status: connected,
    token: async () => 't1',
  };
  const host = { ...base, ...runtime };
  const publisher = createSiteEventPublisher({ runtime: host, siteId: 'board', fetch, clock, random: () => 0 });
  return { seen, clock, publisher, host };
}

describe('a site event publisher', () => {
  test('sends an ordinary event message, as the runtime and with its credentials', async () => {
    const { publisher, seen } = startBench(() => verdict());
    const receipt = await publisher.publish({ name: 'site_changed', data: { id: 7 }, messageId: 'm1' });
    expect(receipt).toEqual({ messageId: 'm1', retained: true, duplicate: false, published: true, refusedBy: null });
    expect(seen).toEqual([
      {
        url: 'http://127.0.0.1:4400/ingest',
        token: 'Bearer t1',
        body: {
          message_id: 'm1',
          kind: 'event',
          stream_suffix: 'sites/board/events',
          client_id: 'desk',
          instance_id: 'i-1',
          payload: { name: 'site_changed', data: { id: 7 } },
        },
      },
    ]);
  });

  test('reads the ids, the link and the token of the runtime again for each event', async () => {
    const bench = startBench(() => verdict());
    await bench.publisher.publish({ name: 'one' });
    Object.assign(bench.host, { instanceId: 'i-2', clientId: 'desk-2', token: async () => 't2' });
    await bench.publisher.publish({ name: 'two' });
    expect(bench.seen.map(({ token, body }) => [token, body['client_id'], body['instance_id']])).toEqual([
      ['Bearer t1', 'desk', 'i-1'],
      ['Bearer t2', 'desk-2', 'i-2'],
    ]);
    expect(bench.seen.map(({ body }) => body['message_id'])).toEqual([
      expect.stringMatching(/^m-[0-9a-f]{32}$/),
      expect.stringMatching(/^m-[0-9a-f]{32}$/),
    ]);
    Object.assign(bench.host, { status: { state: 'disconnected', reason: 'draining', retryInMs: 500 } });
    const refused = bench.publisher.publish({ name: 'three', messageId: 'm3' });
    await expect(refused).rejects.toMatchObject({ name: 'HostError', code: 'runtime_disconnected', messageId: 'm3' });
    await expect(refused).rejects.toThrow(/draining/);
    expect(bench.seen).toHaveLength(2);
  });

  test.each([
    ['ws://relay.test:81/connect', 'http://relay.test:81/ingest'],
    ['wss://relay.test/base/connect', 'https://relay.test/base/ingest'],
    ['https://relay.test/connect/', 'https://relay.test/ingest'],
  ])("derives the relay's address from the link: %s", async (url, request) => {
    const { publisher, seen } = startBench(() => verdict(), { url });
    await publisher.publish({ name: 'one' });
    expect(seen[0]?.url).toBe(request);
  });

  test('names the rule by which an event was retained and not published', async () => {
    const { publisher } = startBench(() => verdict({ published: false, refused_by: 'allowlist' }));
    const receipt = await publisher.publish({ name: 'secret' });
    expect(receipt).toMatchObject({ retained: true, published: false, refusedBy: 'allowlist' });
  });

  test('sends an event again under the same id when the connection breaks', async () => {
    const bench = startBench((_, n) => {
      if (n === 1) throw new TypeError('fetch failed');
      if (n === 2) return new Response('<h1>Bad gateway</h1>', { status: 502 });
      return verdict({ duplicate: true, published: false });
    });
    const published = bench.publisher.publish({ name: 'one' });
    await bench.clock.advance(5_000);
    expect(await published).toMatchObject({ duplicate: true, published: false, refusedBy: null });
    expect(new Set(bench.seen.map(({ body }) => body['message_id'])).size).toBe(1);
    expect(bench.seen).toHaveLength(3);
  });

  test('gives up after its budget, and names the id under which to try again', async () => {
    const bench = startBench(() => Promise.reject(new TypeError('fetch failed')));
    const failed = expect(bench.publisher.publish({ name: 'one', messageId: 'm9' })).rejects.toMatchObject({
      name: 'HostError',
      code: 'unreachable',
      messageId: 'm9',
      mayHaveRun: true,
    });
    await bench.clock.advance(5_000);
    await failed;
    expect(bench.seen.length).toBeGreaterThan(4);
    expect(new Set(bench.seen.map((body) => JSON.stringify(body))).size).toBe(1);
  });

  test.each([
    [409, 'stale_instance'],
    [403, 'forbidden'],
    [413, 'payload_too_large'],
    [503, 'draining'],
  ])("throws the relay's refusal with its code: %d %s", async (status, code) => {
    const bench = startBench(() => Response.json({ code, detail: 'In words.' }, { status }));
    const failed = bench.publisher.publish({ name: 'one', messageId: 'm1' });
    await expect(failed).rejects.toThrow(HostError);
    await expect(failed).rejects.toMatchObject({ code, message: 'In words.', messageId: 'm1' });
    expect(bench.seen).toHaveLength(1);
  });

  test('asks once more with another token when one is refused', async () => {
    const tokens = ['old', 'new'];
    const token = async () => tokens.shift() ?? 'none';
    const bench = startBench(
      (seen) => (seen.token === 'Bearer new' ? verdict() : Response.json({ code: 'unauthenticated' }, { status: 401 })),
      { token },
    );
    expect(await bench.publisher.publish({ name: 'one' })).toMatchObject({ published: true });
  });

  test('stops when aborted, and refuses data that is not JSON and an invalid site', async () => {
    const bench = startBench(() => new Promise(() => {}));
    const abort = new AbortController();
    const published = bench.publisher.publish({ name: 'one' }, { signal: abort.signal });
    abort.abort(new Error('enough'));
    await expect(bench.publisher.publish({ name: 'two' }, { signal: abort.signal })).rejects.toThrow('enough');
    await expect(bench.publisher.publish({ name: 'one', data: () => 1 })).rejects.toThrow(TypeError);
    await expect(bench.publisher.publish({ name: 'one', data: 1n })).rejects.toThrow(TypeError);
    expect(() => createSiteEventPublisher({ runtime: bench.host, siteId: 'a/b' })).toThrow(TypeError);
    published.catch(() => {});
  });

  test('distinguishes a relay from another server', async () => {
    const bench = startBench(() => Response.json({ hello: 'world' }));
    await expect(bench.publisher.publish({ name: 'one' })).rejects.toMatchObject({ code: 'bad_answer' });
  });
});
