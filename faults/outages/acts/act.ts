/**
 * Defines the type of the functions that carry out faults, and helpers for them: required values, and waits for a
 * condition.
 */
import type { FaultLog } from '../log/log.ts';
import type { Fault } from '../plan/plan.ts';
import type { World } from '../world.ts';

/** Carries out one fault. Resolves when the fault is over; with a reason if the fault is impossible in this run. */
export type Act = (world: World, fault: Fault, log: FaultLog) => Promise<string | void>;

// Helpers for the functions that carry out faults.

/** Returns the value. Throws if this run does not have it. */
export function given<T>(value: T | null | undefined): T {
  if (value === null || value === undefined) throw new Error('there is none in this run');
  return value;
}

export function sleep(ms: number): Promise<void> {
  return new Promise((done) => setTimeout(done, Math.max(0, ms)));
}

/** Waits for a condition, and resolves with whether it became true in time. A check that throws is repeated. */
export async function until(holds: () => Promise<boolean>, withinMs: number, everyMs = 250): Promise<boolean> {
  const end = performance.now() + withinMs;
  while (performance.now() < end) {
    if (await holds().catch(() => false)) return true;
    await sleep(everyMs);
  }
  return false;
}
