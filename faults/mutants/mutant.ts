import type { Plant } from '../outages/mutants/mutant.ts';

/**
 * What notices a mistake: a file of tests that fails with it (`test`), or a run of one of these programs that ends RED: hostile inputs (`fuzz`: the
 * kind and how many) or an attack beside an honest user (`neighbours`).
 */
export type Judge =
  | { readonly test: string }
  | { readonly fuzz: 'frames' | 'requests' | 'documents'; readonly count: number }
  | { readonly neighbours: string; readonly seconds: number };

/** A guard that is left out, and what must notice. */
export type GuardMutant = Plant & { readonly name: string; readonly says: string; readonly judge: Judge };
