/** Tests what the relay takes from the headers of trusted proxies: its own origin, and the address of its peer. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { addressOf } from '../../src/web/forwarded.ts';
import { raw, startHttpRelay, type HttpRelay } from './kit/http-relay.ts';

const ORIGIN = 'https://relay.example';

/** The headers of a request from the page of `ORIGIN`, as each proxy sends them. */
const FORMS: readonly (readonly [string, string])[] = [
  ['nginx', 'Host: relay.example\nX-Forwarded-Proto: https\nX-Forwarded-Host: relay.example'],
  ['nginx, Host of the backend', 'Host: 10.0.0.7:4400\nX-Forwarded-Proto: https\nX-Forwarded-Host: relay.example'],
  [
    'nginx, port of the server',
    'Host: relay.example\nX-Forwarded-Proto: https\nX-Forwarded-Host: relay.example\nX-Forwarded-Port: 443',
  ],
  ['nginx, $host:$server_port', 'Host: relay.example:443\nX-Forwarded-Proto: https'],
  [
    'Traefik, a request',
    'Host: relay.example\nX-Forwarded-Host: relay.example\nX-Forwarded-Port: 443\nX-Forwarded-Proto: https\nX-Forwarded-Server: edge',
  ],
  [
    'Traefik, a WebSocket',
    'Host: relay.example\nX-Forwarded-Host: relay.example\nX-Forwarded-Port: 443\nX-Forwarded-Proto: wss\nX-Forwarded-Server: edge',
  ],
  [
    'Traefik, a port in the host',
    'Host: relay.example:443\nX-Forwarded-Host: relay.example:443\nX-Forwarded-Port: 443\nX-Forwarded-Proto: wss',
  ],
  ['Envoy', 'host: relay.example\nx-forwarded-proto: https\nx-forwarded-for: 203.0.113.9\nx-envoy-external-address: x'],
  ['Envoy, the authority with its port', 'host: relay.example:443\nx-forwarded-proto: https'],
  ['Application Load Balancer', 'Host: relay.example\nX-Forwarded-Proto: https\nX-Forwarded-Port: 443'],
  ['Application Load Balancer, no scheme', 'Host: relay.example\nX-Forwarded-Port: 443'],
  [
    'Azure Application Gateway',
    'Host: relay.example\nX-FORWARDED-PROTO: https\nX-FORWARDED-PORT: 443\nX-Original-Host: relay.example',
  ],
  [
    'Azure Front Door',
    'Host: backend.internal\nX-Forwarded-Host: relay.example\nX-Forwarded-Proto: https\nX-Azure-FDID: x',
  ],
  ['Cloudflare', 'Host: relay.example\nX-Forwarded-Proto: https\nCF-Visitor: {"scheme":"https"}'],
  ['HAProxy, X-Forwarded', 'host: relay.example\nx-forwarded-proto: https\nx-forwarded-host: relay.example:443'],
  ['HAProxy, Forwarded', 'host: relay.example\nforwarded: proto=https;host=relay.example;for=203.0.113.9'],
  ['Forwarded in quotes', 'Host: backend\nForwarded: for="[2001:db8::9]:4711";host="relay.example:443";proto=HTTPS'],
  ['upper case', 'Host: Relay.Example\nX-Forwarded-Proto: HTTPS\nX-Forwarded-Host: RELAY.example'],
  ['the port of the relay behind TLS', 'Host: relay.example\nX-Forwarded-Proto: https\nX-Forwarded-Port: 4400'],
  ['two proxies, each with its scheme', 'Host: relay.example\nX-Forwarded-Proto: https, http'],
];

let relay: HttpRelay;
beforeAll(async () => void (relay = await startHttpRelay({ trustProxy: true })));
afterAll(() => relay[Symbol.asyncDispose]());

