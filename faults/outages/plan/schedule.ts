/** Draws the faults of a run and their times from a seed. */
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
 * The work of owners at which aimed kills hit, in turn. A takeover follows the previous kill, and handovers follow the
 * return of its relay. More than half of the kills aim at work, because some miss their moment.
 */
const WORK_AT_KILLS: readonly (Work | null)[] = [null, 'takeover', 'handover', 'snapshot', 'takeover'];

/**
 * Returns the faults of a run with their times. The same options always give the same schedule. Each fault ends before
 * the next one begins.
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
