import type { Plant } from '../outages/mutants/mutant.ts';

/**
 * What must notice a missing guard: a test file that fails (`test`), or a run of one of these programs that ends with a
 * finding: hostile inputs (`fuzz`, with their kind and number) or an attack beside an honest user (`neighbours`).
 */
export type Judge =
  | { readonly test: string }
  | { readonly fuzz: 'frames' | 'requests' | 'documents'; readonly count: number }
  | { readonly neighbours: string; readonly seconds: number };

/** A guard to remove, and what must notice it. */
export type GuardMutant = Plant & { readonly name: string; readonly says: string; readonly judge: Judge };
