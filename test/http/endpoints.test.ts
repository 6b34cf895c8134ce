/** Tests what all HTTP handlers have in common: tokens, headers, paths and refusals. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { CLIENT_FILES } from '../../src/http/built-files.ts';
import { FAILURES_A_MINUTE } from '../../src/http/token-guard.ts';
import { FakeClock } from '../kit/clock.ts';
import { ADMIN, postJson, raw, startHttpRelay, SECRET, tokenOf, type Ask, type HttpRelay } from './kit/http-relay.ts';

let relay: HttpRelay;
beforeAll(async () => void (relay = await startHttpRelay()));
afterAll(() => relay[Symbol.asyncDispose]());

const codeOf = (json: Record<string, unknown> | undefined): unknown => {
  const errors = json?.['errors'];
  return json?.['code'] ?? (Array.isArray(errors) ? errors[0]?.extensions?.code : undefined);
};
const QUERY = postJson({ query: '{ __typename }' });

describe('every handler', () => {
  const endpoints: [string, string, Ask, RegExp][] = [
    ['REST', '/users', {}, /problem\+json/],
    ['metrics', '/metrics', {}, /problem\+json/],
    ['GraphQL', '/graphql', QUERY, /application\/json/],
    ['GraphQL streams', '/graphql/stream', { method: 'PUT' }, /application\/json/],
  ];

  it.each(endpoints)(
    '%s answers a bad token in its own form, with the required scheme',
    async (_endpoint, path, requested, type) => {
      const answer = await relay.ask(path, { ...requested, token: 'not.a.token' });
      expect(answer.status).toBe(401);
      expect(answer.headers['www-authenticate']).toBe('Bearer');
      expect(answer.headers['content-type']).toMatch(type);
      expect(codeOf(answer.json)).toBe('unauthenticated');
    },
  );

  it.each(endpoints.filter(([name]) => name !== 'GraphQL'))(
    '%s answers a request without a token with 401',
    async (_endpoint, path, requested) => {
      const answer = await relay.ask(path, { ...requested, token: null });
      expect([answer.status, answer.headers['www-authenticate']]).toEqual([401, 'Bearer']);
    },
  );

  it.each(['Basic dXNlcjpwYXNz', 'Bearer', 'Bearer a b', `Token ${ADMIN}`, ADMIN])(
    'refuses the authorization %j',
    async (authorization) => {
      const answer = await relay.ask('/users', { token: null, headers: { authorization } });
      expect([answer.status, codeOf(answer.json)]).toEqual([401, 'unauthenticated']);
    },
  );

  it('never accepts a token from a cookie or the query', async () => {
    const cookie = await relay.ask('/metrics', { token: null, headers: { cookie: `authorization=Bearer ${ADMIN}` } });
    const query = await relay.ask(`/metrics?token=${ADMIN}&access_token=${ADMIN}`, { token: null });
    expect([cookie.status, query.status]).toEqual([401, 401]);
  });

  it('sends safe headers and an id of its own', async () => {
    const answer = await relay.ask('/users', { headers: { 'x-request-id': 'from-outside' } });
    expect(answer.headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
    });
    expect(answer.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
    expect(answer.headers['x-powered-by']).toBeUndefined();
  });

  it('restricts metrics to administrators', async () => {
    const user = await relay.ask('/metrics', { token: await tokenOf('alice', 'connect', 'invoke', 'host') });
    expect([user.status, codeOf(user.json)]).toEqual([403, 'forbidden']);
    const admin = await relay.ask('/metrics', { token: await tokenOf('root', 'admin') });
    expect(admin.status).toBe(200);
    expect(admin.text).toMatch(/^callboard_requests_total\{handler="rest"\} \d+$/m);
    expect(admin.text).toMatch(/^callboard_links 0$/m);
    expect(admin.text).toMatch(/^callboard_waiters 0$/m);
  });
});

describe('paths', () => {
  it.each([
    ['/nope', 'GET', 404, 'not_found'],
    ['/clients/build.js', 'GET', 404, 'not_found'],
    ['/clients/../package.json', 'GET', 404, 'not_found'],
    ['/clients/%2e%2e/package.json', 'GET', 404, 'not_found'],
    ['//users', 'GET', 404, 'not_found'],
    ['/connect', 'GET', 426, 'invalid_argument'],
    ['/healthz', 'POST', 405, 'method_not_allowed'],
    ['/metrics', 'DELETE', 405, 'method_not_allowed'],
    ['/users', 'PATCH', 405, 'method_not_allowed'],
    ['/users', 'OPTIONS', 405, 'method_not_allowed'],
  ])('%s by %s is %i %s', async (path, method, status, code) => {
    const answer = await relay.ask(path, { method });
    expect([answer.status, codeOf(answer.json)]).toEqual([status, code]);
    if (status === 405) expect(answer.headers['allow']).toContain('GET');
    if (status === 426) expect(answer.headers['upgrade']).toBe('websocket');
  });

  it('open to all: health, the description, the start page, the editor', async () => {
    for (const [path, type] of [
      ['/healthz', 'application/json'],
      ['/readyz', 'application/json'],
      ['/openapi.json', 'application/json'],
      ['/', 'text/html'],
    ] as const) {
      const answer = await relay.ask(path, { token: null, headers: { 'sec-fetch-site': 'cross-site' } });
      expect([path, answer.status, answer.headers['content-type']?.split(';')[0]]).toEqual([path, 200, type]);
    }
    const editor = await relay.ask('/graphql', { token: null, headers: { accept: 'text/html,*/*' } });
    expect([editor.status, editor.headers['content-type']]).toEqual([200, expect.stringContaining('text/html')]);
  });

  it('the start page loads nothing from elsewhere', async () => {
    const { text, headers } = await relay.ask('/');
    expect(text).not.toMatch(/https?:|<script|src=/);
    expect(headers['content-security-policy']).toContain("default-src 'none'");
  });

  it('the start page lists every endpoint that is not a route of the description', async () => {
    const { text } = await relay.ask('/');
    for (const path of [
      '/graphql',
      '/graphql/stream',
      '/connect',
      '/site-sessions/{session_id}/events',
      '/openapi.json',
    ])
      expect(text).toContain(`<code>${path}</code>`);
    for (const file of CLIENT_FILES) expect(text).toContain(`/clients/${file}`);
  });

  it('a HEAD is answered without a body', async () => {
    const answer = await relay.ask('/healthz', { method: 'HEAD' });
    expect([answer.status, answer.text]).toEqual([200, '']);
  });

  it('an Upgrade that is not for the gateway is served as if it were absent', async () => {
    const answer = await relay.ask('/healthz', { headers: { connection: 'Upgrade', upgrade: 'h2c' } });
    expect(answer.status).toBe(200);
  });

  it('the absolute form of a request is understood', async () => {
    const text = await raw(relay.url, 'GET http://elsewhere/healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    expect(text).toMatch(/^HTTP\/1\.1 200/);
  });

  it.each([
    ['/graphql?query=%7B__typename%7D', 'application/json', '{"data":{"__typename":"Query"}}'],
    ['/graphql/stream?query=%7B__typename%7D', 'text/event-stream', 'data: {"data":{"__typename":"Query"}}'],
    ['/users?limit=1', 'application/json', '"items":[]'],
  ])('the absolute form reaches the route of its path: %s', async (target, accept, expected) => {
    const lines = ['Host: x', `Authorization: Bearer ${ADMIN}`, `Accept: ${accept}`, 'Connection: close', '', ''];
    const text = await raw(relay.url, [`GET http://elsewhere${target} HTTP/1.1`, ...lines].join('\r\n'));
    expect(text).toMatch(/^HTTP\/1\.1 200/);
    expect(text).toContain(expected);
  });

  const WEBSOCKET_KEY = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==';
  it.each([
    ['what is not HTTP', 'hello\r\n\r\n', /^HTTP\/1\.1 400/],
    ['too large a header', `GET / HTTP/1.1\r\nHost: x\r\nX: ${'y'.repeat(20_000)}\r\n\r\n`, /^HTTP\/1\.1 431/],
    [
      'two lengths',
      'POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx',
      /^HTTP\/1\.1 400/,
    ],
  ])('%s is refused, and other connections are not affected', async (_says, bytes, expected) => {
    expect(await raw(relay.url, bytes)).toMatch(expected);
    expect((await relay.ask('/healthz')).status).toBe(200);
  });

  const bearer = `Authorization: Bearer ${ADMIN}`;
  const request = (first: string, ...lines: readonly string[]): string => [first, ...lines, '', ''].join('\r\n');
  const socketLines = ['Host: x', 'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Protocol: callboard.v1'];
  it.each([
    ['what is not HTTP', 'hello\r\n\r\n', 400, 'invalid_argument'],
    ['a method of nobody', request('FOO /users HTTP/1.1', 'Host: x'), 400, 'invalid_argument'],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400, 'invalid_argument'],
    ['too large a header', request('GET / HTTP/1.1', 'Host: x', `X: ${'y'.repeat(20_000)}`), 431, 'payload_too_large'],
    ['no host', request('GET /users HTTP/1.1', bearer), 400, 'invalid_argument'],
    ['a host that no URL could name', request('GET /users HTTP/1.1', 'Host: a b', bearer), 400, 'invalid_argument'],
    ['two hosts', request('GET /users HTTP/1.1', 'Host: x', bearer, 'host: x'), 400, 'invalid_argument'],
    ['two hosts, of which one is empty', request('GET / HTTP/1.1', 'Host:', 'Host: x'), 400, 'invalid_argument'],
    [
      'a WebSocket with two hosts',
      request('GET /connect HTTP/1.1', ...socketLines, 'Host: y', 'Sec-WebSocket-Version: 13', WEBSOCKET_KEY),
      400,
      'invalid_argument',
    ],
    [
      'a WebSocket whose host no URL could name',
      request(
        'GET /connect HTTP/1.1',
        'Host: a b',
        ...socketLines.slice(1),
        'Sec-WebSocket-Version: 13',
        WEBSOCKET_KEY,
      ),
      400,
      'invalid_argument',
    ],
    [
      'another expectation',
      request('POST /users HTTP/1.1', 'Host: x', bearer, 'Expect: zz', 'Content-Length: 2') + '{}',
      417,
      'invalid_argument',
    ],
    [
      'an unknown coding',
      request('POST /users HTTP/1.1', 'Host: x', bearer, 'Transfer-Encoding: foo'),
      400,
      'invalid_argument',
    ],
    [
      'a bad chunk',
      request(
        'POST /graphql HTTP/1.1',
        'Host: x',
        bearer,
        'Content-Type: application/json',
        'Transfer-Encoding: chunked',
      ) + 'zz\r\n\r\n',
      400,
      'invalid_argument',
    ],
    ['a tunnel', request('CONNECT elsewhere:80 HTTP/1.1', 'Host: x'), 405, 'method_not_allowed'],
    [
      'a WebSocket without a key',
      request('GET /connect HTTP/1.1', ...socketLines, 'Sec-WebSocket-Version: 13'),
      400,
      'invalid_argument',
    ],
    ['a WebSocket by POST', request('POST /connect HTTP/1.1', ...socketLines), 405, 'method_not_allowed'],
  ])('%s is answered with a body and a code', async (_says, bytes, status, code) => {
    const [head = '', body = ''] = (await raw(relay.url, bytes)).split('\r\n\r\n');
    expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(head).toMatch(/^content-type: application\/problem\+json/im);
    expect(head).toMatch(/^connection: close/im);
    if (status === 405) expect(head).toMatch(/^allow: GET/im);
    expect(JSON.parse(body)).toMatchObject({
      type: 'about:blank',
      title: expect.any(String),
      status,
      code,
      detail: expect.any(String),
    });
  });

  it('a slash at the end of a path is answered with 404, on every route and without a redirect', async () => {
    const { paths: described } = (await relay.ask('/openapi.json')).json as { paths: Record<string, object> };
    const routes = Object.entries(described).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => [path.replaceAll(/\{\w+\}/g, 'x'), method.toUpperCase()]),
    );
    const builtin = ['/users', '/graphql', '/graphql/stream', '/healthz', '/readyz', '/metrics', '/openapi.json'];
    const other = ['/reference', '/connect', '/sign-in', '/site-sessions/x/events', '/nothing', '/users//', '//'];
    const paths = [...routes, ...[...builtin, ...other].map((path) => [path, 'GET'])];
    const seen = await Promise.all(
      paths.map(async ([path = '', method = '']) => {
        const { status, headers } = await relay.ask(`${path}/`, { method });
        return [method, path, status, headers.location];
      }),
    );
    expect(seen.length).toBeGreaterThan(40);
    expect(seen.filter(([, , status, location]) => status !== 404 || location !== undefined)).toEqual([]);
  });

  it.each(['a b', 'a/b', 'x?y', 'user@x', '999.999.1.999', 'x:99999', '[::1', 'x:80:80'])(
    'GraphQL refuses the host %j as every other path does',
    async (host) => {
      const query = 'GET /graphql?query=%7B__typename%7D HTTP/1.1';
      const text = await raw(relay.url, request(query, `Host: ${host}`, bearer));
      expect(text).toMatch(/^HTTP\/1\.1 400 /);
      expect(JSON.parse(text.split('\r\n\r\n')[1] ?? '')).toMatchObject({
        errors: [{ extensions: { code: 'invalid_argument' } }],
      });
    },
  );

  it.each(['', 'x', 'x:', 'relay.example:8080', '127.0.0.1', '[::1]:80', 'sub_domain.example'])(
    'GraphQL takes the host %j',
    async (host) => {
      const query = 'GET /graphql?query=%7B__typename%7D HTTP/1.1';
      const text = await raw(relay.url, request(query, `Host: ${host}`, 'Connection: close', bearer));
      expect(text).toMatch(/^HTTP\/1\.1 200 /);
    },
  );

  it('an expected 100 Continue is sent, and HTTP/1.0 needs no host', async () => {
    const body = '{"query":"{ __typename }"}';
    const json = ['Content-Type: application/json', `Content-Length: ${body.length}`, 'Connection: close'];
    const expecting = request('POST /graphql HTTP/1.1', 'Host: x', bearer, 'Expect: 100-continue', ...json) + body;
    expect(await raw(relay.url, expecting)).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK/);
    expect(await raw(relay.url, request('GET /users HTTP/1.0', bearer))).toMatch(/^HTTP\/1\.1 200 OK/);
  });

  it.each([
    ['/graphql', ['TRACE', 'PROPFIND', 'DELETE', 'PUT', 'PATCH', 'OPTIONS'], 'GET, POST'],
    ['/graphql/stream', ['TRACE', 'PROPFIND', 'PATCH', 'OPTIONS'], 'GET, POST, PUT, DELETE'],
  ])('%s answers odd methods in GraphQL’s form', async (path, methods, allow) => {
    for (const method of methods) {
      const answer = await relay.ask(path, { method });
      expect([method, answer.status, answer.headers.allow]).toEqual([method, 405, allow]);
      expect(answer.json).toMatchObject({ errors: [{ extensions: { code: 'method_not_allowed' } }] });
    }
    const head = await relay.ask(path, { method: 'HEAD' });
    expect([head.status, head.text]).toEqual([405, '']);
  });

  it('a broken request after one that is being answered does not affect its answer', async () => {
    // The document is generated for the first request, and kept from then on.
    await relay.ask('/openapi.json');
    const text = await raw(relay.url, `${request('GET /openapi.json HTTP/1.1', 'Host: x')}broken\r\n\r\n`);
    const [head = '', ...rest] = text.split('\r\n\r\n');
    const length = Number(/^content-length: (\d+)/im.exec(head)?.[1]);
    expect(length).toBeGreaterThan(100_000);
    expect(rest.join('\r\n\r\n').slice(0, length)).not.toContain('HTTP/1.1 ');
    expect((await relay.ask('/healthz')).status).toBe(200);
  });

  it('are served below the base path only', async () => {
    await using based = await startHttpRelay({ basePath: '/relay/one' });
    expect(based.url).toMatch(/\/relay\/one$/);
    const statuses: number[] = [];
    for (const path of [
      '/relay/one/users',
      '/relay/one/healthz',
      '/relay/one',
      '/relay/one/',
      '/users',
      '/relay/oneusers',
    ]) {
      statuses.push((await based.ask(path)).status);
    }
    expect(statuses).toEqual([200, 200, 200, 200, 404, 404]);
    expect((await based.ask('/relay/one/graphql', QUERY)).json).toEqual({ data: { __typename: 'Query' } });
    const withQuery = await based.ask(`/relay/one/graphql?query=${encodeURIComponent('{ __typename }')}`);
    expect(withQuery.json).toEqual({ data: { __typename: 'Query' } });
    expect((await based.ask('/relay/one/graphql/stream', { method: 'PUT' })).status).toBe(201);
    expect((await based.ask('/relay/one/connections?user_id=nobody')).status).toBe(200);
    const page = await based.ask('/relay/one/graphql', { headers: { accept: 'text/html' }, token: null });
    expect(page.text).toContain('"endpoint":"/relay/one/graphql"');
    expect((await based.ask('/relay/one/')).text).toContain('href="/relay/one/graphql"');
    expect((await based.ask('/relay/one/openapi.json')).json).toMatchObject({ servers: [{ url: '/relay/one' }] });
  });
});

