/** Cuts a plan that breaks something down to a short one that still does. */
import { ACT_MS, type Plan } from './plan.ts';

/**
 * Returns a plan that `isBroken` still finds broken, with as few faults, acts and relays as single cuts can reach.
 * `most`: how often `isBroken` is asked at most. The plan itself must be broken.
 */
export async function shrink(
  plan: Plan,
  isBroken: (plan: Plan) => Promise<boolean>,
  most = 300,
): Promise<{ readonly plan: Plan; readonly tries: number }> {
  let best = plan;
  let tries = 0;
  const take = async (candidate: Plan): Promise<boolean> => {
    if (tries >= most || (candidate.faults.length === 0 && best.faults.length === 0 && candidate.steps === best.steps))
      return false;
    tries++;
    if (!(await isBroken(candidate))) return false;
    best = candidate;
    return true;
  };
  for (let before: Plan | null = null; before !== best;) {
    before = best;
    await cutSteps(() => best, take);
    await cutFaults(() => best, take);
    while (best.nodes > 1 && (await take({ ...best, nodes: best.nodes - 1 })));
  }
  return { plan: best, tries };
}

type Take = (candidate: Plan) => Promise<boolean>;

/** Ends the run earlier: by half of its acts, a quarter, and so on. Faults after its end go. */
async function cutSteps(best: () => Plan, take: Take): Promise<void> {
  for (let by = best().steps / 2; by >= 1; by /= 2) {
    const plan = best();
    const steps = Math.ceil(plan.steps - by);
    const faults = plan.faults.filter(({ atMs }) => atMs < steps * ACT_MS);
    if (steps > 0 && steps < plan.steps) await take({ ...plan, steps, faults });
  }
}

/** Leaves out half of the faults, a quarter, and so on to single ones. */
async function cutFaults(best: () => Plan, take: Take): Promise<void> {
  for (let size = Math.ceil(best().faults.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < best().faults.length;) {
      const plan = best();
      const isCut = await take({ ...plan, faults: plan.faults.toSpliced(at, size) });
      if (!isCut) at += size;
    }
  }
}
