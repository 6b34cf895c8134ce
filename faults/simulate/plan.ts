/** What happens in a run: a seed, and the faults with their times. A plan can be printed, cut, and run again. */
import { z } from 'zod';
import { between, pick, seeded } from '../lib/random.ts';

/** How long a fault lasts at most, and how long none begins after one, in milliseconds. */
const FAULT_MS = 9_000;
const QUIET_MS = 4_000;
/** One fault in so many begins while the one before lasts, unless one of them must have all others out of its way. */
const OVERLAPS = 4;
/** The longest pause between two acts of the workload, in milliseconds. */
export const ACT_MS = 120;

/**
 * A fault that a deployment can have. `isAlone`: together with another fault it may lose what was acknowledged, as it
 * must not do alone.
 */
export type FaultKind = { readonly name: string; readonly isAlone: boolean };

/** A fault. `atMs`: when it begins, after the first act. `node`: the number of a relay, of which the rest counts. */
export type Fault = {
  readonly kind: string;
  readonly atMs: number;
  readonly forMs: number;
  readonly node: number;
  /** How strong the fault is, from 0 to 1. */
  readonly part: number;
};

export type Plan = {
  readonly seed: number;
  /** The number of relays. */
  readonly nodes: number;
  /** How many acts the workload has, about. */
  readonly steps: number;
  readonly faults: readonly Fault[];
};

/** Returns the plan of a seed. `kinds`: the faults that its deployment can have. */
export function planOf({ seed, nodes, steps }: Omit<Plan, 'faults'>, kinds: readonly FaultKind[]): Plan {
  const random = seeded(seed ^ 0x5f356495);
  const end = steps * ACT_MS;
  const faults: Fault[] = [];
  let free = between(random, QUIET_MS / 4, QUIET_MS * 2);
  let before: FaultKind | null = null;
  for (;;) {
    const kind = pick(random, kinds);
    const last = faults.at(-1);
    const overlaps = last && !kind.isAlone && !before?.isAlone && between(random, 1, OVERLAPS) === 1;
    const atMs = overlaps ? between(random, last.atMs, last.atMs + last.forMs) : free;
    const forMs = between(random, 100, FAULT_MS);
    if (atMs >= end) return { seed, nodes, steps, faults };
    faults.push({ kind: kind.name, atMs, forMs, node: between(random, 0, nodes - 1), part: random() });
    free = Math.max(free, atMs + forMs + between(random, QUIET_MS, QUIET_MS * 3));
    before = kind;
  }
}

/** Returns the text of a plan, in one line. */
export function planText(plan: Plan): string {
  return JSON.stringify(plan);
}

const FAULT = z.object({
  kind: z.string(),
  atMs: z.number(),
  forMs: z.number(),
  node: z.int().min(0),
  part: z.number(),
});
const PLAN = z.object({ seed: z.int(), nodes: z.int().min(1), steps: z.int().min(1), faults: z.array(FAULT) });

/** Reads the text of a plan. Throws an Error that says what is wrong with it. */
export function readPlan(text: string): Plan {
  return PLAN.parse(JSON.parse(text));
}