describe('bad tokens from one address', () => {
  it('are answered 429 after twenty in a minute, while every good one is served', async () => {
    const clock = new FakeClock(Date.now());
    await using other = await startHttpRelay({}, { clock });
    expect((await other.ask('/users')).status).toBe(200);
    const statuses = new Set<number>();
    for (let i = 0; i < FAILURES_A_MINUTE; i++) statuses.add((await other.ask('/users', { token: `bad-${i}` })).status);
    expect([...statuses]).toEqual([401]);
    const limited = await other.ask('/users', { token: 'bad-again' });
    expect([limited.status, codeOf(limited.json)]).toEqual([429, 'rate_limited']);
    expect(Number(limited.headers['retry-after'])).toBeGreaterThan(0);
    for (const user of ['alice', 'bob']) {
      const fresh = await tokenOf(user, 'admin');
      expect((await other.ask('/users', { token: fresh })).status).toBe(200);
    }
    expect((await other.ask('/users')).status).toBe(200);
    expect((await other.ask('/metrics')).text).toContain('callboard_tokens_refused_total{reason="malformed"} 21');
    expect((await other.ask('/healthz', { token: null })).status).toBe(200);
    await clock.advance(60_001);
    expect((await other.ask('/users', { token: 'bad-again' })).status).toBe(401);
  });

  it('do not lock out an administrator at its first request', async () => {
    await using other = await startHttpRelay();
    for (let i = 0; i <= FAILURES_A_MINUTE; i++) await other.ask('/users', { token: `bad-${i}` });
    expect((await other.ask('/users', { token: 'bad' })).status).toBe(429);
    expect((await other.ask('/metrics')).status).toBe(200);
  });

  it('are counted together with those of hellos on links', async () => {
    await using other = await startHttpRelay();
    for (let i = 0; i < FAILURES_A_MINUTE; i++) await refusedHello(other.url, `bad-${i}`);
    expect(await refusedHello(other.url, 'bad')).toMatchObject({
      code: 'rate_limited',
      frame: 'hello',
      retry_after_ms: expect.any(Number),
    });
    expect((await other.ask('/users', { token: 'bad' })).status).toBe(429);
    expect(await refusedHello(other.url, await tokenOf('alice', 'host'))).toMatchObject({ code: 'forbidden' });
  });

  it('are logged separately by their owner, without the token', async () => {
    await using other = await startHttpRelay({
      auth: { adminTokens: [`ops=${ADMIN}`], secret: SECRET, issuer: 'https://id' },
    });
    const reasons = async (token: string): Promise<string[]> => {
      const before = other.lines.length;
      await other.ask('/users', { token });
      await refusedHello(other.url, token);
      const lines = other.lines.slice(before).map((line): Record<string, unknown> => JSON.parse(line));
      expect(other.lines.join('')).not.toContain(token);
      const refused = lines.filter(({ msg }) => msg === 'a token was refused');
      expect(refused.map(({ address }) => address)).toEqual(['127.0.0.1', '127.0.0.1']);
      return refused.map(({ reason }) => String(reason));
    };
    expect(await reasons('nothing-like-a-token')).toEqual(['malformed', 'malformed']);
    expect(await reasons(await tokenOf('alice', 'invoke'))).toEqual(['issuer', 'issuer']);
    expect(await reasons(`cbg_${'x'.repeat(43)}`)).toEqual(['grant', 'grant']);
    await other.ask('/users');
    expect(other.lines.at(-1)).toContain('"requester":"admin:ops"');
  });

  it('are counted by the proxy’s header only behind a trusted proxy', async () => {
    for (const [trustProxy, expected] of [
      [true, 401],
      [false, 429],
    ] as const) {
      await using other = await startHttpRelay({ trustProxy });
      let last = 0;
      for (let i = 0; i <= FAILURES_A_MINUTE; i++) {
        const headers = { 'x-forwarded-for': `8.8.8.8, 10.0.0.${i}` };
        last = (await other.ask('/users', { token: 'bad', headers })).status;
      }
      expect(last).toBe(expected);
    }
  });
});

/** Sends a hello with this token, and resolves with the refusal. */
function refusedHello(url: string, token: string): Promise<unknown> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/connect`, 'callboard.v1');
  socket.on('open', () => socket.send(JSON.stringify({ type: 'hello', token })));
  return new Promise((resolve, reject) => {
    socket.once('message', (data) => resolve(JSON.parse(String(data))));
    socket.once('error', reject);
    socket.on('message', () => socket.close());
  });
}
