/** Tests two of the guard mutants in the way in which `npm run mutants` tests all of them. */
import { expect, test } from 'vitest';
import { GUARD_MUTANTS } from '../../faults/mutants/guards.ts';
import { caught, failsUnharmed } from '../../faults/mutants/judge.ts';

/** The guard mutants to try. They are judged by tests that take milliseconds. */
const SHORT = ['claims-always-granted', 'tokens-counted-first'];
const mutants = GUARD_MUTANTS.filter(({ name }) => SHORT.includes(name));

test('mutants are caught by their tests, which pass without the mutant', async () => {
  expect(mutants).toHaveLength(SHORT.length);
  const judged = [await failsUnharmed(mutants)];
  for (const mutant of mutants) judged.push(await caught(mutant));
  expect(judged).toEqual([
    null,
    expect.stringContaining('test/http/token-guard.test.ts fails'),
    expect.stringContaining('test/core/shares.test.ts fails'),
  ]);
});
