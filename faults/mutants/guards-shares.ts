/**
 * Lists mutants of the code of shares (the limits of what one user may hold): copies of the sources that each lack one
 * guard. `npm run mutants` shows that tests notice each missing guard.
 */
import type { GuardMutant } from './mutant.ts';

/** The guard mutants of shares: each leaves out one bound on what a user may hold. */
export const SHARES_GUARDS: readonly GuardMutant[] = [
  {
    name: 'shares-off',
    says: 'no user counts as being over their guarantee',
    file: 'core/shares/shares.ts',
    find: 'const beyond = held + amount > guarantee;',
    replace: 'const beyond = held + amount > guarantee * 1e9;',
    judge: { test: 'test/core/shares.test.ts' },
  },
  {
    name: 'waits-uncounted',
    says: 'a user may have any number of calls that wait',
    file: 'core/rpc/correlator.ts',
    find: "holdings.take('waits', 1);",
    replace: '',
    judge: { test: 'test/core/shares-waits.test.ts' },
  },
  {
    name: 'params-uncounted',
    says: 'params of commands that wait are not counted',
    file: 'backends/memory/commands-params.ts',
    find: "entry.client.holdings.take('queued_bytes', entry.paramsBytes);",
    replace: '',
    judge: { test: 'test/contract/shares.memory.test.ts' },
  },
  {
    name: 'params-uncounted-in-redis',
    says: 'params of commands that wait are not counted over Redis',
    file: 'backends/redis/commands/admit.lua',
    find: "if rec.queuedBytes then lib.shares_take('q', rec.uh, tonumber(rec.queuedBytes)) end",
    replace: '',
    judge: { test: 'test/contract/redis-shares.test.ts' },
  },
  {
    name: 'params-kept-counted-in-redis',
    says: 'params of a command that the relay marks by prediction stay counted',
    file: 'backends/redis/commands/mark.lua',
    find: "if a[8] ~= '' then lib.shares_take('q', a[9], -tonumber(a[8])) end",
    replace: '',
    judge: { test: 'test/backends/redis-predicted.test.ts' },
  },
  {
    name: 'span-not-given-back',
    says: 'what was counted for a span of results or ids stays counted once the span is removed',
    file: 'backends/redis/commands/lib-spans.lua',
    find: 'if counted then lib.shares_return(counted, uh, name) end',
    replace: '',
    judge: { test: 'test/contract/redis-shares.test.ts' },
  },
  {
    name: 'removed-blocks-counted',
    says: 'the bytes of blocks that are removed from a stream stay counted',
    file: 'backends/redis/history/lib-history-blocks.lua',
    find: 'info.bytes - keep.bytes',
    replace: 'info.bytes',
    judge: { test: 'test/backends/redis-history-bytes.test.ts' },
  },
  {
    name: 'history-unbounded-in-redis',
    says: 'Redis keeps the rows of a user who floods history',
    file: 'backends/redis/history/lib-history-bytes.lua',
    find: "if lib.shares_held('h') <= row.shares[2] then return end",
    replace: "if lib.shares_held('h') >= 0 then return end",
    judge: { test: 'test/contract/redis-shares.test.ts' },
  },
  {
    name: 'results-unbounded-in-redis',
    says: 'Redis keeps every result, however much its user holds',
    file: 'backends/redis/commands/lib-ended.lua',
    find: "if lib.shares_refusal(settings.shares.r, 'r', rec.uh, #result) then return lib.ended_no_room end",
    replace: '',
    judge: { test: 'test/contract/redis-shares.test.ts' },
  },
  {
    name: 'advertised-uncounted',
    says: 'advertisements and contexts are not counted',
    file: 'core/delivery/advertised.ts',
    find: "if (bytes > 0) holdings.take('advertised_bytes', bytes);",
    replace: 'if (bytes > 0) return;',
    judge: { test: 'test/core/shares-advertised.test.ts' },
  },
  {
    name: 'unread-uncounted',
    says: 'unread bytes are not counted',
    file: 'http/unread.ts',
    find: "if (bytes > reader.bytes) holdings.take('unread_bytes', bytes - reader.bytes);",
    replace: 'if (bytes > reader.bytes) return;',
    judge: { test: 'test/http/unread.test.ts' },
  },
  {
    name: 'claims-always-granted',
    says: 'a claim is granted even if the share is used up',
    file: 'core/shares/shares.ts',
    find: 'if (refusal) fail(refusal, SHARE_MESSAGE[refusal], { share });',
    replace: '',
    judge: { test: 'test/core/shares.test.ts' },
  },
  {
    name: 'unread-uncut',
    says: 'a user over the share of unread bytes keeps all sockets',
    file: 'http/unread.ts',
    find: 'if (reader.holdings && mayCut(reader.holdings)) this.#cut(socket, reader);',
    replace: '',
    judge: { test: 'test/http/unread.test.ts' },
  },
];
