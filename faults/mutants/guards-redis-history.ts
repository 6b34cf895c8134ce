/**
 * Lists mutants of history over Redis: copies of the sources that each lack one guard. `npm run mutants` shows that
 * tests notice each missing guard.
 */
import type { GuardMutant } from './mutant.ts';

const HISTORY = 'backends/redis/history';

/** The guard mutants of history over Redis: each leaves out one check of its Lua libraries or of their readers. */
export const REDIS_HISTORY_GUARDS: readonly GuardMutant[] = [
  {
    name: 'block-trimmed-by-entry',
    says: 'a block is removed although its last rows are within the bound of the stream',
    file: `${HISTORY}/lib-history-blocks.lua`,
    find: '          return trimmed and keep.id, false',
    replace: '          return block.id, false',
    judge: { test: 'test/contract/redis-history.test.ts' },
  },
  {
    name: 'place-outlives-its-row',
    says: 'the index of commands keeps the places of rows that were removed',
    file: `${HISTORY}/lib-history-blocks.lua`,
    find: '  if oldest then lib.history_remove_places',
    replace: '  if false then lib.history_remove_places',
    judge: { test: 'test/backends/redis-history-places.test.ts' },
  },
  {
    name: 'span-removed-as-it-was-opened',
    says: 'after RETENTION_MS was raised, commands are forgotten by the index before their rows',
    file: `${HISTORY}/lib-history-spans.lua`,
    find: ' and span.over >= at + row.retentionMs then',
    replace: ' then',
    judge: { test: 'test/backends/redis-history-places.test.ts' },
  },
  {
    name: 'blocks-shown-whole',
    says: 'rows beyond the bound of a stream are shown as long as their block is there',
    file: `${HISTORY}/messages.ts`,
    find: '    if (seq < least) return false;',
    replace: '',
    judge: { test: 'test/contract/redis-history.test.ts' },
  },
  {
    name: 'stream-forgotten-by-index',
    says: 'a stream is forgotten when it was first due, although it was written since',
    file: `${HISTORY}/lib-history.lua`,
    find: 'if head and head.at + retentionMs > now then call',
    replace: 'if false then call',
    judge: { test: 'test/contract/redis-history.test.ts' },
  },
];
