/** Tests that every guard mutant (a check left out of the sources) fits the sources and names an existing test. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { GUARD_MUTANTS } from '../../faults/mutants/guards.ts';
import { attackOf } from '../../faults/neighbours/attacks/attacks.ts';
import { editsOf, mutate } from '../../faults/outages/mutants/plant.ts';

const ROOT = join(import.meta.dirname, '..', '..');

describe('a guard mutant', () => {
  test.each(GUARD_MUTANTS)('$name has its text in the sources exactly once', (mutant) => {
    for (const edit of editsOf(mutant)) {
      expect(mutate(edit)).toContain(edit.replace);
      expect(edit.replace).not.toBe(edit.find);
    }
  });

  test.each(GUARD_MUTANTS)('$name has an existing judge', ({ judge }) => {
    if ('test' in judge) expect(existsSync(join(ROOT, judge.test))).toBe(true);
    else if ('neighbours' in judge) expect(attackOf(judge.neighbours).name).toBe(judge.neighbours);
    else expect(judge.count).toBeGreaterThan(0);
  });

  test('has a name of its own', () => {
    expect(new Set(GUARD_MUTANTS.map(({ name }) => name)).size).toBe(GUARD_MUTANTS.length);
  });
});
