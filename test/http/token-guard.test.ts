/** Tests that failed tokens are slowed down, and that valid ones are not locked out. */
import { describe, expect, it } from 'vitest';
import { CallboardError, type TokenFault } from '../../src/core/errors.ts';
import type { Log } from '../../src/core/ports.ts';
import { createTokenGuard, FAILURES_A_MINUTE, FAILURES_IN_ALL_A_MINUTE } from '../../src/http/token-guard.ts';
import { VerifyQueue } from '../../src/http/verify-queue.ts';
import type { BearerAuthenticator } from '../../src/http/authenticator.ts';
import { createMetrics } from '../../src/platform/metrics.ts';
import { FakeClock, turns } from '../kit/clock.ts';

const ALICE = { kind: 'user', userId: 'alice', scopes: new Set<never>(), expiresAt: null } as const;

function open() {
  const clock = new FakeClock();
  const lines: Record<string, unknown>[] = [];
  const write: Log['info'] = (fields) => void lines.push(fields);
  const log: Log = { debug: write, info: write, warn: write, error: write };
  const metrics = createMetrics();
  const guard = createTokenGuard({ clock, log, metrics });
  const bad = (fault: TokenFault | null = 'signature') =>
    Promise.reject(new CallboardError('unauthenticated', 'no', fault === null ? {} : { tokenFault: fault }));
  const show = async (address: string, fault: TokenFault | null = 'signature'): Promise<string> => {
    const error: unknown = await guard.check(address, () => bad(fault)).catch((reason: unknown) => reason);
    return error instanceof CallboardError ? error.code : 'served';
  };
  return { clock, lines, metrics, guard, show };
}

describe('failed tokens', () => {
  it('are slowed by address, for a minute', async () => {
    const { clock, show } = open();
    for (let i = 0; i < FAILURES_A_MINUTE; i++) expect(await show('a')).toBe('unauthenticated');
    expect(await show('a')).toBe('rate_limited');
    expect(await show('b')).toBe('unauthenticated');
    await clock.advance(60_000);
    expect(await show('a')).toBe('unauthenticated');
  });

  it.each([-3_600_000, 3_600_000])('are slowed for a minute when the wall clock is set by %i ms', async (step) => {
    const { clock, guard, show } = open();
    for (let i = 0; i < FAILURES_A_MINUTE; i++) await show('a');
    clock.stepWall(step);
    const error: unknown = await guard
      .check('a', () => Promise.reject(new CallboardError('unauthenticated', 'no', { tokenFault: 'signature' })))
      .catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: 'rate_limited', details: { retryAfterMs: 60_000 } });
    await clock.advance(60_000);
    expect(await show('a')).toBe('unauthenticated');
  });

  it('are slowed in total, however many addresses send them', async () => {
    const { clock, show } = open();
    for (let i = 0; i < FAILURES_IN_ALL_A_MINUTE; i++) expect(await show(`a${i}`)).toBe('unauthenticated');
    expect(await show('fresh')).toBe('rate_limited');
    await clock.advance(60_000);
    expect(await show('fresh')).toBe('unauthenticated');
  });

  it('never delay a valid one', async () => {
    const { guard, show } = open();
    for (let i = 0; i < 3 * FAILURES_A_MINUTE; i++) await show('a');
    expect(await guard.check('a', async () => 'served')).toBe('served');
  });

  it('make further tokens of their address wait their turn, and those of no other', async () => {
    const { guard, show } = open();
    for (let i = 0; i <= FAILURES_A_MINUTE; i++) await show('a');
    const running = { a: 0, b: 0 };
    const ends: (() => void)[] = [];
    const verify = (address: 'a' | 'b') =>
      guard.check(address, () => {
        running[address]++;
        return new Promise<void>((end) => void ends.push(end));
      });
    const all = [1, 2, 3, 4, 5].flatMap(() => [verify('a'), verify('b')]);
    await turns();
    expect(running).toEqual({ a: 2, b: 5 });
    while (running.a < 5) {
      for (const end of ends.splice(0)) end();
      await turns();
    }
    for (const end of ends.splice(0)) end();
    await Promise.all(all);
  });

  it('are not counted if the requester did nothing wrong', async () => {
    const { show, metrics } = open();
    for (let i = 0; i < 3 * FAILURES_A_MINUTE; i++) {
      expect(await show('a', 'key_unknown')).toBe('unauthenticated');
      expect(await show('a', 'keys_unavailable')).toBe('unauthenticated');
      expect(await show('a', null)).toBe('unauthenticated');
    }
    expect(await show('a')).toBe('unauthenticated');
    expect(Object.fromEntries(metrics.snapshot())).toEqual({
      'tokens_refused:key_unknown': 60,
      'tokens_refused:keys_unavailable': 60,
      'tokens_refused:signature': 1,
    });
  });

  it('are logged at a bounded rate, and the rest is counted', async () => {
    const { clock, lines, show } = open();
    for (let i = 0; i < 500; i++) await show(`a${i}`);
    expect(lines).toHaveLength(20);
    expect(lines[0]).toEqual({ reason: 'signature', address: 'a0' });
    await clock.advance(1000);
    await show('late');
    expect(lines).toHaveLength(21);
    expect(lines[20]).toEqual({ reason: 'signature', address: 'late', suppressed: 480 });
  });

  it('are not counted without an address, and a known token is never verified again', async () => {
    const { guard, show } = open();
    let verified = 0;
    const known = (token: string) => (token === 'known' ? ALICE : null);
    const authenticator: BearerAuthenticator = {
      recall: known,
      authenticate: async (token) => {
        verified++;
        return token === 'good'
          ? ALICE
          : Promise.reject(new CallboardError('unauthenticated', 'no', { tokenFault: 'claims' }));
      },
    };
    const guarded = guard.around(authenticator);
    expect(await guarded.authenticate(null, 'a')).toBeNull();
    expect(await guarded.authenticate('known', 'a')).toBe(ALICE);
    expect(verified).toBe(0);
    for (let i = 0; i < 2 * FAILURES_A_MINUTE; i++)
      await expect(guarded.authenticate('bad')).rejects.toMatchObject({ code: 'unauthenticated' });
    expect(await show('a')).toBe('unauthenticated');
    expect(await guarded.authenticate('good', 'a')).toBe(ALICE);
  });

  it('do not delay known tokens of their address', async () => {
    const { guard, show } = open();
    for (let i = 0; i < 3 * FAILURES_A_MINUTE; i++) await show('a');
    const guarded = guard.around({
      recall: (token) => (token === 'known' ? ALICE : null),
      authenticate: () => Promise.reject(new Error('verified')),
    });
    expect(await guarded.authenticate('known', 'a')).toBe(ALICE);
  });
});

