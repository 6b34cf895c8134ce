/** Tests that the mutants of the fault runs fit the sources, the plans and the invariants. */
import { describe, expect, test } from 'vitest';
import { INVARIANTS } from '../../faults/outages/judge/invariants.ts';
import { PROMISES } from '../../faults/outages/judge/promises.ts';
import { MUTANTS } from '../../faults/outages/mutants/mutants.ts';
import { editsOf, mutate } from '../../faults/outages/mutants/plant.ts';
import { planOf } from '../../faults/outages/plan/plans.ts';

describe('the mutants', () => {
  test.each(MUTANTS)('$mode $name replaces a text that occurs exactly once in its file', (mutant) => {
    for (const edit of editsOf(mutant)) {
      expect(mutate(edit)).toContain(edit.replace);
      expect(edit.replace).not.toBe(edit.find);
    }
  });

  test.each(MUTANTS)('$mode $name names existing invariants and an existing plan', (mutant) => {
    const names: readonly string[] = [...INVARIANTS, ...PROMISES].map(({ name }) => name);
    expect(mutant.caughtBy.length).toBeGreaterThan(0);
    expect(mutant.caughtBy.filter((name) => !names.includes(name))).toEqual([]);
    expect(planOf(mutant.plan).name).toBe(mutant.plan);
  });

  test('have names of their own', () => {
    expect(new Set(MUTANTS.map(({ mode, name }) => `${mode} ${name}`)).size).toBe(MUTANTS.length);
  });
});
