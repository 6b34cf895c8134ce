import { describe, expect, test } from 'vitest';
import { ByteRates } from '../../src/core/shares/byte-rate.ts';
import { Inbound } from '../../src/gateway/inbound.ts';
import { createMetrics } from '../../src/platform/metrics.ts';
import { FakeClock } from '../kit/clock.ts';
import { until } from '../relay/kit/test-relay.ts';
import { caller, client, startGateway, invoke } from './kit/test-gateway.ts';

const PER_SECOND = 100_000;

function reading() {
  const clock = new FakeClock();
  const rates = new ByteRates(clock, PER_SECOND);
  const calls: string[] = [];
  const open = (user: string): Inbound => {
    const socket = { pause: () => void calls.push('pause'), resume: () => void calls.push('resume') };
    return new Inbound({ held: rates.hold(user), socket, clock, metrics: createMetrics() });
  };
  return { clock, rates, calls, open };
}

describe('the reading of a link', () => {
  test('pauses once its user sent more than a second’s worth, for as long as the debt takes', async () => {
    const { clock, calls, open } = reading();
    const inbound = open('alice');
    for (let i = 0; i < 10; i++) inbound.charge(PER_SECOND / 10);
    expect([inbound.paused, calls]).toEqual([false, []]);
    inbound.charge(PER_SECOND / 2);
    inbound.charge(PER_SECOND / 2);
    expect([inbound.paused, calls]).toEqual([true, ['pause']]);
    await clock.advance(999);
    expect(inbound.paused).toBe(true);
    await clock.advance(1);
    expect([inbound.paused, calls]).toEqual([false, ['pause', 'resume']]);
  });

  test('counts what other links of the user send, and nobody else', async () => {
    const { clock, calls, open } = reading();
    const [one, other, bob] = [open('alice'), open('alice'), open('bob')];
    one.charge(2 * PER_SECOND);
    other.charge(PER_SECOND);
    bob.charge(PER_SECOND);
    expect([one.paused, other.paused, bob.paused]).toEqual([true, true, false]);
    await clock.advance(1_000);
    expect(one.paused).toBe(true);
    await clock.advance(1_000);
    expect([one.paused, other.paused, calls.length]).toEqual([false, false, 4]);
  });

  test('goes on when the link closes, so that its close is heard', () => {
    const { rates, calls, open } = reading();
    const inbound = open('alice');
    inbound.charge(3 * PER_SECOND);
    inbound.readOn();
    inbound.charge(3 * PER_SECOND);
    expect([inbound.paused, calls]).toEqual([false, ['pause', 'resume']]);
    inbound.release();
    expect(rates.of('alice').admit(1)).toBeGreaterThan(0);
  });
});

describe('a link that sends more than its user may', () => {
  const large = 'x'.repeat(80_000);
  const frame = (n: number): string =>
    `${JSON.stringify({ type: 'invoke', ref: `r${n}`, command_id: `k${n}`, user_id: 'alice', client_id: 'none', action: 'go' })}\n{"text":"${large}"}`;

  async function limited(perSecond: number) {
    const clock = new FakeClock();
    return { clock, at: await startGateway({ clock, inbound: new ByteRates(clock, perSecond) }) };
  }

  test('is slowed and loses nothing; its neighbour and an administrator are not slowed', async () => {
    const { clock, at } = await limited(PER_SECOND);
    await using _ = at;
    const peer = await caller(at, 'user:alice:invoke');
    const neighbour = await caller(at, 'user:bob:invoke');
    const answers = () => peer.all.flatMap((down) => (down.type === 'refused' ? [down.ref] : []));
    for (let n = 0; n < 20; n++) peer.raw(frame(n));
    await until(() => (at.counts.get('inbound_limited:link') ?? 0) > 0);
    neighbour.raw(frame(0));
    expect((await neighbour.next('refused')).ref).toBe('r0');
    const admin = await caller(at, 'admin');
    for (let n = 0; n < 5; n++) admin.raw(frame(n));
    for (let n = 0; n < 5; n++) await admin.next('refused');
    expect(answers().length).toBeLessThan(20);
    await until(async () => {
      await clock.advance(1_000);
      return answers().length === 20;
    });
    expect(answers()).toEqual(Array.from({ length: 20 }, (_, n) => `r${n}`));
  });

  test('is not taken for dead while it is not read', async () => {
    const { clock, at } = await limited(1_000);
    await using _ = at;
    const peer = await caller(at, 'user:alice:invoke');
    peer.raw(frame(0));
    await peer.next('refused');
    peer.raw(frame(1));
    await clock.advance(75_000);
    expect(peer.all.some(({ type }) => type === 'bye')).toBe(false);
    await clock.advance(5_000);
    expect((await peer.next('refused')).ref).toBe('r1');
  });

  test('is read on when it closes: what its client reported before it heard so still counts', async () => {
    const { at } = await limited(1_000);
    await using _ = at;
    const peer = await client(at);
    const waiting = invoke(at, 'c1');
    await peer.next('command');
    peer.raw(frame(0));
    await peer.next('refused');
    peer.send({ type: 'result', command_id: 'c1' }, 'in time');
    await at.gateway.closeAll('draining');
    expect((await peer.closed).code).toBe(4450);
    expect(await waiting).toMatchObject({ kind: 'outcome', command: { outcome: 'completed' } });
  });
});
