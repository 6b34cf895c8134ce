/** Tests what a node records over time, and how much memory that needs. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { bucketOf } from '../../src/core/metrics/buckets.ts';
import { type NodeReading, COARSE, FINE } from '../../src/core/metrics/reading.ts';
import { createMetrics, type Meter } from '../../src/platform/metrics.ts';

const START = Date.UTC(2026, 0, 1);
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Reads `points` steps that end at `to`. */
function read(meter: Meter, names: readonly string[], { to, stepMs = FINE.slotMs, points }: Window): NodeReading {
  const slotMs = stepMs % COARSE.slotMs === 0 ? COARSE.slotMs : FINE.slotMs;
  return meter.read({ names, from: to - points * stepMs, slotMs, stepMs, points }, to - 1);
}

type Window = { readonly to: number; readonly stepMs?: number; readonly points: number };

/** Runs a meter from START to `to`, and calls `work` once in each slot of 5 s. */
function run(to: number, work: (meter: Meter, at: number) => void): Meter {
  const meter = createMetrics(() => START);
  for (let at = START; at < to; at += FINE.slotMs) {
    meter.closeSlot(at);
    work(meter, at);
  }
  return meter;
}

describe('what a node records', () => {
  it('shows each event in the step in which it happened, the open slot included', () => {
    const meter = run(START + 4 * FINE.slotMs, (each, at) => {
      for (let i = 0; i <= (at - START) / FINE.slotMs; i++) each.count('commands_ended', 'completed');
    });
    const { known, rows } = read(meter, ['commands_ended'], { to: START + 4 * FINE.slotMs, points: 6 });
    expect(known).toBe('001111');
    expect(rows).toEqual([{ name: 'commands_ended', label: 'completed', counts: [2, 1, 3, 2, 4, 3, 5, 4] }]);
  });

  it('shows durations by bucket, and only the metrics that were asked for', () => {
    const meter = run(START + FINE.slotMs, (each) => {
      each.observe('command_seconds', 40, 'completed');
      each.observe('command_seconds', 40, 'completed');
      each.observe('command_seconds', 9_000, 'failed');
      each.observe('ack_seconds', 3);
    });
    const { rows } = read(meter, ['command_seconds'], { to: START + FINE.slotMs, points: 1 });
    expect(rows).toEqual([
      { name: 'command_seconds', label: 'completed', counts: [0, bucketOf(40), 2] },
      { name: 'command_seconds', label: 'failed', counts: [0, bucketOf(9_000), 1] },
    ]);
  });

  it('adds up the slots of a step that has several', () => {
    const meter = run(START + 12 * FINE.slotMs, (each) => each.count('requests', 'rest'));
    const { known, rows } = read(meter, ['requests'], { to: START + 12 * FINE.slotMs, stepMs: 30_000, points: 2 });
    expect([known, rows[0]?.counts]).toEqual(['11', [0, 6, 1, 6]]);
  });

  it('keeps the last hour in slots of 5 s and the last day in slots of a minute', () => {
    const meter = run(START + DAY + HOUR, (each) => each.count('requests', 'rest'));
    const to = START + DAY + HOUR;
    const fine = read(meter, ['requests'], { to, points: 740 });
    expect(fine.known.indexOf('1')).toBe(740 - FINE.slots - 1);
    const coarse = read(meter, ['requests'], { to, stepMs: MINUTE, points: 1500 });
    expect(coarse.known).toBe('0'.repeat(1500 - COARSE.slots - 1) + '1'.repeat(COARSE.slots + 1));
    const counts = (coarse.rows[0]?.counts ?? []).filter((_, i) => i % 2 === 1);
    expect(counts).toEqual(Array(COARSE.slots + 1).fill(12));
  });

  it('shows a gap where the process did not run', () => {
    const meter = run(START + 2 * FINE.slotMs, (each) => each.count('requests', 'rest'));
    meter.closeSlot(START + 5 * FINE.slotMs);
    meter.count('requests', 'rest');
    const { known, rows } = read(meter, ['requests'], { to: START + 6 * FINE.slotMs, points: 6 });
    expect([known, rows[0]?.counts]).toEqual(['110001', [0, 1, 1, 1, 5, 1]]);
  });

  it('drops the slots after the new time when the clock is set back, and continues', () => {
    const meter = run(START + 4 * FINE.slotMs, (each) => each.count('requests', 'rest'));
    meter.closeSlot(START + 2 * FINE.slotMs);
    meter.count('requests', 'rest');
    const { known, rows } = read(meter, ['requests'], { to: START + 3 * FINE.slotMs, points: 3 });
    // The events that were counted in the open slot before the clock was set back are not lost. They are in the slot
    // that is open now.
    expect([known, rows[0]?.counts]).toEqual(['111', [0, 1, 1, 1, 2, 2]]);
    expect(meter.snapshot().get('requests:rest')).toBe(5);
  });

  it('shows gauges as they were at the end of each slot, and now in the open one; the last slot of a longer step counts', () => {
    const meter = createMetrics(() => START);
    const now = { links: 0, oldest: 0 };
    meter.sample('client_links', () => [['web', now.links]]);
    meter.sample('oldest_wait_seconds', () => [[null, now.oldest]]);
    // The number of links at the end of each slot.
    const links = [3, 5, 0, 2, 7, 4, 1, 6, 6, 6, 6, 8, 9, 0];
    const oldest = [0, 900, 100, 0, 50, 0, 0, 0, 0, 0, 0, 20, 0, 70];
    for (const [i, value] of links.entries()) {
      meter.closeSlot(START + i * FINE.slotMs);
      Object.assign(now, { links: value, oldest: oldest[i] });
    }
    const readAt = (name: string, stepMs: number, points: number): NodeReading => {
      const slotMs = stepMs === MINUTE ? COARSE.slotMs : FINE.slotMs;
      return meter.read({ names: [name], from: START, slotMs, stepMs, points }, START + 14 * FINE.slotMs - 1);
    };
    const pointsOf = (...query: Parameters<typeof readAt>): unknown => {
      const { counts = [] } = readAt(...query).rows[0] ?? {};
      return Object.fromEntries(
        Array.from({ length: counts.length / 2 }, (_, i) => [counts[2 * i], counts[2 * i + 1]]),
      );
    };
    expect(pointsOf('client_links', FINE.slotMs, 14)).toEqual(
      Object.fromEntries([...links.entries()].filter(([, value]) => value > 0)),
    );
    expect(pointsOf('client_links', 15_000, 4)).toEqual({ 1: 4, 2: 6, 3: 8 });
    expect(pointsOf('oldest_wait_seconds', 15_000, 4)).toEqual({ 0: 900, 1: 50, 3: 20 });
    expect(readAt('client_links', MINUTE, 2).rows).toEqual([{ name: 'client_links', label: 'web', counts: [0, 8] }]);
    expect(pointsOf('oldest_wait_seconds', MINUTE, 2)).toEqual({ 0: 900, 1: 70 });
  });

  it('forgets the value of a label that a gauge no longer has', () => {
    const meter = createMetrics(() => START);
    let types: [string, number][] = [['web', 2]];
    meter.sample('client_links', () => types);
    meter.closeSlot(START);
    const first = read(meter, ['client_links'], { to: START + FINE.slotMs, points: 1 });
    expect(first.rows).toEqual([{ name: 'client_links', label: 'web', counts: [0, 2] }]);
    types = [['mobile', 1]];
    const second = read(meter, ['client_links'], { to: START + FINE.slotMs, points: 1 });
    expect(second.rows).toEqual([{ name: 'client_links', label: 'mobile', counts: [0, 1] }]);
  });

  it('never changes the totals', () => {
    const meter = run(START + HOUR, (each) => each.count('commands_admitted'));
    expect(meter.snapshot().get('commands_admitted')).toBe(HOUR / FINE.slotMs);
  });
});

