/** Tests that schedules of faults are the same for the same seed, and that they follow their plan. */
import { describe, expect, test } from 'vitest';
import { seeded } from '../../faults/lib/random.ts';
import type { Fault } from '../../faults/outages/plan/plan.ts';
import { ownedRuns } from '../../faults/outages/plan/owned-runs.ts';
import { planOf, PLANS, releaseRuns } from '../../faults/outages/plan/plans.ts';
import { scheduleOf } from '../../faults/outages/plan/schedule.ts';

describe('a schedule', () => {
  test('is the same for the same seed, and different for others', () => {
    const of = (seed: number) => scheduleOf({ seed, plan: planOf('F8'), faults: 50, targets: 3 });
    expect(of(7)).toEqual(of(7));
    expect(of(7)).not.toEqual(of(8));
  });

  test.each(PLANS)('of $name follows its plan, one fault after the other', (plan) => {
    const schedule = scheduleOf({ seed: 1, plan, faults: 200, targets: 3 });
    expect(schedule).toHaveLength(plan.kinds.length === 0 ? 0 : 200);
    expect(new Set(schedule.map(({ kind }) => kind))).toEqual(new Set(plan.kinds));
    const targets = new Set(schedule.map(({ target }) => target));
    if (schedule.length > 0) expect([...targets].sort()).toEqual(plan.callersOnly ? [2] : [0, 1, 2]);
    let over = 0;
    for (const { atMs, holdMs } of schedule) {
      expect(atMs - over).toBeGreaterThanOrEqual(plan.gap[0]);
      expect(atMs - over).toBeLessThanOrEqual(plan.gap[1]);
      over = atMs + holdMs;
    }
  });

  test('aims a third of its kills at each role of a relay, and more than half at each work of owners', () => {
    const schedule = scheduleOf({ seed: 1, plan: planOf('F26'), faults: 200, targets: 3 });
    const counts = (of: (fault: Fault) => unknown) =>
      [...Map.groupBy(schedule, of)].map(([what, faults]) => [what, faults.length]);
    expect(counts(({ role }) => role)).toEqual([
      ['owner', 67],
      ['caller', 67],
      ['client', 66],
    ]);
    expect(counts(({ work }) => work)).toEqual([
      [null, 40],
      ['takeover', 80],
      ['handover', 40],
      ['snapshot', 40],
    ]);
    // Each role meets each work.
    expect(new Set(schedule.map(({ role, work }) => `${role} ${work}`)).size).toBe(12);
  });

  test('finds its plans by name', () => {
    expect(planOf('f1').name).toBe('F1');
    expect(() => planOf('F99')).toThrow('there is no plan F99');
  });
});

test('seeded numbers are spread from 0 to 1', () => {
  const random = seeded(3);
  const numbers = Array.from({ length: 10_000 }, random);
  expect(Math.min(...numbers)).toBeGreaterThanOrEqual(0);
  expect(Math.max(...numbers)).toBeLessThan(1);
  const mean = numbers.reduce((sum, n) => sum + n, 0) / numbers.length;
  expect(mean).toBeCloseTo(0.5, 1);
  expect(new Set(numbers).size).toBeGreaterThan(9_990);
});

test('a release runs each plan for faults that the store, the relays and the clients must survive, at its size', () => {
  const runs = releaseRuns(0);
  const counts = new Map(runs.map(({ plan }) => [plan, runs.filter((run) => run.plan === plan).length]));
  const thrice = ['F2', 'F3', 'F3a', 'F4', 'F5', 'F6', 'F7', 'F8'];
  const breaks = ['F20', 'F20r', 'F20t', 'F20s', 'F20c', 'F21', 'F22'];
  const links = ['F23', 'F24', 'F25'];
  const once = ['F1', 'F12', 'F13', 'F14', 'F15', 'F17', 'F19', 'sentinel', ...breaks, ...links];
  expect(counts).toEqual(
    new Map([...once.map((plan) => [plan, 1] as const), ...thrice.map((plan) => [plan, 3] as const)]),
  );
  expect(runs[0]).toMatchObject({ plan: 'F1', commands: 50_000, faults: 20 });
  expect(releaseRuns(100).map(({ seed }) => seed - 100)).toEqual(runs.map(({ seed }) => seed));
  expect(runs.map(({ plan }) => planOf(plan).name)).toEqual(runs.map(({ plan }) => plan));
});

test('relays that own partitions meet each row of their failures, most of them twenty times', () => {
  const runs = ownedRuns(5);
  expect(new Set(runs.map(({ plan }) => planOf(plan).name)).size).toBe(runs.length);
  const fewer = runs.filter(({ faults = 0 }) => faults < 20).map(({ plan }) => plan);
  expect(fewer).toEqual(['F8', 'F20s', 'F20c', 'F36']);
  const kinds = new Set(runs.flatMap(({ plan }) => planOf(plan).kinds));
  const owned = PLANS.filter(({ name }) => /^F(2[6-9]|3\d)$/.test(name));
  expect(owned.flatMap((plan) => plan.kinds).filter((kind) => !kinds.has(kind))).toEqual([]);
});
