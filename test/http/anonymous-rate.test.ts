/** Tests the rate of GraphQL requests without a token. */
import { describe, expect, it } from 'vitest';
import { ANONYMOUS_BODY_BYTES, ANONYMOUS_BURST, ANONYMOUS_RATE } from '../../src/core/limits.ts';
import { AnonymousGate } from '../../src/http/anonymous-gate.ts';
import { FakeClock } from '../kit/clock.ts';
import { postJson, startHttpRelay } from './kit/http-relay.ts';

const times = (n: number, act: () => void): void => Array.from({ length: n }).forEach(act);

describe('the rate of GraphQL without a token', () => {
  it('allows an address a burst, and then its rate', async () => {
    const clock = new FakeClock();
    const gate = new AnonymousGate(clock, ANONYMOUS_BODY_BYTES);
    const take = (address: string): void => gate.admit({ headers: {} }, address);
    times(ANONYMOUS_BURST, () => take('a'));
    const wait = 1000 / ANONYMOUS_RATE;
    expect(() => take('a')).toThrow(expect.objectContaining({ code: 'rate_limited', details: { retryAfterMs: wait } }));
    take('b');
    await clock.advance(wait);
    take('a');
    expect(() => take('a')).toThrow();
    await clock.advance(60_000);
    times(ANONYMOUS_BURST, () => take('a'));
    expect(() => take('a')).toThrow();
  });

  it.each([-3_600_000, 3_600_000])('is the same after the wall clock was set by %i ms', async (step) => {
    const clock = new FakeClock();
    const gate = new AnonymousGate(clock, ANONYMOUS_BODY_BYTES);
    const take = (address: string): void => gate.admit({ headers: {} }, address);
    const wait = 1000 / ANONYMOUS_RATE;
    const refused = expect.objectContaining({ details: { retryAfterMs: wait } });
    times(ANONYMOUS_BURST, () => take('a'));
    clock.stepWall(step);
    expect(() => take('a')).toThrow(refused);
    await clock.advance(wait);
    take('a');
    expect(() => take('a')).toThrow(refused);
  });

  it('answers 429 with the retry time, and does not affect requests with a token', async () => {
    await using at = await startHttpRelay();
    const ask = (token: string | null) => at.ask('/graphql', postJson({ query: '{ __typename }' }, { token }));
    expect((await ask(null)).status).toBe(200);
    let refused = await ask(null);
    // The requests come faster than the rate limit allows, until one is refused.
    for (let i = 0; refused.status === 200 && i < 100; i++) {
      const answers = await Promise.all(Array.from({ length: 50 }, () => ask(null)));
      refused = answers.find(({ status }) => status !== 200) ?? refused;
    }
    expect([refused.status, refused.headers['retry-after']]).toEqual([429, '1']);
    expect(refused.text).toContain('rate_limited');
    expect((await at.ask('/graphql', postJson({ query: '{ __typename }' }))).status).toBe(200);
  });

  it('does not count bodies that are larger than open documents: they are not read', async () => {
    await using at = await startHttpRelay();
    const query = ' '.repeat(ANONYMOUS_BODY_BYTES);
    expect((await at.ask('/graphql', postJson({ query }, { token: null }))).status).toBe(401);
    expect((await at.ask('/graphql', postJson({ query }))).status).not.toBe(401);
  });
});