/** Returns the status of a request with exactly these header lines. */
async function statusOf(at: HttpRelay, lines: string, origin = ORIGIN): Promise<number> {
  const head = `OPTIONS /users HTTP/1.1\n${lines}\nOrigin: ${origin}\nAccess-Control-Request-Method: GET\nConnection: close`;
  return Number((await raw(at.url, `${head.replaceAll('\n', '\r\n')}\r\n\r\n`)).split(' ')[1]);
}

describe('the relay’s own page behind', () => {
  it.each(FORMS)('%s is no other', async (_name, lines) => {
    expect(await statusOf(relay, lines)).toBe(204);
    expect(await statusOf(relay, lines, 'https://evil.example')).toBe(403);
    expect(await statusOf(relay, lines, 'http://relay.example')).toBe(403);
    expect(await statusOf(relay, lines, 'null')).toBe(403);
  });

  it('a proxy on a port of its own is the one of that port', async () => {
    const named = 'Host: relay.example\nX-Forwarded-Proto: https\nX-Forwarded-Port: 8443';
    const inHost = 'Host: relay.example:8443\nX-Forwarded-Proto: https\nX-Forwarded-Port: 443';
    for (const lines of [named, inHost]) {
      expect(await statusOf(relay, lines, 'https://relay.example:8443')).toBe(204);
      expect(await statusOf(relay, lines, 'https://relay.example:9443')).toBe(403);
    }
  });

  it('proxies that are counted is the one that the outermost of them names', async () => {
    await using two = await startHttpRelay({ trustProxy: 2 });
    const hosts = (...names: string[]) => `Host: x\nX-Forwarded-Proto: https\nX-Forwarded-Host: ${names.join(', ')}`;
    expect(await statusOf(two, hosts('relay.example', 'inner.example'))).toBe(204);
    expect(await statusOf(two, hosts('relay.example'))).toBe(204);
    expect(await statusOf(two, hosts('relay.example', 'outer.example', 'inner.example'))).toBe(403);
    const elements = 'Host: x\nForwarded: host=forged.example, proto=https;host=relay.example, for=10.0.0.1;proto=http';
    expect(await statusOf(two, elements)).toBe(204);
    expect(await statusOf(two, elements, 'https://forged.example')).toBe(403);
  });

  it('no proxy is compared as parsed, and no header changes it', async () => {
    await using direct = await startHttpRelay();
    expect(await statusOf(direct, 'Host: RELAY.example:80', 'http://relay.example')).toBe(204);
    for (const [, lines] of FORMS) expect(await statusOf(direct, lines)).toBe(403);
  });

  it('a host that is none is nobody’s', async () => {
    for (const host of ['relay.example/', 'x@relay.example', 'relay.example?', 'relay.example\\'])
      expect(await statusOf(relay, `Host: x\nX-Forwarded-Proto: https\nX-Forwarded-Host: ${host}`)).toBe(403);
  });
});

