/** Tests the memory backend's record of ingested message ids: limits for each user, eviction and memory use. */
import { describe, expect, it } from 'vitest';
import * as fc from 'fast-check';
import { createMemoryDedup, DedupMarks } from '../../src/backends/memory/dedup.ts';
import { DEDUP_TTL_MS } from '../../src/core/limits.ts';
import { silentLog, type Log } from '../../src/core/ports.ts';
import { silentMetrics, type CounterName, type Metrics } from '../../src/core/metrics.ts';
import { createShares } from '../../src/core/shares/shares.ts';
import { FakeClock } from '../kit/clock.ts';

const SHARE = 'dedup_marks';
const key = (userId: string, messageId: string, clientId = 'tab') => ({ userId, clientId, messageId });

function stand(guarantee: number, total: number) {
  const shares = createShares({ dedup_marks: { guarantee, total } });
  const warned: unknown[] = [];
  const counted: CounterName[] = [];
  const log: Log = { ...silentLog, warn: (fields) => void warned.push(fields) };
  const metrics: Metrics = { ...silentMetrics, count: (name) => void counted.push(name) };
  const marks = new DedupMarks({ shares, log, metrics });
  return { marks, shares, warned, counted, log, metrics };
}

describe('deduplication marks', () => {
  it('of one user do not push out those of others, however many they are', () => {
    const { marks, shares } = stand(100, 1_000);
    for (let i = 0; i < 100; i++) expect(marks.set(key('alice', `a${i}`), 0)).toBe(true);
    for (let i = 0; i < 20_000; i++) marks.set(key('mallory', `m${i}`), 1);
    expect(marks.size).toBe(1_000);
    expect(shares.of('mallory').held(SHARE)).toBe(900);
    for (let i = 0; i < 100; i++) expect(marks.set(key('alice', `a${i}`), 2)).toBe(false);
    expect(marks.set(key('mallory', 'm19999'), 2)).toBe(false);
    expect(marks.set(key('mallory', 'm19099'), 2)).toBe(true);
  });

  it('hold nothing when all of them have expired or were evicted', () => {
    const { marks, shares } = stand(10, 100);
    for (let i = 0; i < 10; i++) marks.set(key('alice', `a${i}`), 0);
    const read = (): number => {
      marks.rewind();
      return [...marks.all()].length;
    };
    for (let i = 0; i < 5_000; i++) marks.set(key('mallory', `m${i}`, `client-${i % 7}`), 0);
    expect([marks.size, read(), shares.used(SHARE)]).toEqual([100, 100, 100]);
    marks.expire(DEDUP_TTL_MS);
    expect([marks.size, read(), shares.used(SHARE)]).toEqual([0, 0, 0]);
  });

  it('are evicted oldest first if no user is over their guarantee', () => {
    const { marks } = stand(10, 10);
    for (let i = 0; i < 10; i++) marks.set(key(`user-${i}`, 'm'), 0);
    marks.set(key('late', 'm'), 0);
    expect(marks.set(key('user-1', 'm'), 0)).toBe(false);
    expect(marks.set(key('late', 'm'), 0)).toBe(false);
    expect(marks.set(key('user-0', 'm'), 0)).toBe(true);
  });

  it('that are evicted early are counted and logged once per lifetime of a mark, and the counters are then not exact', async () => {
    const { shares, warned, counted, log, metrics } = stand(2, 4);
    const clock = new FakeClock();
    const dedup = createMemoryDedup({ clock, shares, log, metrics });
    const see = (userId: string, count: number): void => {
      for (let i = 0; i < count; i++) dedup.see(key(userId, `${clock.now()}-${i}`));
    };
    see('alice', 1);
    see('mallory', 3);
    expect(dedup.stats(10)).toMatchObject({ exact: true, liveKeys: 4 });
    see('bob', 1);
    dedup.see(key('mallory', 'one more'));
    expect(dedup.stats(10)).toMatchObject({ exact: false, liveKeys: 4 });
    expect(counted).toEqual(['dedup_marks_evicted', 'dedup_marks_evicted']);
    expect(warned).toEqual([{ userId: 'mallory' }]);
    await clock.advance(2 * DEDUP_TTL_MS);
    expect(dedup.stats(10)).toMatchObject({ exact: true, liveKeys: 0 });
    see('mallory', 5);
    expect(warned).toHaveLength(2);
  });

  it('behave like a plain list, for any sequence of marks, times and users', () => {
    const acts = fc.array(
      fc.record({
        userId: fc.constantFrom('a', 'b', 'c'),
        clientId: fc.constantFrom('x', 'y'),
        id: fc.integer({ min: 0, max: 9 }),
        ms: fc.constantFrom(0, 0, 0, 1, DEDUP_TTL_MS / 2, DEDUP_TTL_MS),
      }),
      { maxLength: 120 },
    );
    fc.assert(
      fc.property(acts, (list) => {
        const { marks, shares } = stand(2, 6);
        const held = createShares(shares.bounds);
        let model: { readonly userId: string; readonly text: string; readonly at: number }[] = [];
        let now = 0;
        for (const { userId, clientId, id, ms } of list) {
          now += ms;
          for (const mark of model.filter(({ at }) => at + DEDUP_TTL_MS <= now)) held.of(mark.userId).release(SHARE, 1);
          model = model.filter(({ at }) => at + DEDUP_TTL_MS > now);
          const text = `${userId} ${clientId} ${id}`;
          const first = !model.some((mark) => mark.text === text);
          expect(marks.set(key(userId, `m${id}`, clientId), now)).toBe(first);
          if (first) {
            model.push({ userId, text, at: now });
            held.of(userId).take(SHARE, 1);
          }
          if (model.length > 6) {
            const most = held.mostOver(SHARE);
            const [victim] = model.splice(most ? model.findIndex((mark) => mark.userId === most.userId) : 0, 1);
            if (victim) held.of(victim.userId).release(SHARE, 1);
          }
          expect([marks.size, shares.used(SHARE)]).toEqual([model.length, model.length]);
        }
      }),
      { numRuns: 300 },
    );
  });
});
