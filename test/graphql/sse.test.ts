/** Tests subscriptions over event streams: both modes of graphql-sse, bounds and ends. */
import { type IncomingMessage, request } from 'node:http';
import { describe, expect, it } from 'vitest';
import type { Principal } from '../../src/core/auth/principal.ts';
import {
  SSE_OPERATIONS,
  SSE_PER_ADMIN,
  SSE_PER_PRINCIPAL,
  SSE_PING_MS,
  SSE_RESERVATION_MS,
  SSE_STALL_MS,
} from '../../src/core/limits.ts';
import { user } from '../kit/core.ts';
import { type GraphqlServer, principals, startGraphqlServer } from './kit/graphql-server.ts';
import { openRaw, type RawStream, subscribeRaw } from './kit/stream.ts';

// Reads an HTTP response slowly, for tests of buffers.

/** A reader that receives nothing until it is resumed. */
type SlowReader = {
  /** Resolves when no more bytes arrive, because the sockets between the relay and the reader are full. */
  blocked(): Promise<void>;
  resume(): void;
  until(part: string): Promise<void>;
  /** Returns the numbers before the colons of `text`, in order. */
  numbers(): number[];
  pings(): number;
  destroy(): void;
};

async function openPaused(server: GraphqlServer, body: { query: string; variables?: unknown }): Promise<SlowReader> {
  const response = await openResponse(server, JSON.stringify(body));
  const { socket } = response;
  let text = '';
  let wake = (): void => {};
  response.on('data', (chunk: Buffer) => {
    // Padding is long, and no test looks at it.
    text += chunk.toString('latin1').replace(/x{2,}/g, '');
    wake();
  });
  response.on('error', () => {});
  response.pause();
  return {
    async blocked() {
      for (let same = 0, before = -1; same < 50;) {
        await new Promise((done) => setImmediate(done));
        same = socket.bytesRead === before ? same + 1 : 0;
        before = socket.bytesRead;
      }
    },
    resume: () => void response.resume(),
    async until(part) {
      while (!text.includes(part)) await new Promise<void>((done) => (wake = done));
    },
    numbers: () => [...text.matchAll(/"text":"(\d+):/g)].map(([, n]) => Number(n)),
    pings: () => text.split(':\n\n').length - 1,
    destroy: () => void response.destroy(),
  };
}

function openResponse(server: GraphqlServer, body: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const headers = { accept: 'text/event-stream', 'content-type': 'application/json', authorization: 'Bearer alice' };
    request(server.url, { method: 'POST', headers, agent: false }, resolve).on('error', reject).end(body);
  });
}

const TICKS = 'subscription { ticks }';
const COMPLETE = 'event: complete\ndata:\n\n';
const push = (server: GraphqlServer, n: number): void => server.subscriptions.feeds.forEach((feed) => feed.push(n));

/** Pushes events one by one, with pauses in which the handler can take each event. */
async function pushSlowly(server: GraphqlServer, from: number, to: number): Promise<void> {
  for (let n = from; n < to; n++) {
    push(server, n);
    await new Promise((done) => setImmediate(done));
  }
}

