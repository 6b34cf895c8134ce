/**
 * Lists mutants of the code of shares (the limits of what one user may hold): copies of the sources that each lack one
 * guard. `npm run mutants` shows that tests notice this.
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
    judge: { test: 'test/backends/queued-params.test.ts' },
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
