/**
 * Lists mutants of the code of links: copies of the sources that each lack one guard. `npm run mutants` shows that
 * tests notice each missing guard.
 */
import type { GuardMutant } from './mutant.ts';

/** The guard mutants of links: each leaves out one check of frames or links. */
export const LINKS_GUARDS: readonly GuardMutant[] = [
  {
    name: 'no-frame-rate',
    says: 'a link may send any number of unsolicited frames',
    file: 'core/rates.ts',
    find: 'if (this.#tokens >= 1 - ROUNDING) {',
    replace: 'if (this.#tokens >= -1e9) {',
    judge: { test: 'test/gateway/frame-limits.test.ts' },
  },
  {
    name: 'no-bad-frames',
    says: 'a link may send any number of bad frames',
    file: 'gateway/socket.ts',
    find: 'most: BAD_FRAMES - 1,',
    replace: 'most: BAD_FRAMES * 1e6,',
    judge: { test: 'test/gateway/frame-limits.test.ts' },
  },
  {
    name: 'no-byte-rate',
    says: 'a link may send any number of bytes a second',
    file: 'core/rates.ts',
    find: 'return this.#tokens >= 0 ? 0 : this.#debtMs();',
    replace: 'return 0;',
    judge: { test: 'test/core/byte-rate.test.ts' },
  },
  {
    name: 'lost-said-to-be-closed',
    says: 'a link whose socket ended without a close frame is shown as closed by its client',
    file: 'gateway/close.ts',
    find: "if (error === null) return 'lost';",
    replace: "if (error === null) return 'client_closed';",
    judge: { test: 'test/gateway/closing.test.ts' },
  },
  {
    name: 'reset-said-to-be-lost',
    says: 'a reset is shown as an end of the socket',
    file: 'gateway/link.ts',
    find: 'causeOfSocket(this.#socket.errored)',
    replace: 'causeOfSocket(null)',
    judge: { test: 'test/gateway/closing.test.ts' },
  },
  {
    name: 'progress-of-the-end',
    says: 'the update of an end carries the progress of an earlier report',
    file: 'core/commands/operator.ts',
    find: 'if (progress !== null && isTerminal(command)) {',
    replace: 'if (false) {',
    judge: { test: 'test/core/delivery.test.ts' },
  },
  {
    name: 'silence-of-a-client-that-left',
    says: 'a client that has left is announced as silent',
    file: 'core/commands/link-session.ts',
    find: ' || connection.disconnectedAt !== null) return;',
    replace: ') return;',
    judge: { test: 'test/core/silent-links.test.ts' },
  },
  {
    name: 'leaving-unbounded',
    says: 'a client may keep any number of leaving links',
    file: 'core/commands/link-queues.ts',
    find: 'leaving.length > LEAVING_LINKS ?',
    replace: 'leaving.length > LEAVING_LINKS * 1e6 ?',
    judge: { test: 'test/core/leaving.test.ts' },
  },
  {
    name: 'leaving-elsewhere-unasked',
    says: 'the commands of a client that leaves another node are given up after five seconds',
    file: 'core/commands/link-session.ts',
    find: "return command.nodeId === null || command.nodeId === parts.deps.nodeId ? 'gone' : 'elsewhere';",
    replace: "return 'gone';",
    judge: { test: 'test/core/leaving-nodes.test.ts' },
  },
  {
    name: 'links-never-paused',
    says: 'a link over its rate in bytes is read on',
    file: 'gateway/link.ts',
    find: 'if (wait > 0 && !this.#over && this.#cancel === null) this.#pause(wait);',
    replace: '',
    judge: { test: 'test/gateway/inbound.test.ts' },
  },
  {
    name: 'closing-ignored',
    says: 'a client that sends closing gets no answer and stays bound',
    file: 'gateway/router.ts',
    find: 'return this.#leave();',
    replace: 'return undefined;',
    judge: { test: 'test/gateway/leaving.test.ts' },
  },
  {
    name: 'silence-unsaid',
    says: 'answers that depend on a silent node claim to be complete',
    file: 'core/page.ts',
    find: 'if (nodes.length === 0) return NONE;',
    replace: 'if (nodes.length >= 0) return NONE;',
    judge: { test: 'test/core/silence.test.ts' },
  },
  {
    name: 'silence-unseen',
    says: 'a node without beats is never silent',
    file: 'backends/memory/commands.ts',
    find: 'if (updatedAt <= since)',
    replace: 'if (updatedAt < 0 && updatedAt <= since)',
    judge: { test: 'test/contract/delivery.memory.test.ts' },
  },
];
