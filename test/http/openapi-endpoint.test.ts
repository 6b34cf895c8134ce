/** Tests the OpenAPI document and its reference page over HTTP. */
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { request } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { encodingOf } from '../../src/web/packed-file.ts';
import { startHttpRelay, type HttpRelay } from './kit/http-relay.ts';

let relay: HttpRelay;
beforeAll(async () => void (relay = await startHttpRelay()));
afterAll(() => relay[Symbol.asyncDispose]());

/** Resolves with the status, headers and bytes of an answer. `fetch` would decompress the bytes. */
async function bytesOf(path: string, headers: Record<string, string>) {
  const { promise, resolve, reject } = Promise.withResolvers<{
    head: Record<string, unknown>;
    status: number;
    bytes: Buffer;
  }>();
  request(relay.url + path, { headers, agent: false }, (answer) => {
    buffer(answer).then((bytes) => resolve({ head: answer.headers, status: answer.statusCode ?? 0, bytes }), reject);
  })
    .on('error', reject)
    .end();
  return promise;
}

describe.each(['/openapi.json', '/reference'])('%s', (path) => {
  it('is compressed where the request accepts it, with the same content', async () => {
    const plain = await bytesOf(path, {});
    const br = await bytesOf(path, { 'accept-encoding': 'gzip, deflate, br' });
    const zip = await bytesOf(path, { 'accept-encoding': 'gzip' });
    expect([plain, br, zip].map(({ head }) => head['content-encoding'])).toEqual([undefined, 'br', 'gzip']);
    expect(brotliDecompressSync(br.bytes).equals(plain.bytes)).toBe(true);
    expect(gunzipSync(zip.bytes).equals(plain.bytes)).toBe(true);
    expect(zip.bytes.length).toBeLessThan(plain.bytes.length / 4);
    for (const { head, bytes } of [plain, br, zip]) {
      expect(head['vary']).toContain('accept-encoding');
      expect(Number(head['content-length'])).toBe(bytes.length);
    }
  });

  it('is not sent again to a client that has it', async () => {
    const { head } = await bytesOf(path, {});
    const etag = String(head['etag']);
    for (const tag of [etag, etag.replace('W/', ''), `"other", ${etag}`, '*']) {
      const again = await bytesOf(path, { 'if-none-match': tag, 'accept-encoding': 'br' });
      expect([tag, again.status, again.bytes.length, again.head['etag']]).toEqual([tag, 304, 0, etag]);
    }
    expect((await bytesOf(path, { 'if-none-match': '"other"' })).status).toBe(200);
  });

  it('is answered to a HEAD without a body', async () => {
    const answer = await relay.ask(path, { method: 'HEAD', token: null });
    expect([answer.status, answer.text, Number(answer.headers['content-length']) > 10_000]).toEqual([200, '', true]);
  });
});

it.each([
  [undefined, null],
  ['', null],
  ['identity', null],
  ['gzip', 'gzip'],
  ['br;q=0.5, gzip;q=0.8', 'gzip'],
  ['gzip;q=0.5, br;q=0.5', 'br'],
  ['br;q=0, gzip;q=0', null],
  ['*', 'br'],
  ['*, br;q=0', 'gzip'],
  ['GZIP ; Q=1', 'gzip'],
  ['br;q=nonsense', null],
])('of the encodings %j it takes %j', (header, encoding) => {
  expect(encodingOf(header)).toBe(encoding);
});

describe('the reference page', () => {
  it('lists every operation and every schema of the document, and no link leads nowhere', async () => {
    const { text } = await relay.ask('/reference', { token: null });
    const { json } = await relay.ask('/openapi.json', { token: null });
    const { paths, components } = JSON.parse(JSON.stringify(json));
    const operations = Object.values<Record<string, { operationId: string }>>(paths).flatMap(Object.values);
    expect(operations.length).toBeGreaterThan(45);
    for (const { operationId } of operations) expect(text).toContain(`<details id="${operationId}">`);
    for (const name of Object.keys(components.schemas)) expect(text).toContain(`id="schema-${name}"`);
    const ids = new Set([...text.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id));
    const links = [...text.matchAll(/href="#([^"]+)"/g)].map(([, id]) => id);
    expect(links.length).toBeGreaterThan(200);
    expect(links.filter((id) => !ids.has(id))).toEqual([]);
  });

  it('has no script, and its policy allows none', async () => {
    const { text, headers } = await relay.ask('/reference', { token: null });
    expect(text).not.toMatch(/<script|\son\w+=|javascript:|https?:\/\/(?!127)/i);
    expect(headers['content-security-policy']).toMatch(/^default-src 'none'; style-src 'sha256-[^']+'; /);
    expect(headers['content-type']).toBe('text/html; charset=utf-8');
  });

  it('is linked from the start page', async () => {
    expect((await relay.ask('/', { token: null })).text).toContain('href="/reference"');
  });

  it('names the document below the base path', async () => {
    await using based = await startHttpRelay({ basePath: '/relay/one' });
    expect((await based.ask('/relay/one/reference')).text).toContain('href="/relay/one/openapi.json"');
  });
});
