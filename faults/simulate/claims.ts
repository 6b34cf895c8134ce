/** What simulations must reach in some run: a fault, a refusal or a repair that never occurs is not tested by them. */
import { STORES, type StoreName } from './workloads.ts';

/** Returns what the runs of a store must have counted after a long run, as `Relays.count` names it. */
export function claimsOf(store: StoreName): readonly string[] {
  return STORES[store].faults.map(({ name }) => `fault: ${name}`);
}

/** Returns what was never counted. */
export function unmet(claims: readonly string[], seen: Readonly<Record<string, number>>): readonly string[] {
  return claims.filter((what) => !seen[what]);
}
