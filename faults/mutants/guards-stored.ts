/**
 * Lists mutants of the code that stores data, in memory and in a data directory: copies of the sources that each lack
 * one guard. `npm run mutants` shows that tests notice each missing guard.
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

/** The guard mutants of the data directory. */
export const DURABLE_GUARDS: readonly GuardMutant[] = [
  {
    name: 'no-gate',
    says: 'bytes leave the process before what they depend on is recorded',
    file: 'http/server.ts',
    find: "if (onRecord) server.on(tls ? 'secureConnection' : 'connection', holdingBack(onRecord));",
    replace: '',
    judge: { test: 'test/http/durable.test.ts' },
  },
  {
    name: 'record-after-write',
    says: 'what waits for a record is sent before the record is written',
    file: 'backends/journal/journal.ts',
    find: "if (text !== '' && !this.#append(text)) return;",
    replace: "this.#written++;\n    this.#release();\n    if (text !== '' && !this.#append(text)) return;",
    judge: { test: 'test/backends/durable-directory.test.ts' },
  },
  {
    name: 'sync-not-awaited',
    says: 'with the policy always, answers leave before the disk has their records',
    file: 'backends/journal/journal.ts',
    find: "this.#options.sync === 'always' ? this.#synced : this.#written;",
    replace: 'this.#written;',
    judge: { test: 'test/backends/durable-directory.test.ts' },
  },
  {
    name: 'sync-ignored',
    says: 'a failed sync counts as a sync',
    file: 'backends/journal/journal.ts',
    find: 'if (error) return void this.#fail(error);',
    replace: '',
    judge: { test: 'test/backends/durable-directory.test.ts' },
  },
  {
    name: 'snapshot-before-records',
    says: 'a snapshot gets its name before the records of its time are on the disk',
    file: 'backends/journal/journal.ts',
    find: '    await recorded();\n',
    replace: '',
    judge: { test: 'test/backends/durable-directory.test.ts' },
  },
  {
    name: 'snapshot-before-rotation',
    says: 'acts during a snapshot are in the journal that it replaces',
    file: 'backends/journal/open.ts',
    find: 'const number = journal.rotate(head);',
    replace:
      'const number = journal.number + 1;\n      setImmediate(() => setImmediate(() => setImmediate(() => journal.rotate(head))));',
    judge: { test: 'test/backends/durable-directory.test.ts' },
  },
  {
    name: 'decision-replayed',
    says: 'a replay decides again what is dropped for lack of room',
    file: 'backends/journal/open.ts',
    find: 'watcher.replaying = true;',
    replace: '',
    judge: { test: 'test/backends/durable-directory.test.ts' },
  },
  {
    name: 'damage-cut',
    says: 'whole batches behind a damaged one are cut off without a word',
    file: 'backends/journal/files.ts',
    find: "if (later && later.synced > offset) return { kind: 'damaged', ...found };",
    replace: '',
    judge: { test: 'test/backends/durable-directory.test.ts' },
  },
  {
    name: 'no-gate-attached',
    says: 'bytes leave the server of another program before what they depend on is recorded',
    file: 'http/server.ts',
    find: 'holdBack?.(request.socket);',
    replace: '',
    judge: { test: 'test/http/durable.test.ts' },
  },
  {
    name: 'kill-cuts',
    says: 'after the end of a process alone, a start cuts whole batches',
    file: 'backends/journal/files.ts',
    find: 'return lostPower && !later.some(wasSynced);',
    replace: 'return !later.some(wasSynced);',
    judge: { test: 'test/backends/durable-directory.test.ts' },
  },
  {
    name: 'kill-unsynced',
    says: 'a start syncs its own records, but not those of the killed process on which they depend',
    file: 'backends/journal/open.ts',
    find: '  syncFiles(journals, options.openFile);\n',
    replace: '',
    judge: { test: 'test/backends/durable-directory.test.ts' },
  },
  {
    name: 'reserve-kept',
    says: 'a full disk cannot take back the room of a reserve that is being written',
    file: 'backends/journal/files.ts',
    find: 'this.#givenUp++;',
    replace: '',
    judge: { test: 'test/backends/durable-directory.test.ts' },
  },
  {
    name: 'loss-forgotten',
    says: 'a start from a backup continues commands that may have run since',
    file: 'backends/journal/open.ts',
    find: 'lost: unsynced || gaveUp',
    replace: 'lost: unsynced',
    judge: { test: 'test/cli/data.test.ts' },
  },
];
