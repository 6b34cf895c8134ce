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
    name: 'sockets-unbounded',
    says: 'one address may hold any number of sockets without a token',
    file: 'http/sockets.ts',
    find: 'held >= perAddress)',
    replace: 'held >= perAddress * 1e6)',
    judge: { test: 'test/http/sockets.test.ts' },
  },
  {
    name: 'unread-forever',
    says: 'a peer that reads nothing of its answer is never cut',
    file: 'http/sockets.ts',
    find: 'now - watched.stalledSince >= READ_NOTHING_MS',
    replace: 'now - watched.stalledSince >= READ_NOTHING_MS * 1e6',
    judge: { test: 'test/http/sockets.test.ts' },
  },
  {
    name: 'no-byte-rate',
    says: 'a link may send any number of bytes a second',
    file: 'core/shares/byte-rate.ts',
    find: 'return this.#balance >= 0 ? 0 : this.#wait();',
    replace: 'return 0;',
    judge: { test: 'test/core/byte-rate.test.ts' },
  },
  {
    name: 'failures-unlimited',
    says: 'an address may show any number of bad tokens',
    file: 'http/failures.ts',
    find: 'if (window.count > FAILURES_A_MINUTE) return left(window);',
    replace: '',
    judge: { test: 'test/http/token-guard.test.ts' },
  },
  {
    name: 'good-tokens-limited',
    says: 'an address that showed bad tokens is refused with good ones too',
    file: 'http/token-guard.ts',
    find: 'return failures.over(address) ? await queue.run(address, work) : await work();',
    replace:
      "if (failures.over(address)) throw new CallboardError('rate_limited', 'Too many bad tokens were shown.');\n      return await work();",
    judge: { neighbours: 'bad-tokens', seconds: 4 },
  },
  {
    name: 'codes-masked',
    says: 'a refusal is shown as the relay’s fault',
    file: 'http/front.ts',
    find: 'if (error instanceof CallboardError) return error;',
    replace: '',
    judge: { fuzz: 'requests', count: 300 },
  },
  {
    name: 'leaving-unbounded',
    says: 'a client may keep any number of links that leave',
    file: 'core/delivery/outlets.ts',
    find: 'leaving.length > LEAVING_LINKS ?',
    replace: 'leaving.length > LEAVING_LINKS * 1e6 ?',
    judge: { test: 'test/core/leaving.test.ts' },
  },
  {
    name: 'shares-off',
    says: 'nobody is over their guarantee',
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
    says: 'params of commands that wait count for nothing',
    file: 'backends/memory/commands-params.ts',
    find: "entry.client.holdings.take('queued_bytes', entry.paramsBytes);",
    replace: '',
    judge: { test: 'test/backends/queued-params.test.ts' },
  },
  {
    name: 'advertised-uncounted',
    says: 'advertisements and contexts count for nothing',
    file: 'core/delivery/advertised.ts',
    find: "if (bytes > 0) holdings.take('advertised_bytes', bytes);",
    replace: 'if (bytes > 0) return;',
    judge: { test: 'test/core/shares-advertised.test.ts' },
  },
  {
    name: 'unread-uncounted',
    says: 'what nobody reads counts for nothing',
    file: 'http/unread.ts',
    find: "if (bytes > reader.bytes) holdings.take('unread_bytes', bytes - reader.bytes);",
    replace: 'if (bytes > reader.bytes) return;',
    judge: { test: 'test/http/unread.test.ts' },
  },
  {
    name: 'marks-dropped',
    says: 'a record that is given up leaves no mark, so its id runs again',
    file: 'backends/memory/ledger-ended.ts',
    find: 'this.#marks.add(command, command.digest, { mark, owner: user });',
    replace: '',
    judge: { test: 'test/backends/ended-shares.test.ts' },
  },
];
