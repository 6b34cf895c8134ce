/**
 * Runs pauses and revocations in a short form, over three relays that own partitions, as processes: relays are killed
 * around the answers and stopped meanwhile.
 */
import { rmSync } from 'node:fs';
import { expect, test } from 'vitest';
import { runEpisode } from '../../faults/outages/episode.ts';
import type { Plan } from '../../faults/outages/plan/plan.ts';
import { scheduleOf } from '../../faults/outages/plan/schedule.ts';
import { planOf } from '../../faults/outages/plan/plans.ts';

/** A seed that draws each kind of fault once. */
const SEED = 2;
const COMMANDS = 1_500;
const PLAN: Plan = {
  ...planOf('F37'),
  kinds: ['relay-kill-pausing', 'relay-kill', 'relay-pause', 'links-away-pausing'],
  gap: [1_200, 1_500],
  hold: [1_500, 2_500],
};
/** What depends on how busy the machine is: how soon a caller learns of an end, and how soon a relay has its lease again. */
const OF_TIME: ReadonlySet<string> = new Set(['prompt', 'unfenced', 'I1', 'I4']);

test('each kind of fault is drawn', () => {
  const drawn = scheduleOf({ plan: PLAN, seed: SEED, faults: PLAN.kinds.length, targets: 3 });
  expect(drawn.map(({ kind }) => kind).toSorted()).toEqual(PLAN.kinds.toSorted());
});

test('nothing that a pause covers is written from its answer until its end, and nothing of a revoked token is admitted', async () => {
  const { report, faults, folder } = await runEpisode({
    ...{ plan: PLAN, seed: SEED, faults: PLAN.kinds.length, commands: COMMANDS },
    ...{ perSecond: 150, direct: false, owned: true },
  });
  const violations = report.violations.filter(({ invariant }) => !OF_TIME.has(invariant));
  expect({ violations, unproven: report.unproven, folder: violations.length === 0 ? null : folder }).toEqual({
    violations: [],
    unproven: [],
    folder: null,
  });
  expect(report.counts).toMatchObject({ lost: 0, unexpected: 0, duplicates: 0 });
  expect(report.outcomes['completed']).toBeGreaterThan(COMMANDS / 2);
  expect(faults).toBe(PLAN.kinds.length);
  rmSync(folder, { recursive: true });
});
