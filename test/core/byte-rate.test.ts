/** Tests the limit of bytes per second that one user may send. */
import { describe, expect, it } from 'vitest';
import { ByteRates } from '../../src/core/shares/turns.ts';
import { TokenBucket } from '../../src/core/rates.ts';
import { FakeClock } from '../kit/clock.ts';

const MIB = 1024 * 1024;

const byteRate = (clock: FakeClock, perSecond: number) => new TokenBucket(clock, { perSecond, burst: perSecond });

describe('a rate in bytes', () => {
  it('lets one second of bytes pass at once, and then delays', async () => {
    const clock = new FakeClock();
    const rate = byteRate(clock, 1000);
    expect([rate.charge(600), rate.charge(400)]).toEqual([0, 0]);
    expect(rate.charge(500)).toBe(500);
    await clock.advance(499);
    expect(rate.charge(0)).toBe(1);
    await clock.advance(1);
    expect(rate.charge(0)).toBe(0);
    expect(rate.charge(1)).toBe(1);
  });

  it('charges everything that arrived, and nothing that was refused', async () => {
    const clock = new FakeClock();
    const rate = byteRate(clock, 1000);
    expect(rate.admit(5000)).toBe(0);
    expect(rate.admit(1)).toBe(4000);
    expect(rate.admit(1)).toBe(4000);
    await clock.advance(4000);
    expect(rate.admit(1)).toBe(0);
  });

  it('passes no more than its rate and two seconds’ worth, however the bytes arrive', async () => {
    const clock = new FakeClock();
    const rate = byteRate(clock, 1000);
    await clock.advance(60_000);
    let passed = 0;
    for (let ms = 0; ms < 10_000; ms += 10) {
      while (rate.admit(7) === 0) passed += 7;
      await clock.advance(10);
    }
    expect(passed).toBeGreaterThanOrEqual(10_000);
    expect(passed).toBeLessThanOrEqual(12_000 + 1000 * 7);
  });

  it('reads the clock only once its balance is used up', () => {
    let reads = 0;
    const clock = new (class extends FakeClock {
      override monotonic(): number {
        reads++;
        return super.monotonic();
      }
    })();
    const rate = byteRate(clock, 32 * MIB);
    reads = 0;
    for (let i = 0; i < 32 * 1024; i++) rate.charge(1024);
    expect(reads).toBe(0);
    rate.charge(1);
    expect(reads).toBe(1);
  });

  it('does not change when a clock is set back', async () => {
    const clock = new FakeClock();
    const rate = byteRate(clock, 1000);
    rate.charge(1500);
    clock.stepWall(-5_000);
    expect(rate.charge(0)).toBe(500);
    await clock.advance(500);
    expect(rate.charge(0)).toBe(0);
  });
});

describe('the rates of users', () => {
  it('are separate for each user', () => {
    const rates = new ByteRates(new FakeClock(), 1000);
    const held = rates.hold('alice');
    expect(rates.of('alice')).toBe(held.rate);
    expect(rates.hold('alice').rate).toBe(held.rate);
    rates.of('alice').charge(3000);
    expect(rates.of('bob').admit(1)).toBe(0);
    expect(rates.of('alice').admit(1)).toBe(2000);
  });

  it('are forgotten when idle, and never while a link holds one or it is in debt', async () => {
    const clock = new FakeClock();
    const rates = new ByteRates(clock, 1000);
    const held = rates.hold('linked');
    rates.of('indebted').charge(1_000_000);
    const debt = rates.of('indebted');
    for (let i = 0; i < 998; i++) rates.of(`user-${i}`).charge(10);
    expect(rates.size).toBe(1000);
    await clock.advance(1000);
    rates.of('one more');
    expect(rates.size).toBe(3);
    expect(rates.of('linked')).toBe(held.rate);
    expect(rates.of('indebted')).toBe(debt);
    held.release();
    for (let i = 0; i < 1000; i++) rates.of(`other-${i}`);
    expect(rates.of('linked')).not.toBe(held.rate);
  });

  it('are bounded by the number of active users, not of all users ever seen', async () => {
    const clock = new FakeClock();
    const rates = new ByteRates(clock, 1000);
    for (let i = 0; i < 50_000; i++) {
      rates.of(`user-${i}`).charge(1);
      if (i % 100 === 0) await clock.leap(100);
    }
    expect(rates.size).toBeLessThanOrEqual(2_200);
  });
});
