/**
 * Lists mutants of the HTTP code: copies of the sources that each lack one guard. `npm run mutants` shows that tests
 * notice each missing guard.
 */
import type { GuardMutant } from './mutant.ts';

/** The guard mutants of HTTP: each leaves out one check of requests, users, tokens or sockets. */
export const HTTP_GUARDS: readonly GuardMutant[] = [
  {
    name: 'body-length-late',
    says: 'a body is read as a whole before its length is checked',
    file: 'http/body.ts',
    find: 'if (size <= maxBytes) chunks.push(chunk);',
    replace: 'if (size <= maxBytes * 1e3) chunks.push(chunk);',
    judge: { test: 'test/http/body.test.ts' },
  },
  {
    name: 'sockets-unbounded',
    says: 'one address may hold any number of sockets without a token',
    file: 'http/sockets.ts',
    find: 'ofAddress.size >= perAddress)',
    replace: 'ofAddress.size >= perAddress * 1e6)',
    judge: { test: 'test/http/sockets.test.ts' },
  },
  {
    name: 'new-sockets-refused',
    says: 'a new socket beyond the bound is closed instead of an idle one',
    file: 'http/sockets.ts',
    find: 'const watched = evictable.next();',
    replace: 'const watched = [...this.#open.values()].at(-1);',
    judge: { test: 'test/http/sockets.test.ts' },
  },
  {
    name: 'heads-evicted-first',
    says: 'a socket that is sending its request is evicted like an idle one',
    file: 'http/sockets.ts',
    find: 'return requests === 0 && socket.bytesRead === sent;',
    replace: 'return sent >= 0 && requests >= 0 && socket.bytesRead >= 0;',
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
    name: 'failures-unlimited',
    says: 'an address may show any number of bad tokens',
    file: 'http/auth-rate-limit.ts',
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
    file: 'http/request-handler.ts',
    find: 'if (error instanceof CallboardError) return error;',
    replace: '',
    judge: { fuzz: 'requests', count: 300 },
  },
  {
    name: 'tokens-counted-first',
    says: 'an address that showed bad tokens is refused before its token is compared with configured ones',
    file: 'http/token-guard.ts',
    find: 'const known = await authenticator.recall(token);',
    replace:
      "if (address !== undefined && failures.over(networkOf(address)))\n          throw new CallboardError('rate_limited', 'Too many bad tokens were shown.');\n        const known = await authenticator.recall(token);",
    judge: { test: 'test/http/token-guard.test.ts' },
  },
  {
    name: 'answered-sockets-kept',
    says: 'a socket that was answered for the last time stays open until its peer closes',
    file: 'gateway/reject-upgrade.ts',
    find: 'clock.after(LINGER_MS, () => socket.destroy()),',
    replace: 'clock.after(LINGER_MS, () => {}),',
    judge: { test: 'test/http/sockets.test.ts' },
  },
  {
    name: 'body-rate-off',
    says: 'bodies of requests may have any number of bytes a second',
    file: 'core/shares/byte-rate.ts',
    find: 'const wait = this.#balance >= 0 ? 0 : this.#wait();',
    replace: 'const wait = 0;',
    judge: { test: 'test/http/inbound.test.ts' },
  },
  {
    name: 'host-unchecked',
    says: 'a Host header may be any text',
    file: 'http/request-form.ts',
    find: ': isHost(host))',
    replace: ': true)',
    judge: { test: 'test/http/endpoints.test.ts' },
  },
  {
    name: 'user-length-late',
    says: 'the length of a user id is checked after the text is normalised',
    file: 'core/ids.ts',
    find: "if (text.length > USER_GIVEN_CHARS) fail('invalid_user', USER_FORM);\n  const tidy = text.normalize('NFC').trim();",
    replace:
      "const tidy = text.normalize('NFC').trim();\n  if (text.length > USER_GIVEN_CHARS) fail('invalid_user', USER_FORM);",
    judge: { test: 'test/core/ids.test.ts' },
  },
];
