/** Tests requests of pages of other origins. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { postJson, startHttpRelay, type HttpRelay } from './kit/http-relay.ts';

const APP = 'https://app.example';
let relay: HttpRelay;
beforeAll(async () => void (relay = await startHttpRelay({ allowedOrigins: [APP] })));
afterAll(() => relay[Symbol.asyncDispose]());

const QUERY = (headers: Record<string, string>) => postJson({ query: '{ __typename }' }, { headers });

describe('pages of other origins', () => {
  it.each([
    'https://evil.example',
    'https://app.example.evil.example',
    'https://app.example:8443',
    'http://app.example',
    'https://APP.example',
    'null',
    '',
  ])('of origin %j are refused by every handler, and learn nothing', async (origin) => {
    for (const requested of [
      await relay.ask('/users', { headers: { origin } }),
      await relay.ask('/graphql', QUERY({ origin })),
      await relay.ask('/metrics', { headers: { origin } }),
    ]) {
      expect(requested.status).toBe(403);
      expect(requested.text).toContain('forbidden');
      expect(requested.headers['access-control-allow-origin']).toBeUndefined();
    }
  });

  it.each(['/users', '/metrics', '/graphql?query={__typename}'])(
    'without an origin but from another site are refused on %s',
    async (path) => {
      const answer = await relay.ask(path, { headers: { 'sec-fetch-site': 'cross-site' } });
      expect([answer.status, answer.text]).toEqual([403, expect.stringContaining('forbidden')]);
    },
  );

  it('may send requests when their origin is allowed, and may read the answers', async () => {
    for (const requested of [
      await relay.ask('/users', { headers: { origin: APP, 'sec-fetch-site': 'cross-site' } }),
      await relay.ask('/graphql', QUERY({ origin: APP, 'sec-fetch-site': 'cross-site' })),
    ]) {
      expect(requested.status).toBe(200);
      expect(requested.headers['access-control-allow-origin']).toBe(APP);
      expect(requested.headers['access-control-allow-credentials']).toBeUndefined();
      expect(requested.headers['vary']).toContain('origin');
    }
  });

  it('are refused with the setting that would allow them', async () => {
    const refused = async (headers: Record<string, string>) =>
      (await relay.ask('/users', { headers })).json?.['detail'];
    expect(await refused({ origin: 'https://evil.example' })).toBe(
      'Pages of the origin "https://evil.example" are not allowed. ALLOWED_ORIGINS lists the origins besides the relay’s own.',
    );
    const forwarded = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'relay.example' };
    expect(await refused({ origin: 'https://relay.example', ...forwarded })).toBe(
      'Pages of the origin "https://relay.example" are not allowed. A proxy forwarded the request: set TRUST_PROXY if the relay is reachable through it only.',
    );
    expect(await refused({ origin: 'https://evil.example', ...forwarded })).toContain('ALLOWED_ORIGINS');
  });

  it('are also told so in the answer of a refusal', async () => {
    const answer = await relay.ask('/users', { token: null, headers: { origin: APP } });
    expect([answer.status, answer.headers['access-control-allow-origin']]).toEqual([401, APP]);
  });
});

describe('a preflight', () => {
  const preflight = (origin: string) => ({
    method: 'OPTIONS',
    token: null,
    headers: { origin, 'access-control-request-method': 'POST', 'access-control-request-headers': 'authorization' },
  });

  it('of an allowed origin is answered without a token', async () => {
    const answer = await relay.ask('/graphql', preflight(APP));
    expect(answer.status).toBe(204);
    expect(answer.headers['access-control-allow-origin']).toBe(APP);
    expect(answer.headers['access-control-allow-headers']).toContain('authorization');
    expect(answer.headers['access-control-allow-methods']).toContain('POST');
  });

  it.each([
    ...['authorization', 'content-type', 'last-event-id', 'traceparent', 'tracestate'],
    ...['apollographql-client-name', 'apollographql-client-version'],
    ...['apollo-require-preflight', 'x-apollo-operation-name'],
  ])('allows the header %s', async (name) => {
    const { headers } = await relay.ask('/users', preflight(APP));
    expect(String(headers['access-control-allow-headers']).split(', ')).toContain(name);
  });

  it('does not allow cookies, or headers that the relay does not read', async () => {
    const { headers } = await relay.ask('/users', preflight(APP));
    expect(headers['access-control-allow-credentials']).toBeUndefined();
    expect(headers['access-control-allow-headers']).not.toMatch(/\*(?:,|$)|cookie|x-forwarded/);
  });

  it('of another is refused', async () => {
    const answer = await relay.ask('/graphql', preflight('https://evil.example'));
    expect(answer.status).toBe(403);
    expect(answer.headers['access-control-allow-origin']).toBeUndefined();
  });
});

describe('the relay’s own pages', () => {
  it('may send requests', async () => {
    const origin = new URL(relay.url).origin;
    expect((await relay.ask('/users', { headers: { origin, 'sec-fetch-site': 'same-origin' } })).status).toBe(200);
  });

  it('are those that a trusted proxy names; otherwise no forwarded header counts', async () => {
    const headers = {
      origin: 'https://relay.example',
      'x-forwarded-proto': 'https',
      'x-forwarded-host': 'relay.example',
    };
    expect((await relay.ask('/users', { headers })).status).toBe(403);
    await using behind = await startHttpRelay({ trustProxy: true });
    expect((await behind.ask('/users', { headers })).status).toBe(200);
  });

  it('are the only ones allowed when nothing is configured', async () => {
    await using plain = await startHttpRelay();
    expect((await plain.ask('/users', { headers: { origin: APP } })).status).toBe(403);
  });
});
