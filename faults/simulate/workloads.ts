/** The workloads of simulations by name, and how one runs a plan. */
import { Calls } from './calls.ts';
import { OWNED_FAULTS } from './deployment.ts';
import type { FaultKind, Plan } from './plan.ts';
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

/** The faults that a workload knows. Calls are judged by each frame, which a loss of records would repeat. */
export const FAULTS_OF: Readonly<Record<WorkloadName, readonly FaultKind[]>> = {
  calls: OWNED_FAULTS.filter(({ name }) => name !== 'loss'),
  store: OWNED_FAULTS,
};

/** Runs a plan. Rejects with whatever a relay throws beyond its callers. */
export function runPlan(plan: Plan, acts: WorkloadName, trace?: (line: string) => void): Promise<Verdict> {
  return simulate({ plan, trace }, WORKLOADS[acts]);
}
