/** Tests the plans of simulations: they come from a seed, can be kept as text, and are cut to what breaks something. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { claimsOf, unmet } from '../../faults/simulate/claims.ts';
import { OWNED_FAULTS } from '../../faults/simulate/deployment.ts';
import { planOf, planText, readPlan, type Plan } from '../../faults/simulate/plan.ts';
import { shrink } from '../../faults/simulate/shrink.ts';
import { isStore, isWorkload, runPlan } from '../../faults/simulate/workloads.ts';

const SIZE = { nodes: 3, steps: 1_000 };
const alone = new Set(OWNED_FAULTS.filter(({ isAlone }) => isAlone).map(({ name }) => name));

describe('a plan', () => {
  it('is the same for a seed, and the same after it was kept as text', () => {
    const plan = planOf({ seed: 7, ...SIZE }, OWNED_FAULTS);
    expect(planOf({ seed: 7, ...SIZE }, OWNED_FAULTS)).toEqual(plan);
    expect(readPlan(planText(plan))).toEqual(plan);
    expect(planOf({ seed: 8, ...SIZE }, OWNED_FAULTS).faults).not.toEqual(plan.faults);
  });

  it('has each kind of fault, some at the same time, and none beside one that must be alone', () => {
    const kinds = new Set<string>();
    let together = 0;
    for (let seed = 1; seed <= 200; seed++)
      for (const [i, fault] of planOf({ seed, ...SIZE }, OWNED_FAULTS).faults.entries()) {
        kinds.add(fault.kind);
        const others = planOf({ seed, ...SIZE }, OWNED_FAULTS).faults.toSpliced(i, 1);
        const beside = others.filter(
          ({ atMs, forMs }) => atMs <= fault.atMs + fault.forMs && atMs + forMs >= fault.atMs,
        );
        if (alone.has(fault.kind)) expect(beside).toEqual([]);
        else together += beside.length;
      }
    expect([...kinds].toSorted()).toEqual(OWNED_FAULTS.map(({ name }) => name).toSorted());
    expect(together).toBeGreaterThan(200);
  });

  it.each([
    ['{', /JSON/],
    ['null', /object/],
    ['{"seed":1,"nodes":2,"faults":[]}', /steps/],
    ['{"seed":1,"nodes":2,"steps":3}', /faults/],
    ['{"seed":1,"nodes":2,"steps":3,"faults":[{"kind":"kill","atMs":"soon"}]}', /atMs/],
    ['{"seed":1,"nodes":0,"steps":3,"faults":[]}', /nodes/],
  ])('is refused with what is wrong with it: %s', (text, says) => {
    expect(() => readPlan(text)).toThrow(says);
  });
});

describe('the claims of a workload', () => {
  it('are unmet until everything was counted', () => {
    const [first = '', ...others] = claimsOf({ acts: 'calls', store: 'owned' });
    expect(unmet(claimsOf({ acts: 'calls', store: 'owned' }), { [first]: 3 })).toEqual(others);
    expect(
      unmet(
        claimsOf({ acts: 'calls', store: 'owned' }),
        Object.fromEntries(claimsOf({ acts: 'calls', store: 'owned' }).map((what) => [what, 1])),
      ),
    ).toEqual([]);
  });
});

describe('a plan that breaks something', () => {
  it('is cut to the faults, acts and relays that it takes', async () => {
    const faults = fc.uniqueArray(fc.nat(40), { minLength: 1, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(fc.nat(1_000), faults, fc.integer({ min: 1, max: 3 }), async (seed, wanted, nodes) => {
        const plan = planOf({ seed, nodes: 3, steps: 6_000 }, OWNED_FAULTS);
        const needed = wanted.map((i) => plan.faults[i % plan.faults.length]);
        const isBroken = async (one: Plan): Promise<boolean> =>
          needed.every((fault) => one.faults.some((of) => of === fault)) && one.nodes >= nodes && one.steps >= 50;
        const { plan: short } = await shrink(plan, isBroken);
        expect(new Set(short.faults)).toEqual(new Set(needed));
        expect(short.nodes).toBe(nodes);
        const last = Math.max(...short.faults.map(({ atMs }) => atMs));
        expect(short.steps).toBeLessThanOrEqual(Math.max(50, Math.ceil(last / 120) + 1));
      }),
      { numRuns: 30 },
    );
  });
});

/** The plans that broke something once, each with what it was. */
type Kept = { readonly says: string; readonly acts: string; readonly store: string; readonly plan: unknown };
const KEPT: readonly Kept[] = JSON.parse(readFileSync(join(import.meta.dirname, 'kept-plans.json'), 'utf8'));

describe('a plan that broke something once', () => {
  it.each(KEPT)('breaks nothing any more: $says', async ({ acts, store, plan }) => {
    if (!isWorkload(acts) || !isStore(store)) throw new Error(`there is no workload ${acts}, or no store ${store}`);
    const { broken } = await runPlan(readPlan(JSON.stringify(plan)), { acts, store });
    expect(broken).toEqual([]);
  });
});
