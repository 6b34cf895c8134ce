/**
 * Lists mutants of history over Redis: copies of the sources that each lack one guard. `npm run mutants` shows that
 * tests notice each missing guard.
 */
import type { GuardMutant } from './mutant.ts';

/** The guard mutants of history over Redis: each leaves out one check of its Lua libraries or of their readers. */
export const REDIS_HISTORY_GUARDS: readonly GuardMutant[] = [
  {
    name: 'block-trimmed-by-entry',
    says: 'a block is removed although its last rows are within the bound of the stream',
    file: 'backends/redis/history-rows.lua',
    find: '        return trimmed and oldest.entry[1]',
    replace: '        return entry[1]',
    judge: { test: 'test/contract/redis-history.test.ts' },
  },
  {
    name: 'trimmed-bytes-counted',
    says: 'the bytes of history of a user include blocks that were removed',
    file: 'backends/redis/history-rows.lua',
    find: 'trimmed, info.bytes, info.droppedAt = true, info.bytes - #oldest.entry[2][2], oldest.at',
    replace: 'trimmed, info.droppedAt = true, oldest.at',
    judge: { test: 'test/contract/redis-history.test.ts' },
  },
  {
    name: 'place-outlives-its-row',
    says: 'the index of commands keeps the places of rows that were removed',
    file: 'backends/redis/history-rows.lua',
    find: 'for name, hash in pairs(hashes) do lib.history_remove_gathered(row, name, hash) end',
    replace: '',
    judge: { test: 'test/backends/redis-history-places.test.ts' },
  },
  {
    name: 'trimmed-beyond-the-budget-of-places',
    says: 'a call trims further streams after it has removed its most places',
    file: 'backends/redis/history-rows.lua',
    find: 'bound.any and lib.history_places_left > 0 and lib.history_reads or 0',
    replace: 'bound.any and lib.history_reads or 0',
    judge: { test: 'test/backends/redis-history-places.test.ts' },
  },
  {
    name: 'span-removed-as-it-was-opened',
    says: 'after RETENTION_MS was raised, commands are forgotten by the index before their rows',
    file: 'backends/redis/history-rows.lua',
    find: ' and span.over >= at + row.retentionMs then',
    replace: ' then',
    judge: { test: 'test/backends/redis-history-places.test.ts' },
  },
  {
    name: 'blocks-shown-whole',
    says: 'rows beyond the bound of a stream are shown as long as their block is there',
    file: 'backends/redis/history-pages.ts',
    find: '    const from = beyond === null || backwards ? least : Math.max(least, beyond + 1);',
    replace: '    const from = beyond === null || backwards ? 0 : beyond + 1;',
    judge: { test: 'test/backends/redis-history.test.ts' },
  },
  {
    name: 'stream-forgotten-by-index',
    says: 'a stream is forgotten when it was first due, although it was written since',
    file: 'backends/redis/history.lua',
    find: 'if head and head.at + retentionMs > now then call',
    replace: 'if false then call',
    judge: { test: 'test/contract/redis-history.test.ts' },
  },
  {
    name: 'other-kinds-decoded',
    says: 'the relay decodes every row of a block to find those of a kind',
    file: 'backends/redis/history-rows.ts',
    find: '    if (wanted.kinds !== null && !wanted.kinds.includes(kind)) continue;',
    replace: '',
    judge: { test: 'test/backends/redis-scans.test.ts' },
  },
  {
    name: 'skipped-rows-beyond-budget',
    says: 'a page of messages skips more rows than SCAN_BUDGET',
    file: 'backends/redis/history-pages.ts',
    find: 'const most = Math.min(to - from, SCAN_BUDGET - this.#scanned);',
    replace: 'const most = to - from;',
    judge: { test: 'test/backends/redis-scans.test.ts' },
  },
  {
    name: 'history-read-on',
    says: 'a page of messages is read to its end although its answer was given up',
    file: 'backends/redis/history-pages.ts',
    find: '    asked.page.reading?.check();',
    replace: '',
    judge: { test: 'test/backends/redis-scans.test.ts' },
  },
];
