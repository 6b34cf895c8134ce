/** Tests that chosen bad input to every interface is answered with the code that belongs to it. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { SignJWT } from 'jose';
import { MAX_FRAME_BYTES } from '../../src/core/limits.ts';
import { signToken } from '../../src/http/tokens.ts';
import { Peer } from '../gateway/kit/test-gateway.ts';
import { raw, SECRET, type Answer } from '../http/kit/http-relay.ts';
import { GRAPHQL, REST, STREAMS } from './kit/hostile-requests.ts';
import { codeOf } from './kit/test-relay.ts';
import { startAttackedRelay, type AttackedRelay } from './kit/attacked-relay.ts';

let at: AttackedRelay;
beforeAll(async () => {
  at = await startAttackedRelay();
});
afterEach(() => at.sound());
afterAll(async () => {
  at.clean();
  await at[Symbol.asyncDispose]();
});

/** Returns the code of a problem, or of the first GraphQL error. */
function codeIn(answer: Answer): unknown {
  const errors = answer.json?.['errors'];
  const [first] = Array.isArray(errors) ? errors : [];
  return first?.extensions?.code ?? codeOf(answer);
}

describe.each([
  ['REST', REST],
  ['GraphQL', GRAPHQL],
  ['event streams', STREAMS],
])('bad input of %s', (_door, awkward) => {
  it.each(awkward)('is answered with a code of its own: $name', async ({ path, ask, answer }) => {
    const got = await at.ask(path, ask);
    expect([got.status, codeIn(got)]).toEqual(answer);
    expect(got.text).not.toMatch(/\.ts\b|node:internal|at \w+ \(/);
  });
});

describe('a bad token', () => {
  const jwt = (claims: Record<string, unknown>, secret = SECRET): Promise<string> =>
    new SignJWT(claims).setProtectedHeader({ alg: 'HS256' }).sign(new TextEncoder().encode(secret));
  const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const exp = Math.floor(Date.now() / 1000) + 3600;
  const tokens: readonly (readonly [string, () => string | Promise<string>, string])[] = [
    ['nonsense', () => 'planted-broken-token', 'unauthenticated'],
    ['a part of a JWT', () => `${encode({ alg: 'HS256' })}.${encode({ sub: 'alice' })}`, 'unauthenticated'],
    [
      'no algorithm',
      () => `${encode({ alg: 'none' })}.${encode({ sub: 'alice', exp, scope: 'admin' })}.`,
      'unauthenticated',
    ],
    ['another secret', () => jwt({ sub: 'alice', exp, scope: 'invoke' }, 'x'.repeat(40)), 'unauthenticated'],
    ['no expiry', () => jwt({ sub: 'alice', scope: 'invoke' }), 'unauthenticated'],
    ['an expiry in the past', () => jwt({ sub: 'alice', exp: 1, scope: 'invoke' }), 'unauthenticated'],
    ['no subject', () => jwt({ exp, scope: 'invoke' }), 'unauthenticated'],
    [
      'a subject that is not canonical',
      () => signToken({ secret: SECRET, user: 'a/b', scopes: [], ttlSeconds: 60, now: at.clock.now() }),
      'invalid_user',
    ],
    ['9 KB', () => 'planted-broken-token'.repeat(450), 'unauthenticated'],
  ];

  it.each(tokens)('is refused by every handler: %s', async (_name, make, code) => {
    // An address may send only a few bad tokens each minute.
    await at.pass(61_000);
    const token = await make();
    const rest = await at.ask('/users', { token });
    expect([rest.status, codeIn(rest)]).toEqual([401, code]);
    const graphql = await at.ask('/graphql', {
      token,
      method: 'POST',
      body: '{"query":"{ viewer { kind } }"}',
      headers: { 'content-type': 'application/json' },
    });
    expect([graphql.status, codeIn(graphql)]).toEqual([401, code]);
    const peer = new Peer(at);
    await peer.opened;
    peer.raw(JSON.stringify({ type: 'hello', token }));
    const { code: closed } = await peer.end();
    expect(closed).toBe(token.length > 8192 ? 4400 : 4401);
  });

  it('too many times gets a retry time, and locks out no token that was valid before', async () => {
    const answers: Answer[] = [];
    for (let i = 0; i < 30; i++) answers.push(await at.ask('/users', { token: `planted-broken-token-${i}` }));
    expect(answers.at(-1)?.status).toBe(429);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([401, 429]));
    await at.sound();
    await at.pass(61_000);
  });
});

