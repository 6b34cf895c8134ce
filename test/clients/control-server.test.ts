/** Tests the control server of a host: which requests it refuses, and what it does. */
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { connect, type Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { startCooperativeSiteControlServer, type ControlServer } from '../../src/clients/host/index.ts';
import { refusalOf } from '../../src/clients/host/request-guard.ts';
import { meanwhile } from '../kit/clock.ts';
import type { FakeLink } from '../kit/fake-relay.ts';
import { json, startRuntimeBench, type RuntimeBench } from './kit/runtime-bench.ts';

const TOKEN = 'the token of this test';
const token = TOKEN.replaceAll(' ', '-');

type Control = AsyncDisposable & {
  readonly bench: RuntimeBench;
  readonly server: ControlServer;
  readonly link: FakeLink;
  readonly ingested: unknown[];
  ask(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answered>;
};
type Answered = { readonly status: number; readonly body: Record<string, unknown>; readonly headers: Headers };

const published = { retained: true, duplicate: false, published: true, refused_by: null, error: null };

/**
 * Starts a control server over a runtime that is connected to a fake relay. `ingest` answers the events that the server
 * sends.
 */
async function startControl(ingest: () => Response = () => Response.json({ items: [published] })): Promise<Control> {
  const bench = await startRuntimeBench();
  const ingested: unknown[] = [];
  const fetch: typeof globalThis.fetch = async (_url, options) => {
    const body = JSON.parse(String(options?.body));
    ingested.push(body);
    const answer = ingest();
    if (!answer.ok) return answer;
    return Response.json({ items: [{ message_id: body.message_id, ...(await answer.json()).items[0] }] });
  };
  const server = await startCooperativeSiteControlServer({
    runtime: bench.runtime,
    token,
    port: 0,
    fetch,
    clock: bench.clock,
    random: () => 0,
  });
  const link = await bench.up();
  return {
    bench,
    server,
    link,
    ingested,
    async ask(method, path, body, headers = {}) {
      const response = await globalThis.fetch(server.url + path, {
        method,
        headers: {
          authorization: `Bearer ${token}`,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      });
      const text = await response.text();
      return { status: response.status, headers: response.headers, body: text === '' ? {} : JSON.parse(text) };
    },
    async [Symbol.asyncDispose]() {
      await server.close();
      await bench[Symbol.asyncDispose]();
    },
  };
}

/** Sends these lines without a body and returns everything received until the server closes. */
async function exchange(port: number, lines: readonly string[]): Promise<string> {
  const socket: Socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  socket.write([...lines, '', ''].join('\r\n'));
  let text = '';
  socket.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
  await once(socket, 'close');
  return text;
}

/** Returns the head of a request whose body is never sent. A server that waited for the body would never answer. */
function announced(port: number, more: readonly string[], method = 'POST /sites/board/events'): readonly string[] {
  const named = more.some((line) => /^host:/i.test(line));
  return [
    `${method} HTTP/1.1`,
    ...(named ? [] : [`Host: 127.0.0.1:${port}`]),
    'Content-Type: application/json',
    'Content-Length: 100000',
    ...more,
  ];
}

const bearer = `Authorization: Bearer ${token}`;

describe('the control server refuses before it reads the body', () => {
  test.each([
    ['evil.com', 403],
    ['evil.com:PORT', 403],
    ['localhost.evil.com:PORT', 403],
    ['127.0.0.1.evil.com:PORT', 403],
    ['evil-localhost:PORT', 403],
    ['0.0.0.0:PORT', 403],
    ['[::]:PORT', 403],
    ['127.0.0.2:PORT', 403],
    ['127.0.0.1', 403],
    ['127.0.0.1:1', 403],
    ['127.0.0.1:PORT0', 403],
    ['localhost', 403],
    ['2130706433:PORT', 403],
    ['0x7f.1:PORT', 403],
    ['localhost.:PORT', 403],
    ['user@127.0.0.1:PORT', 403],
    ['', 403],
  ])('Host %j: %d', async (host, status) => {
    await using control = await startControl();
    const { port } = control.server;
    const answer = await exchange(
      port,
      announced(port, [`Host: ${host.replace('PORT', String(port))}`, bearer, 'X-Forwarded-Host: localhost']),
    );
    expect(answer).toContain(`HTTP/1.1 ${status} `);
    expect(answer).toContain('"code":"forbidden"');
    expect(control.ingested).toEqual([]);
  });

  test.each(['127.0.0.1:PORT', 'localhost:PORT', 'LocalHost:PORT', '[::1]:PORT'])('but not Host %s', async (host) => {
    await using control = await startControl();
    const { port } = control.server;
    const lines = [`DELETE /sites/board HTTP/1.1`, `Host: ${host.replace('PORT', String(port))}`, 'Connection: close'];
    const answer = exchange(port, [...lines, bearer]);
    const { ref } = await control.link.next('site');
    control.link.send({ type: 'site_ack', ref });
    expect(await answer).toContain('HTTP/1.1 204 ');
  });

  test.each([
    ['two Hosts, the right one first', ['Host: 127.0.0.1:PORT', 'Host: evil.com', bearer]],
    ['two Hosts, the right one last', ['Host: evil.com', 'Host: 127.0.0.1:PORT', bearer]],
    ['a foreign Origin', ['Origin: https://evil.com', bearer]],
    ['the Origin null', ['Origin: null', bearer]],
    ['an empty Origin', ['Origin:', bearer]],
    ['an Origin that is this server', ['Origin: http://127.0.0.1:PORT', bearer]],
    ['an Origin and no token', ['Origin: https://evil.com']],
  ])('%s: 403', async (_, lines) => {
    await using control = await startControl();
    const { port } = control.server;
    const own = lines.map((line) => line.replace('PORT', String(port)));
    const answer = await exchange(port, announced(port, own));
    expect(answer).toMatch(/^HTTP\/1\.1 (403|400) /);
    expect(answer).not.toContain('100 Continue');
    expect(control.ingested).toEqual([]);
  });

  test.each([
    ['no token', []],
    ['another token', ['Authorization: Bearer wrong']],
    ['a token that begins like it', [`Authorization: Bearer ${token.slice(0, -1)}`]],
    ['a token that goes on', [`${bearer}x`]],
    ['an empty token', ['Authorization: Bearer ']],
    ['another scheme', [`Authorization: Basic ${token}`]],
    ['the token in a cookie', [`Cookie: token=${token}`]],
    ['forwarded headers', ['X-Forwarded-For: 127.0.0.1', 'Forwarded: for=127.0.0.1', 'X-Real-IP: ::1']],
  ])('%s: 401', async (_, lines) => {
    await using control = await startControl();
    const { port } = control.server;
    const answer = await exchange(port, announced(port, lines));
    expect(answer).toMatch(/^HTTP\/1\.1 401 /);
    expect(answer).toMatch(/www-authenticate: Bearer/i);
    expect(answer).toMatch(/content-type: application\/problem\+json/i);
    expect(answer).toContain('"code":"unauthenticated"');
  });

  test.each([
    ['another path', 'POST /elsewhere', [bearer], 404],
    ['a site id that is none', 'POST /sites/a%2Fb/events', [bearer], 404],
    ['a broken escape', 'POST /sites/%E0%A4/events', [bearer], 404],
    ['another method', 'PATCH /sites/board', [bearer], 405],
    ['a query', 'PUT /sites/board?force=1', [bearer], 400],
    ['no JSON', 'PUT /sites/board', [bearer, 'X: y'], 415],
    ['JSON in another encoding', 'PUT /sites/board', [bearer, 'Content-Encoding: gzip'], 415],
    ['a body that is announced too large', 'PUT /sites/board', [bearer], 413],
  ])('%s', async (what, line, more, status) => {
    await using control = await startControl();
    const { port } = control.server;
    const lines = announced(port, more, line).map((header) => {
      if (what === 'no JSON') return header.replace('application/json', 'text/plain');
      if (status === 413) return header.replace('Content-Length: 100000', 'Content-Length: 1048577');
      return header;
    });
    const answer = await exchange(port, [...lines, 'Expect: 100-continue']);
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(answer).toMatch(/connection: close/i);
    if (status === 405) expect(answer).toMatch(/allow: PUT, DELETE/i);
  });

  test('a peer on another machine, whatever its headers claim', () => {
    const rules = { port: 80, token };
    const judge = (remoteAddress: string | undefined): number | null => {
      const headers = { host: '127.0.0.1', authorization: `Bearer ${token}`, 'x-forwarded-for': '127.0.0.1' };
      const rawHeaders = Object.entries(headers).flat();
      return refusalOf({ socket: { remoteAddress }, headers, rawHeaders }, rules)?.status ?? null;
    };
    for (const address of ['127.0.0.1', '127.8.9.10', '::1', '::ffff:127.0.0.1']) expect(judge(address)).toBeNull();
    const foreign = ['10.0.0.1', '192.168.1.7', '::ffff:10.0.0.1', 'fe80::1', '128.0.0.1', '127.0.0.1.evil', undefined];
    for (const address of foreign) expect(judge(address)).toBe(403);
  });

  test('sends 100 Continue for a valid request only, and only if it is expected', async () => {
    await using control = await startControl();
    const { port } = control.server;
    const request = httpRequest({
      port,
      method: 'POST',
      path: '/sites/board/events',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', expect: '100-continue' },
    });
    request.flushHeaders();
    await once(request, 'continue');
    request.end('{"name":"site_changed"}');
    const [response] = await once(request, 'response');
    expect(response.statusCode).toBe(200);
    response.resume();
  });

  test('stops reading a body that grows beyond its bound', async () => {
    await using control = await startControl();
    const { port } = control.server;
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const request = httpRequest({ port, method: 'POST', path: '/sites/board/events', headers });
    request.on('error', () => {});
    const answered = once(request, 'response');
    for (let sent = 0; sent < 17; sent++) request.write(Buffer.alloc(64 * 1024, ' '));
    const [response] = await answered;
    expect(response.statusCode).toBe(413);
    request.destroy();
  });
});

describe('the control server', () => {
  const body = {
    title: 'The board',
    event_names: ['site_changed'],
    actions: ['note.add'],
    capability_profile: { action_invocation: true, sharing: false },
  };

  test('registers a site through the runtime and answers its descriptor', async () => {
    await using control = await startControl();
    const answer = control.ask('PUT', '/sites/board', body);
    const { ref, op, site_id, payload } = await control.link.next('site');
    expect([op, site_id, json(payload)]).toEqual(['register', 'board', body]);
    control.link.send({ type: 'site_ack', ref });
    const fixed = { site_id: 'board', owner: 'alice', mode: 'cooperative', client_id: 'desk' };
    expect(await answer).toMatchObject({ status: 200, body: { ...fixed, ...body } });
  });

  test('removes a site, and answers not found if there was none', async () => {
    await using control = await startControl();
    const removed = control.ask('DELETE', '/sites/board');
    const { ref, op } = await control.link.next('site');
    expect(op).toBe('remove');
    control.link.send({ type: 'site_ack', ref });
    expect((await removed).status).toBe(204);
    const absent = control.ask('DELETE', '/sites/board');
    const next = await control.link.next('site');
    control.link.send({ type: 'refused', frame: 'site', ref: next.ref, code: 'not_found', message: 'There is none.' });
    expect(await absent).toMatchObject({ status: 404, body: { code: 'not_found', detail: 'There is none.' } });
  });

  test("answers the relay's refusal of a definition with its code", async () => {
    await using control = await startControl();
    for (const [code, status] of [
      ['invalid_argument', 400],
      ['forbidden', 403],
      ['capacity_exceeded', 429],
      ['unauthenticated', 503],
    ] as const) {
      const answer = control.ask('PUT', '/sites/board', {});
      const { ref } = await control.link.next('site');
      control.link.send({ type: 'refused', frame: 'site', ref, code, message: 'In words.' });
      const shown = status === 503 ? 'runtime_disconnected' : code;
      expect(await answer).toMatchObject({
        status,
        body: { code: shown, detail: expect.stringContaining('In words.') },
      });
    }
  });

  test('publishes an event and answers the result', async () => {
    await using control = await startControl();
    const event = { name: 'site_changed', data: { id: 7, deep: [null, 'ü'] }, message_id: 'm7' };
    const answer = await control.ask('POST', '/sites/board/events', event);
    const verdict = { retained: true, duplicate: false, published: true, refused_by: null };
    expect(answer).toMatchObject({ status: 200, body: { message_id: 'm7', ...verdict } });
    expect(control.ingested).toMatchObject([
      { message_id: 'm7', stream_suffix: 'sites/board/events', client_id: 'desk', instance_id: 'i-1' },
    ]);
    expect(control.ingested).toMatchObject([{ payload: { name: 'site_changed', data: event.data } }]);
  });

  test.each([
    ['PUT', '/sites/board', { titel: 'x' }, 'titel'],
    ['PUT', '/sites/board', { title: 7 }, 'title'],
    ['PUT', '/sites/board', { event_names: 'site_changed' }, 'event_names'],
    ['PUT', '/sites/board', { actions: ['a', 7] }, 'actions'],
    ['PUT', '/sites/board', { client_id: 'other' }, 'client_id'],
    [
      'PUT',
      '/sites/board',
      { capability_profile: { action_invocation: 'yes' } },
      'capability_profile.action_invocation',
    ],
    ['PUT', '/sites/board', { capability_profile: { all: true } }, 'capability_profile.all'],
    ['POST', '/sites/board/events', { data: 1 }, 'name'],
    ['POST', '/sites/board/events', { name: 7 }, 'name'],
    ['POST', '/sites/board/events', { name: 'x', message_id: 7 }, 'message_id'],
    ['POST', '/sites/board/events', { name: 'x', __proto__x: 1 }, '__proto__x'],
  ])('names the faults of a body: %s %s %j', async (method, path, wrong, parameter) => {
    await using control = await startControl();
    const answer = await control.ask(method, path, wrong);
    expect(answer).toMatchObject({ status: 400, body: { code: 'invalid_argument', errors: [{ parameter }] } });
    expect(control.ingested).toEqual([]);
  });

  test.each(['[]', '"x"', 'null', '{', '{"name":"x"}x', '\uFFFD'])(
    'accepts only an object as the body: %s',
    async (text) => {
      await using control = await startControl();
      const answer = await control.ask('POST', '/sites/board/events', text);
      expect(answer).toMatchObject({ status: 400, body: { code: 'invalid_argument' } });
    },
  );

  test('reports that the runtime is not connected, and loses nothing silently', async () => {
    await using control = await startControl();
    const away = control.bench.until('disconnected');
    control.link.drop();
    const { retryInMs } = await away;
    const event = await control.ask('POST', '/sites/board/events', { name: 'site_changed', message_id: 'm1' });
    expect(event).toMatchObject({ status: 503, body: { code: 'runtime_disconnected', message_id: 'm1' } });
    expect(event.headers.get('content-type')).toBe('application/problem+json');
    expect(control.ingested).toEqual([]);
    const put = await control.ask('PUT', '/sites/board', body);
    expect(put).toMatchObject({ status: 503, body: { code: 'runtime_disconnected' } });
    // The control server kept the definition, and sends it to the relay now.
    await control.bench.clock.advance(retryInMs ?? 0);
    const next = await control.bench.up();
    const { op, site_id, payload } = await next.next('site');
    expect([op, site_id, json(payload)]).toEqual(['register', 'board', body]);
  });

  test('reports that the link broke while it waited, and that the relay does not answer', async () => {
    await using control = await startControl();
    const broken = control.ask('PUT', '/sites/board', {});
    await control.link.next('site');
    control.link.drop();
    expect(await broken).toMatchObject({ status: 503, body: { code: 'runtime_disconnected' } });
    const link = await control.bench.again(await relink(control));
    const silent = control.ask('PUT', '/sites/other', {});
    await link.next('site');
    await control.bench.clock.advance(10_000);
    expect(await silent).toMatchObject({ status: 503, body: { code: 'runtime_disconnected' } });
  });

  test('names the id under which to publish again when the relay could not be reached', async () => {
    await using control = await startControl(() => {
      throw new TypeError('fetch failed');
    });
    const answer = control.ask('POST', '/sites/board/events', { name: 'x', message_id: 'm1' });
    expect(await meanwhile(control.bench.clock, answer, 1_000)).toMatchObject({
      status: 503,
      body: { code: 'runtime_disconnected', message_id: 'm1' },
    });
    expect(new Set(control.ingested.map((body) => JSON.stringify(body))).size).toBe(1);
  });

  test("passes on the relay's answer about an event", async () => {
    await using control = await startControl(() =>
      Response.json({ code: 'stale_instance', detail: 'Another instance is live.' }, { status: 409 }),
    );
    const answer = await control.ask('POST', '/sites/board/events', { name: 'x' });
    expect(answer).toMatchObject({
      status: 409,
      body: { code: 'stale_instance', detail: 'Another instance is live.' },
    });
  });

  test('listens on loopback only, and not without a token', async () => {
    await using bench = await startRuntimeBench();
    const { runtime } = bench;
    const start = (more: object) => startCooperativeSiteControlServer({ runtime, token, port: 0, ...more });
    for (const host of ['0.0.0.0', '::', 'localhost', '10.0.0.1']) {
      await expect(start({ host })).rejects.toThrow(TypeError);
    }
    await expect(start({ token: '' })).rejects.toThrow(TypeError);
    await using server = await start({ host: '::1' });
    expect(server.url).toBe(`http://[::1]:${server.port}`);
    const taken = start({ host: '::1', port: server.port });
    await expect(taken).rejects.toMatchObject({ code: 'EADDRINUSE' });
  });

  test('answers nothing after it was closed', async () => {
    await using control = await startControl();
    await control.server.close();
    await expect(control.ask('DELETE', '/sites/board')).rejects.toThrow();
  });
});

/** Waits for the link after the broken one. */
async function relink({ bench }: Control): Promise<FakeLink> {
  const { retryInMs } = await bench.until('disconnected');
  await bench.clock.advance(retryInMs ?? 0);
  return bench.up();
}
