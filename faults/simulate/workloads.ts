/** The workloads of simulations by name, and how one runs a plan. */
import { Calls } from './calls.ts';
import type { Plan } from './plan.ts';
import type { Relays } from './relays.ts';
import { StoreActs } from './store-acts.ts';
import { simulate, type Verdict, type Workload } from './world.ts';

export const WORKLOADS = {
  calls: (relays: Relays): Workload => new Calls(relays),
  store: (relays: Relays): Workload => new StoreActs(relays),
} as const;

export type WorkloadName = keyof typeof WORKLOADS;

export function isWorkload(name: string): name is WorkloadName {
  return Object.hasOwn(WORKLOADS, name);
}

/** Runs a plan. Rejects with whatever a relay throws beyond its callers. */
export function runPlan(plan: Plan, acts: WorkloadName, trace?: (line: string) => void): Promise<Verdict> {
  return simulate({ plan, trace }, WORKLOADS[acts]);
}
