/** Tests the limit of bytes that a user sends over HTTP. */
import { describe, expect, it } from 'vitest';
import { FakeClock } from '../kit/clock.ts';
import { postJson, startHttpRelay, tokenOf, type Ask } from './kit/http-relay.ts';

const PER_SECOND = 100_000;
const path = '/connections/alice/c1/actions/go';
const body = { params: { text: 'x'.repeat(60_000) } };

describe('the bytes that a user sends over HTTP', () => {
  it('are bounded per second, for REST and GraphQL together, and separately for each user', async () => {
    const clock = new FakeClock(Date.now());
    await using at = await startHttpRelay({ inboundBytesPerSecond: PER_SECOND }, { clock });
    const [alice, bob] = await Promise.all([tokenOf('alice', 'invoke'), tokenOf('bob', 'invoke')]);
    const post = (token: string, more: Partial<Ask> = {}) => at.ask(path, postJson(body, { token, ...more }));
    for (let i = 0; i < 2; i++) expect((await post(alice)).json?.['code']).toBe('not_connected');
    const refused = await post(alice);
    expect(refused.status).toBe(429);
    expect(refused.json).toMatchObject({ code: 'share_exceeded', share: 'inbound' });
    expect(refused.headers['retry-after']).toBe('1');
    expect(refused.headers.connection).toBe('close');
    const query = postJson({ query: '{ __typename }' }, { token: alice });
    const graphql = await at.ask('/graphql', query);
    expect([graphql.status, graphql.json]).toMatchObject([
      429,
      { errors: [{ extensions: { code: 'share_exceeded', share: 'inbound' } }] },
    ]);
    expect((await at.ask('/users?limit=1', { token: alice })).status).not.toBe(429);
    expect((await post(bob)).status).toBe(404);
    await clock.advance(1_000);
    expect((await post(alice)).json?.['code']).toBe('not_connected');
    expect((await at.ask('/metrics')).text).toContain('callboard_inbound_limited_total{transport="http"} 2');
  });

  it('count without an announced length, and are not charged if they are not read', async () => {
    const clock = new FakeClock(Date.now());
    await using at = await startHttpRelay({ inboundBytesPerSecond: PER_SECOND, maxBodyBytes: 90_000 }, { clock });
    const alice = await tokenOf('alice', 'invoke');
    const headers = { 'content-type': 'application/json' };
    const chunks = [JSON.stringify(body).slice(0, 30_000), JSON.stringify(body).slice(30_000)];
    const tooLarge = await at.ask(path, { method: 'POST', token: alice, headers, body: 'x'.repeat(90_001) });
    expect(tooLarge.status).toBe(413);
    for (let i = 0; i < 2; i++)
      expect((await at.ask(path, { method: 'POST', token: alice, headers, body: chunks })).status).not.toBe(429);
    expect((await at.ask(path, { method: 'POST', token: alice, headers, body: chunks })).status).toBe(429);
  });

  it('are not bounded for an administrator', async () => {
    const clock = new FakeClock(Date.now());
    await using at = await startHttpRelay({ inboundBytesPerSecond: PER_SECOND }, { clock });
    for (let i = 0; i < 5; i++) expect((await at.ask(path, postJson(body))).json?.['code']).toBe('not_connected');
  });
});