type Requested = { requester?: string | null; token?: string; body?: unknown; search?: string; accept?: string };
/** Sends a request to the route that serves both modes. */
function toStream(
  server: GraphqlServer,
  method: string,
  { requester = 'alice', token, body, search = '', accept }: Requested = {},
): Promise<RawStream> {
  return openRaw(`${server.url}/stream${search}`, {
    method,
    headers: {
      ...(requester !== null && { authorization: `Bearer ${requester}` }),
      ...(token !== undefined && { 'x-graphql-event-stream-token': token }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(accept !== undefined && { accept }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
}
async function reserve(server: GraphqlServer, requester = 'alice'): Promise<string> {
  const answer = await toStream(server, 'PUT', { requester });
  await answer.ended;
  expect(answer.status).toBe(201);
  return answer.text();
}
const open = (server: GraphqlServer, token: string, requester = 'alice') =>
  toStream(server, 'GET', { requester, token, accept: 'text/event-stream' });
const operate = (
  server: GraphqlServer,
  token: string,
  operationId: string,
  more: Requested & { query?: string } = {},
) => toStream(server, 'POST', { token, ...more, body: { query: more.query ?? TICKS, extensions: { operationId } } });
async function refusal(answer: Promise<RawStream>): Promise<[number, string]> {
  const { status, ended, text } = await answer;
  await ended;
  return [status, JSON.parse(text()).errors[0].extensions.code];
}

describe('an event stream', () => {
  it('is refused without a token, for every form of request', async () => {
    await using server = await startGraphqlServer();
    const accept = 'text/event-stream';
    const search = `?query=${encodeURIComponent(TICKS)}`;
    expect(await refusal(toStream(server, 'PUT', { requester: null }))).toEqual([401, 'unauthenticated']);
    expect(await refusal(toStream(server, 'POST', { requester: null, accept, body: { query: TICKS } }))).toEqual([
      401,
      'unauthenticated',
    ]);
    expect(await refusal(toStream(server, 'GET', { requester: null, accept, search }))).toEqual([403, 'forbidden']);
    expect(server.subscriptions.feeds.size).toBe(0);
  });

  it('writes the frames of the protocol, and the header against buffering proxies', async () => {
    await using server = await startGraphqlServer();
    const stream = await subscribeRaw(server.url, 'subscription { ticks(times: 2) }');
    await stream.ended;
    expect(stream.status).toBe(200);
    expect(stream.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    expect(stream.headers.get('x-accel-buffering')).toBe('no');
    expect(stream.text()).toBe(
      `:\n\nevent: next\ndata: {"data":{"ticks":1}}\n\nevent: next\ndata: {"data":{"ticks":2}}\n\n${COMPLETE}`,
    );
  });

  it('accepts an operation by GET, but no mutation', async () => {
    await using server = await startGraphqlServer();
    const get = (query: string) =>
      toStream(server, 'GET', { accept: 'text/event-stream', search: `?query=${encodeURIComponent(query)}` });
    const stream = await get('subscription { ticks(times: 1) }');
    await stream.ended;
    expect(stream.text()).toContain('{"ticks":1}');
    expect(await refusal(get('mutation { touch }'))).toEqual([405, 'method_not_allowed']);
    expect(await refusal(get(''))).toEqual([400, 'invalid_argument']);
  });

  it('frees its source when its reader leaves', async () => {
    await using server = await startGraphqlServer();
    const opened = server.subscriptions.opened.promise;
    const stream = await subscribeRaw(server.url, TICKS);
    await opened;
    stream.abort();
    await until(() => server.subscriptions.feeds.size === 0);
  });

  it("aborts a mutation's wait when its reader leaves", async () => {
    await using server = await startGraphqlServer();
    const opened = server.subscriptions.opened.promise;
    const stream = await subscribeRaw(server.url, 'mutation { stuck }');
    await opened;
    stream.abort();
    await server.subscriptions.aborted.promise;
    // The mutation's stream no longer counts, so the limit allows ten more streams.
    const more = await Promise.all(Array.from({ length: SSE_PER_PRINCIPAL }, () => subscribeRaw(server.url, TICKS)));
    expect(more.map(({ status }) => status)).toEqual(more.map(() => 200));
  });

  it('is pinged every 20 s in both modes', async () => {
    await using server = await startGraphqlServer();
    const own = await subscribeRaw(server.url, TICKS);
    const shared = await open(server, await reserve(server));
    await Promise.all([own.until(':\n\n'), shared.until(':\n\n')]);
    for (let round = 2; round <= 5; round++) {
      await server.clock.advance(SSE_PING_MS);
      await Promise.all([own.until(':\n\n', round), shared.until(':\n\n', round)]);
    }
    expect(own.text()).toBe(':\n\n'.repeat(5));
  });

  it('continues, pings included, after its reader was slow, with little memory', async () => {
    await using server = await startGraphqlServer();
    const query = 'subscription ($size: Int!) { text(size: $size) }';
    const opened = server.subscriptions.opened.promise;
    const slow = await openPaused(server, { query, variables: { size: 200_000 } });
    await opened;
    // This is far more data than the sockets hold, so the handler must stop reading from its source.
    await pushSlowly(server, 0, 300);
    await slow.blocked();
    await server.clock.advance(SSE_PING_MS);
    await pushSlowly(server, 300, 600);
    slow.resume();
    await slow.until('"599:');
    const seen = slow.numbers();
    // The feed holds 100 events and drops the oldest. So the received events are in order, and the last 100 are
    // complete.
    expect(seen).toEqual([...seen].sort((a, b) => a - b));
    expect(seen.slice(-100)).toEqual(Array.from({ length: 100 }, (_, i) => 500 + i));
    expect(seen.length).toBeLessThan(400);
    const pings = slow.pings();
    await server.clock.advance(SSE_PING_MS);
    await until(() => slow.pings() > pings);
    slow.destroy();
  });

  it('is cut when its reader reads nothing for too long', async () => {
    await using server = await startGraphqlServer();
    const opened = server.subscriptions.opened.promise;
    const slow = await openPaused(server, { query: 'subscription { text(size: 900000) }' });
    await opened;
    for (let n = 0; n < 100; n++) push(server, n);
    await slow.blocked();
    await server.clock.advance(SSE_STALL_MS - SSE_PING_MS);
    expect(server.subscriptions.feeds.size).toBe(1);
    // The sockets may still have accepted some bytes, which restarts the timeout.
    while (server.subscriptions.feeds.size > 0) await server.clock.advance(SSE_PING_MS);
    slow.destroy();
  });
});

describe('the number of event streams', () => {
  it('is 10 for a user, in both modes together, and a closed one can be replaced', async () => {
    await using server = await startGraphqlServer();
    const token = await reserve(server);
    const streams = await Promise.all(
      Array.from({ length: SSE_PER_PRINCIPAL - 1 }, () => subscribeRaw(server.url, TICKS)),
    );
    expect(streams.every(({ status }) => status === 200)).toBe(true);
    const refused = await subscribeRaw(server.url, TICKS);
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '5']);
    expect(await refusal(Promise.resolve(refused))).toEqual([429, 'rate_limited']);
    expect(await refusal(toStream(server, 'PUT'))).toEqual([429, 'rate_limited']);
    // The reserved stream was counted when it was reserved, so it may open. Streams of other users count separately.
    expect((await open(server, token)).status).toBe(200);
    expect((await subscribeRaw(server.url, TICKS, { requester: 'bob' })).status).toBe(200);
    streams[0]?.abort();
    await until(() => server.subscriptions.feeds.size === SSE_PER_PRINCIPAL - 1);
    expect((await subscribeRaw(server.url, TICKS)).status).toBe(200);
  });

  it('is 200 for an administrator', async () => {
    await using server = await startGraphqlServer();
    for (let n = 0; n < SSE_PER_ADMIN; n++) await reserve(server, 'admin');
    expect(await refusal(toStream(server, 'PUT', { requester: 'admin' }))).toEqual([429, 'rate_limited']);
  });

  it('does not include refused ones', async () => {
    await using server = await startGraphqlServer();
    for (let n = 0; n < 2 * SSE_PER_PRINCIPAL; n++) {
      const stream = await subscribeRaw(server.url, 'subscription { nope }');
      await stream.ended;
      expect(await refusal(toStream(server, 'POST', { accept: 'text/event-stream', body: {} }))).toEqual([
        400,
        'invalid_argument',
      ]);
    }
    expect((await subscribeRaw(server.url, TICKS)).status).toBe(200);
  });
});

describe('a reservation', () => {
  it('cannot be used by another requester, for whom it does not exist', async () => {
    await using server = await startGraphqlServer();
    const token = await reserve(server);
    for (const requester of ['bob', 'admin']) {
      expect(await refusal(open(server, token, requester))).toEqual([404, 'not_found']);
      expect(await refusal(operate(server, token, 'a', { requester }))).toEqual([404, 'not_found']);
      expect(await refusal(toStream(server, 'DELETE', { requester, token, search: '?operationId=a' }))).toEqual([
        404,
        'not_found',
      ]);
    }
    const [foreign, absent] = await Promise.all([open(server, token, 'bob'), open(server, `${token}x`)]);
    await Promise.all([foreign.ended, absent.ended]);
    expect(foreign.text()).toBe(absent.text());
    expect((await open(server, token)).status).toBe(200);
  });

  it('is also found by its token in the address, and opened once', async () => {
    await using server = await startGraphqlServer();
    const token = await reserve(server);
    const accept = 'text/event-stream';
    const stream = await toStream(server, 'GET', { search: `?token=${token}`, accept });
    expect(stream.status).toBe(200);
    expect(await refusal(open(server, token))).toEqual([409, 'invalid_argument']);
  });

  it('keeps operations that arrive before it is opened', async () => {
    await using server = await startGraphqlServer();
    const token = await reserve(server);
    expect((await operate(server, token, 'early', { query: '{ me }' })).status).toBe(202);
    const stream = await open(server, token);
    await stream.until('event: complete\ndata: {"id":"early"}\n\n');
    expect(stream.text()).toContain('event: next\ndata: {"id":"early","payload":{"data":{"me":"alice"}}}\n\n');
  });

  it('expires if it is not opened, and no longer counts', async () => {
    await using server = await startGraphqlServer();
    const tokens = [];
    for (let n = 0; n < SSE_PER_PRINCIPAL; n++) tokens.push(await reserve(server));
    const [first = ''] = tokens;
    const stream = await open(server, first);
    await server.clock.advance(SSE_RESERVATION_MS);
    expect(await refusal(open(server, tokens[1] ?? ''))).toEqual([404, 'not_found']);
    expect((await operate(server, first, 'a', { query: '{ me }' })).status).toBe(202);
    await stream.until('"alice"');
    for (let n = 1; n < SSE_PER_PRINCIPAL; n++) await reserve(server);
    expect(await refusal(toStream(server, 'PUT'))).toEqual([429, 'rate_limited']);
  });

  it('ends with its stream', async () => {
    await using server = await startGraphqlServer();
    const token = await reserve(server);
    const stream = await open(server, token);
    const opened = server.subscriptions.opened.promise;
    await operate(server, token, 'a');
    await opened;
    stream.abort();
    await until(() => server.subscriptions.feeds.size === 0);
    expect(await refusal(operate(server, token, 'b'))).toEqual([404, 'not_found']);
  });

  it('frees the id of an operation whose document has errors', async () => {
    await using server = await startGraphqlServer();
    const token = await reserve(server);
    const stream = await open(server, token);
    for (let round = 1; round <= 2; round++) {
      expect((await operate(server, token, 'wrong', { query: 'subscription { nothing }' })).status).toBe(202);
      await stream.until('event: complete\ndata: {"id":"wrong"}\n\n', round);
    }
  });

  it('accepts 100 operations at once, each with its own id', async () => {
    await using server = await startGraphqlServer();
    const token = await reserve(server);
    const stream = await open(server, token);
    for (let n = 0; n < SSE_OPERATIONS; n++) expect((await operate(server, token, `op${n}`)).status).toBe(202);
    expect(await refusal(operate(server, token, 'one-more'))).toEqual([429, 'rate_limited']);
    const stop = await toStream(server, 'DELETE', { token, search: '?operationId=op7' });
    expect(stop.status).toBe(200);
    await stream.until('event: complete\ndata: {"id":"op7"}\n\n');
    expect(await refusal(operate(server, token, 'op8'))).toEqual([409, 'invalid_argument']);
    expect((await operate(server, token, 'op7', { query: '{ me }' })).status).toBe(202);
    await stream.until('{"id":"op7","payload":{"data":{"me":"alice"}}}');
    expect((await operate(server, token, 'one-more', { query: '{ me }' })).status).toBe(202);
    await stream.until('{"id":"one-more"}');
  });

  it('ends only the stopped operation', async () => {
    await using server = await startGraphqlServer();
    const token = await reserve(server);
    const stream = await open(server, token);
    await operate(server, token, 'a');
    await operate(server, token, 'b');
    await until(() => server.subscriptions.feeds.size === 2);
    await toStream(server, 'DELETE', { token, search: '?operationId=a' });
    await until(() => server.subscriptions.feeds.size === 1);
    push(server, 5);
    await stream.until('{"id":"b","payload":{"data":{"ticks":5}}}');
    expect(stream.text()).not.toContain('{"id":"a","payload"');
  });

  it('refuses malformed requests', async () => {
    await using server = await startGraphqlServer();
    const token = await reserve(server);
    const bad = { body: { query: TICKS } };
    expect(await refusal(toStream(server, 'POST', { token, ...bad }))).toEqual([400, 'invalid_argument']);
    expect(await refusal(operate(server, token, 'x'.repeat(200)))).toEqual([400, 'invalid_argument']);
    expect(await refusal(operate(server, token, ''))).toEqual([400, 'invalid_argument']);
    expect(await refusal(toStream(server, 'DELETE', { token }))).toEqual([400, 'invalid_argument']);
    expect(await refusal(toStream(server, 'POST', { token, body: [] }))).toEqual([400, 'invalid_argument']);
    expect(await refusal(toStream(server, 'PATCH', { token }))).toEqual([405, 'method_not_allowed']);
    expect(await refusal(toStream(server, 'DELETE'))).toEqual([404, 'not_found']);
  });
});

describe('a stream ends', () => {
  const until5 = (clock: { now(): number }, ms: number): Principal => ({
    ...user('carol'),
    expiresAt: clock.now() + ms,
  });

  it.each(['own', 'shared'] as const)(
    'with the token that opened it (%s), and its client may reconnect',
    async (mode) => {
      const requester = principals();
      await using server = await startGraphqlServer({ requester });
      requester.set('carol', until5(server.clock, 5_000));
      const opened = server.subscriptions.opened.promise;
      const token = mode === 'shared' ? await reserve(server, 'carol') : null;
      const stream =
        token === null
          ? await subscribeRaw(server.url, TICKS, { requester: 'carol' })
          : await open(server, token, 'carol');
      if (token !== null) await operate(server, token, 'a', { requester: 'carol' });
      await opened;
      await server.clock.advance(4_999);
      push(server, 1);
      await stream.until('"ticks":1');
      await server.clock.advance(1);
      await stream.ended;
      expect(stream.text()).not.toContain('complete');
      expect(server.subscriptions.feeds.size).toBe(0);
    },
  );

  it('with the token that requested one of its operations', async () => {
    const requester = principals();
    await using server = await startGraphqlServer({ requester });
    requester.set('long', { ...user('carol'), expiresAt: server.clock.now() + 60_000 });
    requester.set('short', { ...user('carol'), expiresAt: server.clock.now() + 3_000 });
    const token = await reserve(server, 'long');
    const stream = await open(server, token, 'long');
    await operate(server, token, 'a', { requester: 'short' });
    await until(() => server.subscriptions.feeds.size === 1);
    await server.clock.advance(3_000);
    await stream.ended;
    expect(server.subscriptions.feeds.size).toBe(0);
  });

  it('not before a token that lasts longer than timers can count', async () => {
    const requester = principals();
    await using server = await startGraphqlServer({ requester });
    const days = 60 * 24 * 3600_000;
    requester.set('carol', { kind: 'admin', name: 'carol', expiresAt: server.clock.now() + days });
    const opened = server.subscriptions.opened.promise;
    const stream = await subscribeRaw(server.url, TICKS, { requester: 'carol' });
    await opened;
    push(server, 1);
    await stream.until('"ticks":1');
    expect(server.subscriptions.feeds.size).toBe(1);
  });

  it('without `complete` at shutdown, which refuses new ones', async () => {
    await using server = await startGraphqlServer();
    const own = await subscribeRaw(server.url, TICKS);
    const token = await reserve(server);
    const shared = await open(server, token);
    await operate(server, token, 'a');
    const unopened = await reserve(server, 'bob');
    await until(() => server.subscriptions.feeds.size === 2);
    await server.closeHandler();
    await Promise.all([own.ended, shared.ended]);
    expect(own.text() + shared.text()).not.toContain('complete');
    expect(server.subscriptions.feeds.size).toBe(0);
    expect(await refusal(toStream(server, 'PUT'))).toEqual([503, 'draining']);
    expect(await refusal(subscribeRaw(server.url, TICKS))).toEqual([503, 'draining']);
    expect(await refusal(open(server, unopened, 'bob'))).toEqual([404, 'not_found']);
  });
});

async function until(met: () => boolean): Promise<void> {
  while (!met()) await new Promise((done) => setImmediate(done));
}
