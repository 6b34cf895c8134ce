/** Tests the library of a viewer: subscribing to a site and invoking its actions. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import {
  CooperativeSiteBrowserClient,
  type SiteClientOptions,
  SiteError,
  type SiteEvent,
  type SiteGap,
  type SubscribeOptions,
} from '../../src/clients/site/index.ts';
import { FakeClock, settle } from '../kit/clock.ts';

// Starts an HTTP server whose event streams a test writes itself.

type SseConnection = {
  readonly request: IncomingMessage;
  /** The response of the connection: an event stream, or a complete answer. */
  readonly response: ServerResponse;
  /** Opens the event stream and writes these frames. */
  open(...frames: readonly string[]): void;
  /** Resolves when the client disconnected. */
  readonly gone: Promise<void>;
};

type ScriptedServer = AsyncDisposable & {
  readonly url: string;
  /** Resolves with the next connection. */
  connection(): Promise<SseConnection>;
  /** The number of connections so far. */
  readonly connections: number;
  /** The JSON bodies of the POSTs so far. */
  readonly bodies: unknown[];
};

/** Starts an HTTP server that answers only what the test writes. */
async function startScriptedServer(): Promise<ScriptedServer> {
  const queue: SseConnection[] = [];
  const waiting: ((connection: SseConnection) => void)[] = [];
  const bodies: unknown[] = [];
  let connections = 0;
  async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    connections += 1;
    if (request.method === 'POST') bodies.push(JSON.parse(await text(request)));
    const connection = connectionOf(request, response);
    const next = waiting.shift();
    if (next) next(connection);
    else queue.push(connection);
  }
  const server = createServer((request, response) => void take(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('no address');
  return {
    url: `http://127.0.0.1:${address.port}`,
    bodies,
    get connections() {
      return connections;
    },
    connection() {
      const connection = queue.shift();
      return connection ? Promise.resolve(connection) : new Promise((resolve) => waiting.push(resolve));
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}

function connectionOf(request: IncomingMessage, response: ServerResponse): SseConnection {
  const { promise: gone, resolve } = Promise.withResolvers<void>();
  response.on('close', resolve);
  response.on('error', () => {});
  return {
    request,
    response,
    gone,
    open(...frames) {
      response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
      response.flushHeaders();
      for (const frame of frames) response.write(frame);
    },
  };
}

export const READY = 'event: callboard.ready\ndata: {}\n\n';

export function eventFrame(name: string, data: unknown, missed = 0): string {
  const text = { name, data, message_id: `m-${name}`, published_at: '2026-01-01T00:00:00.000Z', missed };
  return `event: ${name}\nid: m-${name}\ndata: ${JSON.stringify(text)}\n\n`;
}

export function closedFrame(code: string): string {
  return `event: callboard.closed\ndata: ${JSON.stringify({ code })}\n\n`;
}

type Bench = AsyncDisposable & {
  readonly server: ScriptedServer;
  readonly clock: FakeClock;
  readonly client: CooperativeSiteBrowserClient;
  /** Subscribes. `waiting` resolves each time the stream starts to wait, `live` each time it is live. */
  subscribe(options?: SubscribeOptions): Subscribed;
};

type Subscribed = {
  next(): Promise<SiteEvent | SiteGap | 'end'>;
  until(status: string): Promise<void>;
  leave(): Promise<void>;
};

async function startBench(options: Partial<SiteClientOptions> = {}): Promise<Bench> {
  const server = await startScriptedServer();
  const clock = new FakeClock();
  const base = { url: `${server.url}/`, sessionId: 's/1', token: 'cbg_1', clock, random: () => 0.999999 };
  const client = new CooperativeSiteBrowserClient({ ...base, ...options });
  return {
    server,
    clock,
    client,
    subscribe: (more = {}) => follow(client, more),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

function follow(client: CooperativeSiteBrowserClient, options: SubscribeOptions): Subscribed {
  const seen: string[] = [];
  let wake = (): void => {};
  const onStatus = (status: string): void => {
    seen.push(status);
    wake();
  };
  const iterator = client.subscribe({ ...options, onStatus })[Symbol.asyncIterator]();
  return {
    async next() {
      const { done, value } = await iterator.next();
      return done === true ? 'end' : value;
    },
    async until(status) {
      for (let at = seen.indexOf(status); at < 0; at = seen.indexOf(status)) {
        await new Promise<void>((resolve) => (wake = resolve));
      }
      seen.splice(0, seen.indexOf(status) + 1);
    },
    async leave() {
      await iterator.return?.();
    },
  };
}

const changed = {
  type: 'event',
  name: 'site_changed',
  data: { id: 7 },
  messageId: 'm-site_changed',
  publishedAt: Date.UTC(2026, 0, 1),
  missed: 0,
};

describe('a viewer that subscribes', () => {
  test('requests the documented path with its token, and receives named events', async () => {
    await using bench = await startBench();
    const stream = bench.subscribe({ names: ['site_changed', 'note.added'] });
    const first = stream.next();
    const { request, open } = await bench.server.connection();
    open(READY, eventFrame('site_changed', { id: 7 }), eventFrame('note.added', null, 3));
    expect(await first).toEqual(changed);
    expect(await stream.next()).toMatchObject({ name: 'note.added', data: null, missed: 3 });
    expect(request.url).toBe('/site-sessions/s%2F1/events?names=site_changed,note.added');
    expect(request.headers).toMatchObject({ authorization: 'Bearer cbg_1', accept: 'text/event-stream' });
    await stream.leave();
  });

  test('reads events that come byte by byte', async () => {
    await using bench = await startBench();
    const stream = bench.subscribe();
    const first = stream.next();
    const { response, open } = await bench.server.connection();
    open();
    for (const byte of Buffer.from(`: ping\r\n${READY}${eventFrame('grüße', '🎈')}`)) {
      response.write(Uint8Array.of(byte));
      await new Promise((done) => setImmediate(done));
    }
    expect(await first).toMatchObject({ name: 'grüße', data: '🎈' });
    await stream.leave();
  });

  test('skips frames that no relay sends and fields that it does not know', async () => {
    await using bench = await startBench();
    const stream = bench.subscribe();
    const first = stream.next();
    const { open } = await bench.server.connection();
    const strange = ['data: nonsense\n\n', 'event: x\ndata: []\n\n', 'event: callboard.newer\ndata: {"name":"x"}\n\n'];
    open(READY, ...strange, eventFrame('site_changed', { id: 7 }));
    expect(await first).toEqual(changed);
    await stream.leave();
  });

  test('reconnects after a broken connection with a gap and its start, once the stream is live again', async () => {
    await using bench = await startBench();
    const stream = bench.subscribe();
    const first = stream.next();
    const { response, open } = await bench.server.connection();
    open(READY, eventFrame('site_changed', { id: 7 }));
    expect(await first).toEqual(changed);
    const since = bench.clock.now();
    const second = stream.next();
    response.destroy();
    await stream.until('waiting');
    await bench.clock.advance(500);
    const failed = await bench.server.connection();
    failed.response.writeHead(503).end();
    await stream.until('waiting');
    await bench.clock.advance(1000);
    const again = await bench.server.connection();
    again.open(READY, eventFrame('site_changed', { id: 7 }));
    expect(await second).toEqual({ type: 'gap', since });
    expect(await stream.next()).toEqual(changed);
    await stream.leave();
  });

  test('waits longer and longer while nothing answers, and not less than the relay requests', async () => {
    await using bench = await startBench();
    const stream = bench.subscribe();
    const first = stream.next();
    for (const [retryAfter, least] of [
      [0, 499],
      [0, 999],
      [7, 8_999],
    ] as const) {
      const { response } = await bench.server.connection();
      response.writeHead(429, { 'retry-after': String(retryAfter) }).end('{"code":"capacity_exceeded"}');
      await stream.until('waiting');
      const { connections } = bench.server;
      await bench.clock.advance(least - 1);
      expect(bench.server.connections).toBe(connections);
      await bench.clock.advance(2);
    }
    const { open } = await bench.server.connection();
    open(READY, eventFrame('site_changed', { id: 7 }));
    // The stream was never live before, so there is no gap.
    expect(await first).toEqual(changed);
    await stream.leave();
  });

  test('gives up a connection that is silent for three pings, and none that pings', async () => {
    const streams: ReadableStreamDefaultController<Uint8Array>[] = [];
    const fetch: typeof globalThis.fetch = async (_url, options) => {
      const body = new ReadableStream<Uint8Array>({ start: (controller) => void streams.push(controller) });
      const signal = options?.signal;
      signal?.addEventListener('abort', () => streams.at(-1)?.error(signal.reason));
      return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
    };
    await using bench = await startBench({ fetch });
    const stream = bench.subscribe();
    const first = stream.next();
    await settle();
    const write = (text: string): void => streams.at(-1)?.enqueue(new TextEncoder().encode(text));
    write(READY);
    for (let ping = 0; ping < 5; ping++) {
      await bench.clock.advance(20_000);
      write(':\n\n');
      await settle();
    }
    const since = bench.clock.now();
    await bench.clock.advance(59_999);
    expect(streams).toHaveLength(1);
    await bench.clock.advance(1);
    await stream.until('waiting');
    await bench.clock.advance(500);
    expect(streams).toHaveLength(2);
    write(READY);
    expect(await first).toEqual({ type: 'gap', since });
    await stream.leave();
  });

  test('ignores the silence while its own reader is busy', async () => {
    await using bench = await startBench();
    const stream = bench.subscribe();
    const first = stream.next();
    const { response, open } = await bench.server.connection();
    open(READY, eventFrame('site_changed', { id: 7 }));
    expect(await first).toEqual(changed);
    await bench.clock.advance(600_000);
    response.write(eventFrame('site_changed', { id: 7 }));
    expect(await stream.next()).toEqual(changed);
    expect(bench.server.connections).toBe(1);
    await stream.leave();
  });

  test.each([
    ['session_inactive', 'The session is over.'],
    ['unauthenticated', 'The grant is over.'],
  ])('ends with the code with which the relay closes: %s', async (code, message) => {
    await using bench = await startBench();
    const stream = bench.subscribe();
    const first = stream.next();
    const { open } = await bench.server.connection();
    open(READY, eventFrame('site_changed', { id: 7 }), closedFrame(code));
    await first;
    const end = stream.next();
    await expect(end).rejects.toThrow(SiteError);
    await expect(end).rejects.toMatchObject({ code, message });
    expect(await stream.next()).toBe('end');
    expect(bench.server.connections).toBe(1);
  });

  test('reconnects when the relay closes because it shuts down', async () => {
    await using bench = await startBench();
    const stream = bench.subscribe();
    const first = stream.next();
    const { open } = await bench.server.connection();
    open(READY, closedFrame('draining'));
    await stream.until('waiting');
    await bench.clock.advance(500);
    (await bench.server.connection()).open(READY);
    expect(await first).toMatchObject({ type: 'gap' });
    await stream.leave();
  });

  test.each([
    [401, 'unauthenticated'],
    [403, 'forbidden'],
    [404, 'not_found'],
    [409, 'session_inactive'],
  ])('does not reconnect after a permanent refusal: %d', async (status, code) => {
    await using bench = await startBench();
    const first = bench.subscribe().next();
    const { response } = await bench.server.connection();
    response.writeHead(status, { 'content-type': 'application/problem+json' });
    response.end(JSON.stringify({ code, detail: 'In words.' }));
    await expect(first).rejects.toMatchObject({ name: 'SiteError', code, message: 'In words.' });
    expect(bench.server.connections).toBe(1);
  });

  test('treats an answer without a stream as the end of the session', async () => {
    await using bench = await startBench();
    const first = bench.subscribe().next();
    const { response } = await bench.server.connection();
    response.writeHead(204).end();
    await expect(first).rejects.toMatchObject({ name: 'SiteError', code: 'session_inactive' });
    expect(bench.server.connections).toBe(1);
  });

  test('rejects an answer that is not an event stream', async () => {
    await using bench = await startBench();
    const first = bench.subscribe().next();
    const { response } = await bench.server.connection();
    response.writeHead(200, { 'content-type': 'text/html' }).end('<p>A login page');
    await expect(first).rejects.toMatchObject({ code: 'bad_answer' });
  });

  test('uses another token when one was refused, and never the same again', async () => {
    const tokens = ['old', 'new', 'new'];
    await using bench = await startBench({ token: () => tokens.shift() ?? 'new' });
    const stream = bench.subscribe();
    const first = expect(stream.next()).rejects.toMatchObject({ code: 'unauthenticated' });
    const refuse = async (): Promise<string | undefined> => {
      const { request, response } = await bench.server.connection();
      response.writeHead(401).end('{"code":"unauthenticated"}');
      return request.headers.authorization;
    };
    expect(await refuse()).toBe('Bearer old');
    await stream.until('waiting');
    await bench.clock.advance(500);
    expect(await refuse()).toBe('Bearer new');
    await stream.until('waiting');
    await bench.clock.advance(1000);
    await first;
    expect(bench.server.connections).toBe(2);
  });

  test('ends quietly when it is aborted: before, while connected, while it waits', async () => {
    await using bench = await startBench();
    expect(await bench.subscribe({ signal: AbortSignal.abort(new Error('left')) }).next()).toBe('end');
    expect(bench.server.connections).toBe(0);

    const connected = new AbortController();
    const first = bench.subscribe({ signal: connected.signal }).next();
    const { open, gone } = await bench.server.connection();
    open(READY);
    connected.abort();
    expect(await first).toBe('end');
    await gone;

    const waiting = new AbortController();
    const stream = bench.subscribe({ signal: waiting.signal });
    const second = stream.next();
    (await bench.server.connection()).response.destroy();
    await stream.until('waiting');
    waiting.abort();
    expect(await second).toBe('end');
  });

  test('disconnects when its reader leaves the loop', async () => {
    await using bench = await startBench();
    const connection = bench.server.connection();
    const loop = (async () => {
      for await (const event of bench.client.subscribe()) return event;
      return null;
    })();
    const { open, gone } = await connection;
    open(READY, eventFrame('site_changed', { id: 7 }));
    expect(await loop).toEqual(changed);
    await gone;
  });

  test('can be left while `next` waits: that call ends too', async () => {
    await using bench = await startBench();
    const stream = bench.subscribe();
    const first = stream.next();
    const { open, gone } = await bench.server.connection();
    open(READY);
    await stream.leave();
    expect(await first).toBe('end');
    await gone;
  });

  test('gives up a connection whose event is larger than any that a relay sends', async () => {
    await using bench = await startBench();
    const stream = bench.subscribe();
    const first = stream.next();
    const { response, open, gone } = await bench.server.connection();
    open(READY, 'data: ');
    const flood = Buffer.alloc(64 * 1024, 'x');
    for (let sent = 0; sent < 40 && !response.destroyed; sent++) response.write(flood);
    await stream.until('waiting');
    await gone;
    await bench.clock.advance(500);
    (await bench.server.connection()).open(READY);
    expect(await first).toMatchObject({ type: 'gap' });
    await stream.leave();
  });
});

describe('a viewer that invokes', () => {
  const done = {
    command_id: 'c1',
    rpc_id: 'w1',
    stage: 'terminal',
    last_proven_stage: 'dispatched',
    execution: 'reported_by_client',
  };
  const evidence = {
    commandId: 'c1',
    rpcId: 'w1',
    stage: 'terminal',
    lastProvenStage: 'dispatched',
    execution: 'reported_by_client',
  };

  async function invokeOnce(status: number, body: object): Promise<unknown> {
    await using bench = await startBench();
    const invoked = bench.client.invoke('note.add', { text: 'milk' }, { commandId: 'c1', timeoutMs: 5_000 });
    const { request, response } = await bench.server.connection();
    expect([request.method, request.url]).toEqual(['POST', '/site-sessions/s%2F1/actions/note.add']);
    expect(bench.server.bodies).toEqual([{ params: { text: 'milk' }, command_id: 'c1', respond_within_ms: 5_000 }]);
    response.writeHead(status, { 'retry-after': '2' }).end(JSON.stringify(body));
    return await invoked;
  }

  const error = { code: 'handler_failed', message: 'no milk' };
  test.each([
    [200, { outcome: 'completed', result: { id: 7 } }, { outcome: 'completed', result: { id: 7 } }],
    [200, { outcome: 'failed', error }, { outcome: 'failed', error }],
    [200, { outcome: 'cancelled', result: [1] }, { outcome: 'cancelled', partial: [1] }],
    [504, { outcome: 'outcome_unknown', error }, { outcome: 'outcome_unknown', error }],
    [202, { outcome: null }, { outcome: 'pending' }],
  ])('gets the result: %d %j', async (status, body, outcome) => {
    expect(await invokeOnce(status, { ...done, ...body })).toEqual({ ...evidence, ...outcome });
  });

  test.each([
    [403, 'site_action_denied'],
    [403, 'site_capability_denied'],
    [409, 'session_inactive'],
    [429, 'rate_limited'],
    [400, 'reserved_parameter'],
  ])('gets a refusal with its code and message: %d %s', async (status, code) => {
    const refused = invokeOnce(status, { code, detail: 'In words.' });
    await expect(refused).rejects.toMatchObject({ name: 'SiteError', code, message: 'In words.', commandId: 'c1' });
    await expect(refused).rejects.toMatchObject({ retryAfterMs: 2_000 });
  });

  test('distinguishes a relay from another server', async () => {
    await expect(invokeOnce(200, { hello: 'world' })).rejects.toMatchObject({ code: 'bad_answer' });
    await expect(invokeOnce(404, {})).rejects.toMatchObject({ code: 'bad_answer' });
  });

  test('sends the request again under the same id when the connection breaks, and gives up after its budget', async () => {
    const bodies: unknown[] = [];
    const fetch: typeof globalThis.fetch = async (_url, options) => {
      bodies.push(options?.body);
      throw new TypeError('fetch failed');
    };
    await using bench = await startBench({ fetch });
    const refused = expect(bench.client.invoke('note.add')).rejects.toMatchObject({
      code: 'unreachable',
      mayHaveRun: true,
    });
    await bench.clock.advance(30_000);
    await refused;
    expect(bodies.length).toBeGreaterThan(4);
    expect(new Set(bodies).size).toBe(1);
  });

  test('stops waiting when aborted', async () => {
    await using bench = await startBench();
    const abort = new AbortController();
    const invoked = bench.client.invoke('note.add', {}, { signal: abort.signal });
    const { gone } = await bench.server.connection();
    abort.abort(new Error('gone elsewhere'));
    await expect(invoked).rejects.toThrow('gone elsewhere');
    await gone;
  });
});
