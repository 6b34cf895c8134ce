/** Draws the faults of a run and their times from a seed. The same seed gives the same schedule. */
import { ROLES, type Work } from '../log/events.ts';
import type { Fault, Plan } from './plan.ts';
import { between, pick, seeded } from '../../lib/random.ts';

type ScheduleOptions = {
  readonly seed: number;
  readonly plan: Plan;
  readonly faults: number;
  readonly targets: number;
};

/**
 * What owners do at the kills of a plan with aimed ones, in turn. A takeover follows the kill before it, and handovers
 * the return of its relay. There are more than half, because some kills miss their moment.
 */
const WORK_AT_KILLS: readonly (Work | null)[] = [null, 'takeover', 'handover', 'snapshot', 'takeover'];

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
    const work = WORK_AT_KILLS[(id - 1) % WORK_AT_KILLS.length] ?? null;
    const aim = plan.aimed ? { role: ROLES[(id - 1) % ROLES.length] ?? 'owner', work } : {};
    schedule.push({ id, atMs, kind, target, holdMs, ...aim });
    atMs += holdMs;
  }
  return schedule;
}
