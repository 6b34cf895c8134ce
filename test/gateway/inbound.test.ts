/** Tests the limit of bytes that one user's links read. */
import { describe, expect, test } from 'vitest';
import { ByteRates } from '../../src/core/shares/turns.ts';
import type { Gateway } from '../../src/gateway/gateway.ts';
import { Inbound } from '../../src/gateway/link.ts';
import { createMetrics } from '../../src/platform/metrics.ts';
import { FakeClock, settle } from '../kit/clock.ts';
import { until } from '../relay/kit/test-relay.ts';
import { caller, client, startGateway, invoke, Peer } from './kit/test-gateway.ts';

const PER_SECOND = 100_000;

function reading() {
  const clock = new FakeClock();
  const rates = new ByteRates(clock, PER_SECOND);
  const calls: string[] = [];
  const open = (user: string): Inbound => {
    const socket = { pause: () => void calls.push('pause'), resume: () => void calls.push('resume') };
    return new Inbound(rates.hold(user), socket, { clock, metrics: createMetrics() });
  };
  return { clock, rates, calls, open };
}

describe('the reading of a link', () => {
  test('pauses once its user sent more than one second of bytes, for as long as the debt requires', async () => {
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

  test("counts the bytes of the user's other links, and those of no other user", async () => {
    const { clock, calls, open } = reading();
    const [one, other, bob] = [open('alice'), open('alice'), open('bob')];
    one.charge(2 * PER_SECOND);
    other.charge(PER_SECOND);
    bob.charge(PER_SECOND);
    expect([one.paused, other.paused, bob.paused]).toEqual([true, true, false]);
    await clock.advance(1_000);
    expect(one.paused).toBe(true);
    await clock.advance(1_000);
    expect([one.paused, other.paused].filter((paused) => paused)).toHaveLength(1);
    await clock.advance(2_000);
    expect([one.paused, other.paused, calls.length]).toEqual([false, false, 4]);
  });

  test('resumes the links of a user one after the other, each once its last frame would fit again', async () => {
    const { clock, open } = reading();
    const links = Array.from({ length: 10 }, () => open('alice'));
    for (let round = 0; round < 2; round++) for (const link of links) link.charge(PER_SECOND / 5);
    const paused = (): number => links.filter((link) => link.paused).length;
    expect(paused()).toBe(10);
    await clock.advance(3_000);
    expect(paused()).toBe(9);
    await clock.advance(200);
    expect(paused()).toBe(8);
    const resumed = links.find((link) => !link.paused);
    // The frame of this link was charged in advance. The user's balance is still negative, so the link waits again.
    resumed?.charge(PER_SECOND / 5);
    expect(paused()).toBe(9);
    // Waits are rounded up to milliseconds.
    await clock.advance(410);
    expect(paused()).toBe(7);
    await clock.advance(1_410);
    expect(paused()).toBe(0);
  });

  test('gives back what it charged in advance when its link ends', async () => {
    const { clock, rates, open } = reading();
    const inbound = open('alice');
    inbound.charge(PER_SECOND);
    inbound.charge(PER_SECOND);
    await clock.advance(1_000);
    expect(inbound.paused).toBe(false);
    expect(rates.of('alice').charge(0)).toBe(1_000);
    inbound.release();
    expect(rates.of('alice').charge(0)).toBe(0);
  });

  test('continues when the link closes, so that its close frame is read', () => {
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

describe("a link that exceeds its user's byte rate", () => {
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
      // The stores answer in real time. Without this wait, the clock would reach the time after which a link is silent.
      await settle();
      return answers().length === 20;
    });
    expect(answers()).toEqual(Array.from({ length: 20 }, (_, n) => `r${n}`));
  });

  test('is charged for its hello, also for one that is refused, and then waits like any other', async () => {
    const clock = new FakeClock();
    const inbound = new ByteRates(clock, PER_SECOND);
    await using at = await startGateway({ clock, inbound });
    const metadata = { text: 'x'.repeat(12_000) };
    const hello = `${JSON.stringify({ type: 'hello', token: 'user:alice:connect' })}\n${JSON.stringify({ metadata })}`;
    for (let n = 0; n < 20; n++) {
      const peer = new Peer(at);
      await peer.opened;
      peer.raw(hello);
      await peer.closed;
    }
    expect(inbound.of('alice').charge(0)).toBeGreaterThan(1_000);
    await caller(at, 'user:alice:invoke');
    expect(at.counts.get('inbound_limited:link')).toBe(1);
    await caller(at, 'admin');
    expect(at.counts.get('inbound_limited:link')).toBe(1);
  });

  test('is not closed as silent while it is not read', async () => {
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

  test('is read on when it closes: what its client reported before the close still counts', async () => {
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

describe("the rate of a link's user", () => {
  test.each<[string, (peer: Peer, gateway: Gateway) => void]>([
    ['its peer', (peer) => peer.ws.close(1000)],
    ['the relay', (_, gateway) => void gateway.closeAll('draining')],
  ])('is released once when %s closes the link', async (_, close) => {
    const rates = new ByteRates(new FakeClock(), PER_SECOND);
    const other = rates.hold('alice');
    await using at = await startGateway({ inbound: rates });
    const peer = await client(at);
    close(peer, at.gateway);
    await peer.closed;
    await until(() => at.gateway.size === 0);
    expect(other.held).toBe(true);
    other.release();
    expect(other.held).toBe(false);
  });
});