describe('the address of a peer', () => {
  const addressIn = (headers: Record<string, string>, trust: boolean | number): string => {
    const request = { headers, socket: { remoteAddress: '10.0.0.1' } };
    return addressOf(request as unknown as Parameters<typeof addressOf>[0], trust);
  };
  const forwarded = (text: string) => ({ 'x-forwarded-for': text });

  it.each([
    ['203.0.113.9', true, '203.0.113.9'],
    ['203.0.113.9:51234', true, '203.0.113.9'],
    ['[2001:db8::9]:51234', true, '2001:db8::9'],
    ['[2001:db8::9]', true, '2001:db8::9'],
    ['2001:db8::9', true, '2001:db8::9'],
    ['198.51.100.1, 203.0.113.9:1', true, '203.0.113.9'],
    ['198.51.100.1, 203.0.113.9', 2, '198.51.100.1'],
    ['192.0.2.1, 198.51.100.1, 203.0.113.9', 2, '198.51.100.1'],
    ['203.0.113.9', 2, '203.0.113.9'],
    ['unknown', true, '10.0.0.1'],
    ['203.0.113.9x', true, '10.0.0.1'],
    ['', true, '10.0.0.1'],
    ['203.0.113.9', false, '10.0.0.1'],
    ['203.0.113.9', 0, '10.0.0.1'],
  ] as const)('in X-Forwarded-For %j with trust %j is %s', (text, trust, expected) => {
    expect(addressIn(forwarded(text), trust)).toBe(expected);
  });

  it.each([
    ['for=203.0.113.9', '203.0.113.9'],
    ['for="203.0.113.9:4711";proto=https', '203.0.113.9'],
    ['for=192.0.2.1, proto=http;For="[2001:db8::9]:4711"', '2001:db8::9'],
    ['for=192.0.2.1, for=_hidden', '10.0.0.1'],
    ['host="a,for=192.0.2.1";for=203.0.113.9', '203.0.113.9'],
    ['for="203.0.113.9', '10.0.0.1'],
  ])('in Forwarded: %s is %s', (text, expected) => {
    expect(addressIn({ forwarded: text }, true)).toBe(expected);
    expect(addressIn({ forwarded: text, 'x-forwarded-for': '198.51.100.1' }, true)).toBe('198.51.100.1');
  });

  it('is bounded in failed tokens whatever port a proxy writes', async () => {
    await using at = await startHttpRelay({ trustProxy: true });
    const failed = async (port: number) =>
      (await at.ask('/users', { token: 'wrong', headers: { 'x-forwarded-for': `203.0.113.9:${port}` } })).status;
    const statuses: number[] = [];
    for (let port = 1; port <= 21; port++) statuses.push(await failed(port));
    expect(statuses.slice(0, 20).every((status) => status === 401)).toBe(true);
    expect(statuses.at(-1)).toBe(429);
  });
});

describe('a refusal is logged', () => {
  const linesOf = (at: HttpRelay) =>
    at.lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'a request was refused');

  it('as a warning with its origin, its address and the reason, each reason at a bounded rate', async () => {
    await using at = await startHttpRelay();
    const foreign = { headers: { origin: 'https://evil.example' } };
    for (let n = 0; n < 30; n++) await at.ask('/users', foreign);
    const forwardedHere = { origin: ORIGIN, 'x-forwarded-proto': 'https', 'x-forwarded-host': 'relay.example' };
    await at.ask('/users', { headers: forwardedHere });
    await at.ask('/users', { headers: { 'sec-fetch-site': 'cross-site' } });
    const open = async (protocol: string, origin: string) => {
      const socket = new WebSocket(`${at.url.replace('http', 'ws')}/connect`, protocol, { origin });
      await new Promise((done) => socket.on('error', () => {}).on('close', done));
    };
    await open('callboard.v1', 'chrome-extension://abcdefgh');
    await open('other', new URL(at.url).origin);
    const lines = linesOf(at);
    expect(lines.length).toBeLessThan(15);
    expect(lines.every(({ level, address }) => level === 'warn' && /127\.0\.0\.1/.test(address))).toBe(true);
    const reasons = lines.map(({ reason, origin }) => [reason, origin]);
    expect(reasons).toContainEqual(['foreign_origin', 'https://evil.example']);
    expect(reasons).toContainEqual(['proxy_not_trusted', ORIGIN]);
    expect(reasons).toContainEqual(['cross_site', null]);
    expect(reasons).toContainEqual(['subprotocol', new URL(at.url).origin]);
  });

  it('with the advice to count the proxies', async () => {
    await using one = await startHttpRelay({ trustProxy: 1 });
    const headers = { origin: ORIGIN, 'x-forwarded-proto': 'https, http', 'x-forwarded-host': 'relay.example' };
    const { json } = await one.ask('/users', { headers });
    expect(json?.['detail']).toContain('More proxies forwarded the request than TRUST_PROXY counts');
    expect(linesOf(one)).toMatchObject([{ reason: 'proxies_not_counted', origin: ORIGIN }]);
  });
});