describe('the memory of a busy node', () => {
  it('is about a megabyte for a day, whatever happens', () => {
    const before = heapUsed();
    const random = seeded(7);
    const meter = run(START + DAY, (each) => {
      for (const label of ['completed', 'failed', 'expired', 'cancelled', 'outcome_unknown'])
        for (let i = 0; i < 20; i++) {
          each.count('commands_ended', label);
          each.observe('command_seconds', 20 * 2 ** (random() * 14), label);
        }
      for (let i = 0; i < 40; i++) each.observe('http_seconds', 2 ** (random() * 10), `/route-${i}`);
      for (let i = 0; i < 40; i++) each.observe('dispatch_seconds', 2 ** (random() * 6));
    });
    expect(meter.recordedBytes).toBeGreaterThan(512 * 1024);
    expect(meter.recordedBytes).toBeLessThanOrEqual(1024 * 1024);
    expect(heapUsed() - before).toBeLessThan(2 * 1024 * 1024);
    // The newest slots are kept, so the bound on memory drops the oldest ones.
    expect(read(meter, ['requests'], { to: START + DAY, points: 60 }).known).toBe('1'.repeat(60));
  });

  it('is small while nothing happens', () => {
    expect(run(START + DAY, () => {}).recordedBytes).toBeLessThan(128 * 1024);
  });
});

function heapUsed(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  return process.memoryUsage().heapUsed;
}

/** Returns a generator of numbers from 0 to 1 that are the same in each run. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
}
