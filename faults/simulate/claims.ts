/** What simulations must reach in some run: a fault, a refusal or a repair that never occurs is not tested by them. */
import { FAULTS_OF, type WorkloadName } from './workloads.ts';

const faultsOf = (acts: WorkloadName): readonly string[] => FAULTS_OF[acts].map(({ name }) => `fault: ${name}`);

/** What each workload must have counted after a long run, as `Relays.count` names it. */
export const CLAIMS: Readonly<Record<WorkloadName, readonly string[]>> = {
  calls: faultsOf('calls'),
  store: faultsOf('store'),
};

/** Returns what was never counted. */
export function unmet(claims: readonly string[], seen: Readonly<Record<string, number>>): readonly string[] {
  return claims.filter((what) => !seen[what]);
}
