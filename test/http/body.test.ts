/** Tests request bodies: their limit, their form, and which are read. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ADMIN, postJson, raw, startHttpRelay, type HttpRelay } from './kit/http-relay.ts';

const MAX = 4096;
let relay: HttpRelay;
beforeAll(async () => void (relay = await startHttpRelay({ maxBodyBytes: MAX })));
afterAll(() => relay[Symbol.asyncDispose]());

const JSON_TYPE = { 'content-type': 'application/json' };
const INVOKE = '/connections/alice/c1/actions/ping';

describe('a body', () => {
  it.each(['/graphql', INVOKE])('of exactly the limit is accepted %s, one more byte is not', async (path) => {
    const query = (bytes: number): string => {
      const text = JSON.stringify({ query: '{ __typename }', params: {} });
      return text + ' '.repeat(bytes - text.length);
    };
    const fits = await relay.ask(path, { method: 'POST', headers: JSON_TYPE, body: query(MAX) });
    expect(fits.status).not.toBe(413);
    const over = await relay.ask(path, { method: 'POST', headers: JSON_TYPE, body: query(MAX + 1) });
    expect([over.status, over.headers['connection']]).toEqual([413, 'close']);
    expect(over.text).toContain('payload_too_large');
  });

  it('is counted when it arrives in chunks without a length', async () => {
    const body = Array.from({ length: 40 }, () => ' '.repeat(1000));
    const answer = await relay.ask('/graphql', { method: 'POST', headers: JSON_TYPE, body });
    expect([answer.status, answer.headers['connection']]).toEqual([413, 'close']);
  });

  it('of no bytes counts as absent, whatever its type and however it is sent', async () => {
    for (const body of ['', ['']]) {
      const answer = await relay.ask(`${INVOKE}`, { method: 'POST', body });
      expect([answer.status, answer.json?.['code']]).toEqual([409, 'not_connected']);
    }
  });

  it('that is announced too large is refused before it is sent', async () => {
    const lines = [
      `POST ${INVOKE} HTTP/1.1`,
      'Host: x',
      `Authorization: Bearer ${ADMIN}`,
      'Content-Type: application/json',
    ];
    const answer = await raw(relay.url, [...lines, 'Content-Length: 999999', '', ''].join('\r\n'));
    expect(answer).toMatch(/^HTTP\/1\.1 413/);
    expect(answer).toContain('"code":"payload_too_large"');
  });

  it.each(['Content-Length: 4000', 'Content-Length: 999999', 'Transfer-Encoding: chunked'])(
    'of a REST request without a token is not waited for: %s',
    async (length) => {
      const lines = [`POST ${INVOKE} HTTP/1.1`, 'Host: x', 'Content-Type: application/json', length, '', ''];
      const answer = await raw(relay.url, lines.join('\r\n'));
      expect(answer).toMatch(/^HTTP\/1\.1 401 /);
      expect(answer).toMatch(/connection: close/i);
      expect(answer).toContain('"code":"unauthenticated"');
    },
  );

  it('does not change the answer for an unknown path or a wrong method', async () => {
    const answers = ['/nowhere', '/users'].map((path) => relay.ask(path, postJson({}, { token: null })));
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([404, 405]);
  });

  it.each([
    ['text/plain', {}],
    ['application/x-www-form-urlencoded', {}],
    ['multipart/form-data; boundary=x', {}],
    ['application/graphql', {}],
    ['application/json; charset=latin1', {}],
    ['application/jsonp', {}],
    ['', {}],
    ['application/json', { 'content-encoding': 'gzip' }],
  ])('of type %j %j is refused: 415', async (type, more) => {
    for (const path of ['/graphql', INVOKE]) {
      const headers = { ...(type && { 'content-type': type }), ...more };
      const answer = await relay.ask(path, { method: 'POST', headers, body: '{"query":"{ __typename }"}' });
      expect([path, answer.status, answer.text]).toEqual([
        path,
        415,
        expect.stringContaining('unsupported_media_type'),
      ]);
    }
  });

  it.each([
    ['not JSON', '{"query":'],
    ['two values', '{} {}'],
    ['NaN', '{"a":NaN}'],
    ['a byte order mark', '\ufeff{}'],
    ['not UTF-8', Buffer.from([0x22, 0xff, 0xfe, 0x22])],
    ['an escaped quote that never ends', '{"a":"\\'],
    ['nested too deeply', `${'['.repeat(300)}${']'.repeat(300)}`],
    ['brackets without end', '['.repeat(MAX)],
  ])('that is %s is refused: 400', async (_says, body) => {
    for (const path of ['/graphql', INVOKE]) {
      const answer = await relay.ask(path, { method: 'POST', headers: JSON_TYPE, body });
      expect([path, answer.status]).toEqual([path, 400]);
      expect(answer.text).toContain('invalid_argument');
    }
  });

  it('may hold brackets in strings, and be nested as deeply as allowed', async () => {
    const variables = { a: `${'['.repeat(500)}\\"{`, b: JSON.parse(`${'['.repeat(150)}${']'.repeat(150)}`) };
    const answer = await relay.ask('/graphql', postJson({ query: '{ __typename }', variables }));
    expect(answer.json).toEqual({ data: { __typename: 'Query' } });
  });

  it('with hostile keys and lone surrogates breaks nothing', async () => {
    const body =
      '{"query":"{ __typename }","__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"variables":{"x":"\\ud800"}}';
    const answer = await relay.ask('/graphql', { method: 'POST', headers: JSON_TYPE, body });
    expect(answer.status).toBeLessThan(500);
    expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false);
    const invoked = await relay.ask(INVOKE, {
      method: 'POST',
      headers: JSON_TYPE,
      body: '{"params":{"__proto__":{"a":"\\ud800"}}}',
    });
    expect([invoked.status, invoked.json?.['code']]).toEqual([409, 'not_connected']);
  });

  it('that ends early ends its connection and nothing else', async () => {
    const head =
      'POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"que';
    const { connect } = await import('node:net');
    await new Promise<void>((closed) => {
      const socket = connect(Number(new URL(relay.url).port), '127.0.0.1', () => {
        socket.end(head);
        socket.resume();
      });
      socket.on('close', () => closed());
    });
    expect((await relay.ask('/healthz')).status).toBe(200);
    expect(relay.lines.join('')).not.toContain('unexpected error');
  });
});
