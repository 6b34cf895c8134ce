/**
 * Lists mutants of the GraphQL code: copies of the sources that each lack one guard. `npm run mutants` shows that tests
 * notice each missing guard.
 */
import type { GuardMutant } from './mutant.ts';

/** The guard mutants of GraphQL: each leaves out one check of documents, variables or answers. */
export const GRAPHQL_GUARDS: readonly GuardMutant[] = [
  {
    name: 'no-cost-bound',
    says: 'the cost of an operation has no bound',
    file: 'graphql/execution/limits.ts',
    find: 'if (cost <= most) return null;',
    replace: 'if (cost <= most * 1e9) return null;',
    judge: { test: 'test/graphql/limits.test.ts' },
  },
  {
    name: 'coercion-errors-unbounded',
    says: 'graphql-js may list every error of a value',
    file: 'graphql/variables/coerce-variables.ts',
    find: 'export const MAX_COERCION_ERRORS = 1;',
    replace: 'export const MAX_COERCION_ERRORS = 1e6;',
    judge: { test: 'test/graphql/bounded.test.ts' },
  },
  {
    name: 'large-variables-printed',
    says: 'a large variable that does not fit is printed whole in its error',
    file: 'graphql/variables/coerce-variables.ts',
    find: 'const misfit = misfitOf(type, given[name]);',
    replace: 'const misfit = misfitOf(type, null);',
    judge: { test: 'test/graphql/bounded.test.ts' },
  },
  {
    name: 'shape-unbounded',
    says: 'a document may have any depth, and any number of aliases, directives, fields and fragments',
    file: 'graphql/execution/limits-shape.ts',
    find: 'found > most ?',
    replace: 'found > most * 1e9 ?',
    judge: { test: 'test/graphql/limits.test.ts' },
  },
  {
    name: 'merges-unbounded',
    says: 'a document may ask for one field any number of times in one place',
    file: 'graphql/execution/limits-shape.ts',
    find: 'mergeSteps(document, QUERY_MERGES) <= QUERY_MERGES)',
    replace: 'mergeSteps(document, QUERY_MERGES) <= QUERY_MERGES * 1e9)',
    judge: { test: 'test/graphql/bounded.test.ts' },
  },
  {
    name: 'nesting-unbounded',
    says: 'a document may nest as deep as its tokens allow',
    file: 'graphql/execution/limits-nesting.ts',
    find: 'if (depth > most) return true;',
    replace: '',
    judge: { test: 'test/graphql/bounded.test.ts' },
  },
  {
    name: 'anonymous-validated',
    says: 'documents without a token are validated',
    file: 'graphql/http/handler.ts',
    find: 'if (!requester) requireAnonymousQuery(query, introspection);',
    replace: '',
    judge: { test: 'test/graphql/bounded.test.ts' },
  },
  {
    name: 'anonymous-unlimited',
    says: 'an address may ask for GraphQL without a token at any rate',
    file: 'http/anonymous-rate.ts',
    find: 'if (retryAfterMs === 0) return;',
    replace: 'return;',
    judge: { test: 'test/http/anonymous-rate.test.ts' },
  },
  {
    name: 'pages-unbounded',
    says: 'a page may have any number of bytes',
    file: 'graphql/schema/page-budget.ts',
    find: 'if (kept > 0 && bytes + more > room) break;',
    replace: '',
    judge: { test: 'test/graphql/page-budget.test.ts' },
  },
  {
    name: 'answers-unbounded',
    says: 'an answer may have any number of bytes',
    file: 'graphql/schema/page-budget.ts',
    find: '#left = ANSWER_BYTES;\n\n  constructor',
    replace: '#left = ANSWER_BYTES * 1e6;\n\n  constructor',
    judge: { test: 'test/graphql/page-budget.test.ts' },
  },
];
