/**
 * Lists mutants of the audit and its keys: copies of the sources that each lack one guard. `npm run mutants` shows that
 * tests notice each missing guard.
 */
import type { GuardMutant } from './mutant.ts';

const VERIFIED = { test: 'test/core/audit.test.ts' };

/** The guard mutants of the audit: each leaves out one check of its rows, or one care for its keys. */
export const AUDIT_GUARDS: readonly GuardMutant[] = [
  {
    name: 'audit-mac-unchecked',
    says: 'a changed row passes if it names a key that is given',
    file: 'core/audit/audit-chain.ts',
    find: 'return !sign || sign(text) === mac ? null : `Row ${seq} was changed.`;',
    replace: 'return null;',
    judge: VERIFIED,
  },
  {
    name: 'audit-missing-key-unnoticed',
    says: 'rows under a key that is not given count as verified',
    file: 'core/audit/audit-chain.ts',
    find: 'if (key !== undefined && !this.#keys.has(key)) this.#noteUnchecked(key, seq);',
    replace: '',
    judge: VERIFIED,
  },
  {
    name: 'audit-links-of-unchecked-rows',
    says: 'a row under a key that is not given may follow any row',
    file: 'core/audit/audit-chain.ts',
    find: 'else if (row.prev !== this.#last.mac)',
    replace: 'else if (this.#keys.has(key ?? "") && row.prev !== this.#last.mac)',
    judge: VERIFIED,
  },
  {
    name: 'audit-rows-without-key',
    says: 'a row that names no key passes without a MAC of a given key',
    file: 'core/audit/audit-chain.ts',
    find: 'const signed = [...this.#keys.values()].some((sign) => sign(text) === mac);',
    replace: 'const signed = true;',
    judge: VERIFIED,
  },
  {
    name: 'audit-key-not-named',
    says: 'relays write rows that do not name their key',
    file: 'core/audit/audit.ts',
    find: 'key: this.#key, ',
    replace: '',
    judge: { test: 'test/contract/audit.memory.test.ts' },
  },
  {
    name: 'audit-key-id-of-a-row',
    says: 'the id of a key is signed as the text of a row could be',
    file: 'core/audit/audit-rows.ts',
    find: "const KEY_ID_TEXT = 'callboard audit key id';",
    replace: "const KEY_ID_TEXT = '{}';",
    judge: VERIFIED,
  },
  {
    name: 'audit-unchecked-exits-with-zero',
    says: '`audit verify` succeeds although it could not check every row',
    file: 'cli/data.ts',
    find: "if (missing !== '') throw",
    replace: "if (missing === 'none') throw",
    judge: { test: 'test/relay/audit.test.ts' },
  },
  {
    name: 'audit-earlier-keys-logged',
    says: 'the earlier keys of the audit are not kept out of the log',
    file: 'config/auth-config.ts',
    find: 'const keys = [audit.key, ...audit.earlierKeys];',
    replace: 'const keys = [audit.key];',
    judge: { test: 'test/http/config.test.ts' },
  },
];