describe('a bad frame', () => {
  const frames: readonly (readonly [string, string | Buffer, string])[] = [
    ['no header', 'planted-payload', 'invalid_argument'],
    ['a header that is a list', '[]', 'invalid_argument'],
    ['no type', '{}', 'invalid_argument'],
    ['an unknown type', '{"type":"__proto__"}', 'invalid_argument'],
    ['a frame of the relay', '{"type":"welcome"}', 'invalid_argument'],
    ['a second hello', '{"type":"hello","token":"planted-broken-token"}', 'invalid_argument'],
    ['an id that is none', '{"type":"await","ref":"r","client_id":"a b","command_id":"c"}', 'invalid_argument'],
    [
      'a payload that is no JSON',
      '{"type":"invoke","ref":"r","client_id":"a","action":"b"}\n{"planted-payload',
      'invalid_argument',
    ],
    ['a payload where none is', '{"type":"pong"}\n{}', 'invalid_argument'],
    [
      'a payload too deep',
      `{"type":"invoke","ref":"r","client_id":"a","action":"b"}\n{"a":${'['.repeat(300)}${']'.repeat(300)}}`,
      'invalid_argument',
    ],
    [
      'a parameter of the relay',
      '{"type":"invoke","ref":"r","client_id":"a","action":"b"}\n{"__cooperative_site_id":1}',
      'reserved_parameter',
    ],
    ['bytes', Buffer.from([1, 2, 3]), 'invalid_argument'],
    ['advertisements on a link that has none', '{"type":"actions"}\n{"actions":[]}', 'forbidden'],
  ];

  it.each(frames)('is refused by its code, and the link stays up: %s', async (_name, frame, code) => {
    const peer = await at.caller('mallory');
    peer.raw(frame);
    expect(await peer.next('refused')).toMatchObject({ code });
    await peer.sync();
    peer.ws.terminate();
  });

  it.each([
    ['longer than twice what it may be', 'x'.repeat(2 * MAX_FRAME_BYTES + 1), 4413],
    ['that is not UTF-8', null, 4400],
  ])('%s ends only its own link', async (_name, text, code) => {
    const peer = await at.caller('mallory');
    if (text !== null) peer.raw(text);
    else peer.ws.send(Buffer.from([0xff, 0xfe]), { binary: false });
    expect((await peer.end()).code).toBe(code);
  });

  it('repeatedly ends only its own link', async () => {
    const peer = await at.caller('mallory');
    for (let i = 0; i < 5; i++) peer.raw('nonsense');
    expect(await peer.end()).toMatchObject({ code: 4400, bye: { reason: 'protocol_error', reconnect: true } });
  });
});

describe('bytes that are not a request', () => {
  const host = 'Host: 127.0.0.1';
  it.each([
    ['noise', '\u0016\u0003\u0001\r\n\r\n', 400],
    ['two lengths', `POST /users HTTP/1.1\r\n${host}\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab`, 400],
    [
      'a length and chunks',
      `POST /users HTTP/1.1\r\n${host}\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      400,
    ],
    ['no host', 'GET /users HTTP/1.1\r\n\r\n', 400],
    ['a head without end', `GET /users HTTP/1.1\r\n${host}\r\nX: ${'x'.repeat(17_000)}\r\n\r\n`, 431],
    ['a path up and down', `GET /users/../metrics HTTP/1.1\r\n${host}\r\nConnection: close\r\n\r\n`, 404],
    ['a path that is none', `GET http:// HTTP/1.1\r\n${host}\r\nConnection: close\r\n\r\n`, 404],
    ['a broken upgrade', `GET /connect HTTP/1.1\r\n${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`, 400],
  ])('are answered and the socket is closed: %s', async (_name, bytes, status) => {
    expect((await raw(at.url, bytes)).split('\r\n')[0]).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  });
});
