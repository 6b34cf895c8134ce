/**
 * Lists mutants of what protects a person from the texts and schemas of clients: copies of the sources that each lack
 * one guard. `npm run mutants` shows that tests notice each missing guard.
 */
import type { GuardMutant } from './mutant.ts';

const FORM = { file: 'console/form/form-schema.ts', judge: { test: 'test/console/form-schema.test.ts' } } as const;

/** The guard mutants of the console's forms, of its check of arguments, and of the command line's output. */
export const ADVERTISED_GUARDS: readonly GuardMutant[] = [
  {
    ...FORM,
    name: 'form-parts-unbounded',
    says: 'the form of an advertised schema may have any number of parts',
    find: 'if (--left.parts < 0)',
    replace: 'if (--left.parts < -1e9)',
  },
  {
    ...FORM,
    name: 'form-steps-unbounded',
    says: 'any number of names and references of an advertised schema are read',
    find: 'if (left.steps < 0)',
    replace: 'if (left.steps < -1e9)',
  },
  {
    ...FORM,
    name: 'form-values-unbounded',
    says: 'choices, constants and defaults of an advertised schema may have any length',
    find: 'if (left.chars < 0 ||',
    replace: 'if (left.chars < -1e9 ||',
  },
  {
    ...FORM,
    name: 'form-fields-unbounded',
    says: 'an advertised schema may fill its lists with any number of fields',
    find: 'return fieldsOf(form.schema, {}) > FORM_FIELDS ?',
    replace: 'return fieldsOf(form.schema, {}) > FORM_FIELDS * 1e9 ?',
  },
  {
    ...FORM,
    name: 'form-names-unchecked',
    says: 'the forms library gets names that every object has',
    find: "name in {} || name === '__errors'",
    replace: "name === '__errors'",
  },
  {
    name: 'check-unbounded',
    says: 'the check of arguments against an advertised schema may take any time',
    file: 'console/invoke/checker.ts',
    find: 'cancelTimer = after(CHECK_MS, () => giveUp(TOO_SLOW));',
    replace: '',
    judge: { test: 'test/console/checker.test.ts' },
  },
  {
    name: 'editor-runs-any-script',
    says: 'the page of the GraphQL editor may run any script',
    file: 'graphql/http/graphiql.ts',
    find: "`script-src 'sha256-${hash}'`",
    replace: "`script-src 'unsafe-inline' 'unsafe-eval' ${hash.slice(44)}`",
    judge: { test: 'test/browser/graphiql.test.ts' },
  },
  {
    name: 'output-steers-terminal',
    says: 'the command line prints control characters of clients',
    file: 'cli/io.ts',
    find: 'print: (text) => print(visibleText(text)),',
    replace: 'print,',
    judge: { test: 'test/cli/operator/hidden-characters.test.ts' },
  },
  {
    name: 'errors-steer-terminal',
    says: 'the command line prints control characters in errors',
    file: 'cli/io.ts',
    find: 'complain: (text) => complain(visibleText(text)),',
    replace: 'complain,',
    judge: { test: 'test/cli/operator/hidden-characters.test.ts' },
  },
  {
    name: 'cells-break-lines',
    says: 'a text of a client may begin a new line of a table',
    file: 'cli/columns.ts',
    find: "return visibleLine(typeof shown === 'string' ? shown : JSON.stringify(shown));",
    replace: "return typeof shown === 'string' ? shown : JSON.stringify(shown);",
    judge: { test: 'test/cli/operator/hidden-characters.test.ts' },
  },
];
