/**
 * Lists mutants of the code that stores data: copies of the sources that each lack one guard. `npm run mutants` shows
 * that tests notice each missing guard.
 */
import type { GuardMutant } from './mutant.ts';

/** The guard mutants of stored data: each leaves out one check of history, commands or payloads. */
export const STORED_GUARDS: readonly GuardMutant[] = [
  {
    name: 'marks-dropped',
    says: 'a record that is dropped leaves no mark, so its id runs again',
    file: 'backends/memory/ledger-ended.ts',
    find: 'this.marks.add(entry, digest, { mark, owner: user });',
    replace: '',
    judge: { test: 'test/backends/ended-shares.test.ts' },
  },
  {
    name: 'results-of-anybody',
    says: 'the oldest result of all users is dropped first',
    file: 'backends/memory/ledger-ended.ts',
    find: "const holder = shares.mostOver('result_bytes');",
    replace: "const holder = shares.mostOver('links');",
    judge: { test: 'test/backends/ended-shares.test.ts' },
  },
  {
    name: 'records-of-anybody',
    says: 'the oldest record of all users is dropped first',
    file: 'backends/memory/ledger-ended.ts',
    find: "const holder = shares.mostOver('ended_records');",
    replace: "const holder = shares.mostOver('links');",
    judge: { test: 'test/backends/ended-shares.test.ts' },
  },
  {
    name: 'history-of-anybody',
    says: 'the oldest row of all users is dropped first',
    file: 'backends/memory/history-rows.ts',
    find: "const holder = this.#shares.mostOver('history_bytes');",
    replace: "const holder = this.#shares.mostOver('links');",
    judge: { test: 'test/backends/history-bytes.test.ts' },
  },
  {
    name: 'mark-room-unchecked',
    says: 'an id that a caller chose is admitted without room for its mark',
    file: 'core/commands/rules.ts',
    find: 'const noMark = question.chosenId ? this.tx.noMark(client, question.commandId) : null;',
    replace: 'const noMark = null;',
    judge: { test: 'test/backends/ended-shares.test.ts' },
  },
  {
    name: 'mark-room-unreserved',
    says: 'room for the mark of a live command is not counted',
    file: 'backends/memory/ledger.ts',
    find: "holdings.take('marks', 1);",
    replace: '',
    judge: { test: 'test/backends/ended-shares.test.ts' },
  },
  {
    name: 'results-outlive-retention',
    says: 'a result stays until the window of its id is over',
    file: 'backends/memory/ledger-ended.ts',
    find: 'if (retentionMs < windowMs) {',
    replace: 'if (retentionMs < 0) {',
    judge: { test: 'test/backends/ended-shares.test.ts' },
  },
];
