/** Joins the lists of mutants that fault runs must catch. Each mutant breaks one rule of the relay. */
import { DIRECT_MUTANTS } from './direct.ts';
import { LISTED_MUTANTS } from './listed.ts';
import type { Mutant } from './mutant.ts';
import { SHARED_MUTANTS } from './shared.ts';

export const MUTANTS: readonly Mutant[] = [
  ...DIRECT_MUTANTS.map((mutant) => ({ ...mutant, mode: 'direct' as const })),
  ...[...SHARED_MUTANTS, ...LISTED_MUTANTS].map((mutant) => ({ ...mutant, mode: 'shared' as const })),
];
