import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { postJson, startHttpRelay, type HttpRelay } from './kit/http-relay.ts';

const APP = 'https://app.example';
let house: HttpRelay;
beforeAll(async () => void (house = await startHttpRelay({ allowedOrigins: [APP] })));
afterAll(() => house[Symbol.asyncDispose]());

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
    for (const asked of [
      await house.ask('/users', { headers: { origin } }),
      await house.ask('/graphql', QUERY({ origin })),
      await house.ask('/metrics', { headers: { origin } }),
    ]) {
      expect(asked.status).toBe(403);
      expect(asked.text).toContain('forbidden');
      expect(asked.headers['access-control-allow-origin']).toBeUndefined();
    }
  });

  it.each(['/users', '/metrics', '/graphql?query={__typename}'])(
    'without an origin but from another site are refused on %s',
    async (path) => {
      const answer = await house.ask(path, { headers: { 'sec-fetch-site': 'cross-site' } });
      expect([answer.status, answer.text]).toEqual([403, expect.stringContaining('forbidden')]);
    },
  );

  it('may send requests when their origin is allowed, and may read the answers', async () => {
    for (const asked of [
      await house.ask('/users', { headers: { origin: APP, 'sec-fetch-site': 'cross-site' } }),
      await house.ask('/graphql', QUERY({ origin: APP, 'sec-fetch-site': 'cross-site' })),
    ]) {
      expect(asked.status).toBe(200);
      expect(asked.headers['access-control-allow-origin']).toBe(APP);
      expect(asked.headers['access-control-allow-credentials']).toBeUndefined();
      expect(asked.headers['vary']).toContain('origin');
    }
  });

  it('are also told so in the answer of a refusal', async () => {
    const answer = await house.ask('/users', { token: null, headers: { origin: APP } });
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
    const answer = await house.ask('/graphql', preflight(APP));
    expect(answer.status).toBe(204);
    expect(answer.headers['access-control-allow-origin']).toBe(APP);
    expect(answer.headers['access-control-allow-headers']).toContain('authorization');
    expect(answer.headers['access-control-allow-methods']).toContain('POST');
  });

  it('of another is refused', async () => {
    const answer = await house.ask('/graphql', preflight('https://evil.example'));
    expect(answer.status).toBe(403);
    expect(answer.headers['access-control-allow-origin']).toBeUndefined();
  });
});

describe('the relay’s own pages', () => {
  it('may send requests', async () => {
    const origin = new URL(house.url).origin;
    expect((await house.ask('/users', { headers: { origin, 'sec-fetch-site': 'same-origin' } })).status).toBe(200);
  });

  it('are those that a trusted proxy names; otherwise no forwarded header counts', async () => {
    const headers = {
      origin: 'https://relay.example',
      'x-forwarded-proto': 'https',
      'x-forwarded-host': 'relay.example',
    };
    expect((await house.ask('/users', { headers })).status).toBe(403);
    await using behind = await startHttpRelay({ trustProxy: true });
    expect((await behind.ask('/users', { headers })).status).toBe(200);
  });

  it('are the only ones allowed when nothing is configured', async () => {
    await using plain = await startHttpRelay();
    expect((await plain.ask('/users', { headers: { origin: APP } })).status).toBe(403);
  });
});
