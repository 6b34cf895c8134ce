/** Tests the list of mutants that simulations must notice: each mutant is in one list, and the page has what was found. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readPart, rowsOf } from '../../faults/lib/page.ts';
import { ALL_MUTANTS, SIMULATED_MUTANTS, UNNOTICED } from '../../faults/mutants/simulated.ts';

const PAGE = readFileSync(join(import.meta.dirname, '..', '..', 'docs', 'simulation.md'), 'utf8');

describe('the mutants of simulations', () => {
  it('are all mutants, each in one list: those that a simulation must notice, or others for one reason', () => {
    const listed = [...SIMULATED_MUTANTS, ...UNNOTICED.flatMap(({ mutants }) => mutants)].map(({ name }) => name);
    expect(listed.toSorted()).toEqual(ALL_MUTANTS.map(({ name }) => name).toSorted());
    for (const { why, mutants } of UNNOTICED) expect([why, mutants.length]).not.toEqual([why, 0]);
  });

  it('have a row in the page, with the first seed that notices each', () => {
    const rows = rowsOf(readPart(PAGE, 'mutants and their first seeds'));
    const found = rows.map(([name, says, store, acts]) => [name, says, store, acts]);
    expect(found).toEqual(SIMULATED_MUTANTS.map(({ name, says, store, acts }) => [name, says, store, acts]));
    // A dash: the seed was not looked for yet.
    for (const [name, , , , seed] of rows) expect(`${name} ${seed}`).toMatch(/ ([1-9]\d*|-|none)$/);
    expect(rows.filter(([, , , , seed]) => seed !== '-').length).toBeGreaterThan(5);
  });

  it('are named in the page with the reason if no simulation notices them', () => {
    const rows = rowsOf(readPart(PAGE, 'mutants that the simulator does not notice'));
    expect(rows).toEqual(UNNOTICED.map(({ why, mutants }) => [why, mutants.map(({ name }) => name).join(', ')]));
  });
});
