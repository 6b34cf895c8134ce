import type { Plant } from '../../test/faults/mutants.ts';

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

export const GUARD_MUTANTS: readonly GuardMutant[] = [
  {
    name: 'no-document-bounds',
    says: 'depth, aliases, directives and root fields are not counted',
    file: 'graphql/limits.ts',
    find: 'found > most ?',
    replace: 'found > most * 1e9 ?',
    judge: { test: 'test/graphql/limits.test.ts' },
  },
  {
    name: 'no-cost-bound',
    says: 'an operation may cost what it wants',
    file: 'graphql/limits.ts',
    find: 'if (cost <= most) return null;',
    replace: 'if (cost <= most * 1e9) return null;',
    judge: { test: 'test/graphql/limits.test.ts' },
  },
  {
    name: 'body-length-late',
    says: 'a body is read whole before its length is looked at',
    file: 'http/body.ts',
    find: 'if (size <= maxBytes) chunks.push(chunk);',
    replace: 'if (size <= maxBytes * 1e3) chunks.push(chunk);',
    judge: { test: 'test/http/body.test.ts' },
  },
  {
    name: 'no-json-depth',
    says: 'JSON may be nested as deeply as its bytes allow',
    file: 'http/body.ts',
    find: 'if (deeperThan(text, JSON_DEPTH))',
    replace: 'if (deeperThan(text, JSON_DEPTH * 1e6))',
    judge: { test: 'test/http/body.test.ts' },
  },
  {
    name: 'no-frame-rate',
    says: 'a link may send what nothing asked for without end',
    file: 'gateway/rate.ts',
    find: 'if (this.#tokens >= 1) {',
    replace: 'if (this.#tokens >= -1e9) {',
    judge: { test: 'test/gateway/conduct.test.ts' },
  },
  {
    name: 'no-bad-frames',
    says: 'a link may send bad frames without end',
    file: 'gateway/rate.ts',
    find: 'return this.#times.length >= BAD_FRAMES;',
    replace: 'return this.#times.length >= BAD_FRAMES * 1e6;',
    judge: { test: 'test/gateway/conduct.test.ts' },
  },
  {
    name: 'codes-masked',
    says: 'a body that is no JSON is the relay’s fault',
    file: 'http/body.ts',
    find: "throw malformed('The body is not JSON.');",
    replace: "throw new Error('The body is not JSON.');",
    judge: { fuzz: 'requests', count: 600 },
  },
];
