/** Draws the faults of a run and their times from a seed. The same seed gives the same schedule. */
import type { Fault, Plan } from './plan.ts';
import { between, pick, seeded } from '../../lib/random.ts';

type ScheduleOptions = {
  readonly seed: number;
  readonly plan: Plan;
  readonly faults: number;
  readonly targets: number;
};

/**
 * Returns the faults of a run with their times. The same options always give the same schedule. One fault ends before
 * the next begins.
 */
export function scheduleOf({ seed, plan, faults, targets }: ScheduleOptions): readonly Fault[] {
  const random = seeded(seed);
  const schedule: Fault[] = [];
  let atMs = 0;
  for (let id = 1; id <= faults && plan.kinds.length > 0; id++) {
    atMs += between(random, ...plan.gap);
    const kind = pick(random, plan.kinds);
    const holdMs = between(random, ...plan.hold);
    const chance = between(random, 0, targets - 1);
    const target = plan.callersOnly ? targets - 1 : plan.rolling ? (id - 1) % targets : chance;
    schedule.push({ id, atMs, kind, target, holdMs });
    atMs += holdMs;
  }
  return schedule;
}