describe('verifications of suspected addresses', () => {
  /** Returns `run`, which queues a verification that ends on request. */
  function jobs(queue: VerifyQueue) {
    const started: string[] = [];
    const ends: (() => void)[] = [];
    const run = (address: string, name = address): Promise<void> =>
      queue.run(address, () => {
        started.push(name);
        return new Promise((end) => void ends.push(end));
      });
    return { started, run, endOne: () => ends.shift()?.() };
  }

  it('run two at a time, addresses in turn, each in its order', async () => {
    const queue = new VerifyQueue();
    const { started, run, endOne } = jobs(queue);
    const all = [1, 2, 3, 4, 5].map((n) => run('flood', `flood-${n}`));
    all.push(run('honest'));
    for (let n = 0; n < 6; n++) {
      await turns();
      expect(started.length).toBe(Math.min(6, n + 2));
      endOne();
    }
    await Promise.all(all);
    expect(started).toEqual(['flood-1', 'flood-2', 'flood-3', 'honest', 'flood-4', 'flood-5']);
    expect(queue.size).toBe(0);
  });

  it('continue after one that failed', async () => {
    const queue = new VerifyQueue();
    const failing = () => queue.run('a', () => Promise.reject(new Error('no')));
    await Promise.allSettled([failing(), failing(), failing(), failing()]);
    expect(await queue.run('a', async () => 'ran')).toBe('ran');
  });

  it('wait in bounded numbers for each address, and another address is still accepted', async () => {
    const queue = new VerifyQueue();
    const { run, endOne } = jobs(queue);
    const flood = Array.from({ length: 1_500 }, () => run('flood').catch((error: unknown) => error));
    await turns();
    expect(queue.size).toBe(1_000);
    const honest = run('honest');
    expect(queue.size).toBe(1_001);
    for (let n = 0; n < 1_010; n++) {
      endOne();
      await Promise.resolve().then(() => turns());
    }
    await honest;
    const refused = (await Promise.all(flood)).filter((end) => end instanceof CallboardError);
    expect(refused).toHaveLength(498);
  });
});
