/** Defines the types of a guard mutant: a guard that is left out, and what must notice that. */
import type { Plant } from '../outages/mutants/plant.ts';

/**
 * The check that must notice a missing guard. `test`: a test file, which fails. `fuzz`: a run of hostile inputs, given
 * by kind and number, which ends with a finding. `neighbours`: an attack beside an honest user, which ends with a
 * finding.
 */
export type Judge =
  | { readonly test: string }
  | { readonly fuzz: 'frames' | 'requests' | 'documents'; readonly count: number }
  | { readonly neighbours: string; readonly seconds: number };

/** A guard to remove, and what must notice it. */
export type GuardMutant = Plant & { readonly name: string; readonly says: string; readonly judge: Judge };
