import { describe, expect, test } from 'vitest';
import { INVARIANTS } from '../../faults/outages/judge/invariants.ts';
import { PROMISES } from '../../faults/outages/judge/promises.ts';
import { MUTANTS } from '../../faults/outages/mutants/mutants.ts';
import { editsOf, mutate } from '../../faults/outages/mutants/plant.ts';
import { planOf } from '../../faults/outages/plan/plans.ts';

describe('the mutants', () => {
  test.each(MUTANTS)('$mode $name replaces what stands in its file exactly once', (mutant) => {
    for (const edit of editsOf(mutant)) {
      expect(mutate(edit)).toContain(edit.replace);
      expect(edit.replace).not.toBe(edit.find);
    }
  });

  test.each(MUTANTS)('$mode $name is to be caught by invariants that there are, in a plan that there is', (mutant) => {
    const names: readonly string[] = [...INVARIANTS, ...PROMISES].map(({ name }) => name);
    expect(mutant.caughtBy.length).toBeGreaterThan(0);
    expect(mutant.caughtBy.filter((name) => !names.includes(name))).toEqual([]);
    expect(planOf(mutant.plan).name).toBe(mutant.plan);
  });

  test('have names of their own', () => {
    expect(new Set(MUTANTS.map(({ mode, name }) => `${mode} ${name}`)).size).toBe(MUTANTS.length);
  });
});
