/**
 * Lists mutants of revocations: copies of the sources that each lack one guard. `npm run mutants` shows that tests
 * notice each missing guard.
 */
import type { GuardMutant } from './mutant.ts';

const RELAY = { test: 'test/relay/revocations.test.ts' };
const COVERED = { test: 'test/core/revocations.test.ts' };
const QUESTIONS = { test: 'test/core/node-questions.test.ts' };

/** The guard mutants of revocations: each lets something that is revoked go on. */
export const REVOCATION_GUARDS: readonly GuardMutant[] = [
  {
    name: 'revoked-token-recalled',
    says: 'a token that was verified before it was revoked is accepted while it is remembered',
    file: 'http/authenticate-request.ts',
    find: '(known && isUsable(known) ? known : null)',
    replace: 'known',
    judge: RELAY,
  },
  {
    name: 'revoked-links-stay',
    says: 'a revocation leaves the links that are open',
    file: 'gateway/gateway.ts',
    find: 'for (const link of links) if (link.endIfRevoked(isCovered)) ended++;',
    replace: 'void isCovered;',
    judge: RELAY,
  },
  {
    name: 'revoked-link-welcomed',
    says: 'a link is welcomed although its token was revoked while it opened',
    file: 'gateway/link.ts',
    find: 'if (isRevoked) return this.#pending ?? undefined;',
    replace: 'void isRevoked;',
    also: [
      {
        file: 'gateway/link.ts',
        find: 'const isRevoked = this.endIfRevoked((token, clientId) => services.core.revocations.find(token, clientId) !== null);',
        replace: 'const isRevoked = false;',
      },
    ],
    judge: { test: 'test/gateway/hello.test.ts' },
  },
  {
    name: 'revoked-streams-stay',
    says: 'a revocation leaves the event streams that are open',
    file: 'http/sockets.ts',
    find: 'if (requester !== by) socket.destroy();',
    replace: 'if (requester === null) socket.destroy();',
    judge: RELAY,
  },
  {
    name: 'revoked-client-connects',
    says: 'a client that was revoked connects again',
    file: 'gateway/hello.ts',
    find: `  requireNotRevoked(services, principal, clientId);
  requireDevice(`,
    replace: '  requireDevice(',
    judge: RELAY,
  },
  {
    name: 'revoked-queue-runs',
    says: 'what was queued with a revoked token is dispatched',
    file: 'core/revocations/revocations.ts',
    find: 'if (!coversCaller(revocation, command.caller)) continue;',
    replace: 'if (coversCaller(revocation, command.caller)) continue;',
    judge: RELAY,
  },
  {
    name: 'revoked-for-others',
    says: 'a user revokes the tokens of another one',
    file: 'core/revocations/revocations.ts',
    find: 'if (target.userId !== null && target.userId !== revoker.userId) notFound();',
    replace: 'void notFound;',
    judge: RELAY,
  },
  {
    name: 'undated-token-survives',
    says: 'a token that does not say when it was issued is covered by no time',
    file: 'core/revocations/revocation.ts',
    find: 'issuedAt === null || issuedAt < issuedBefore',
    replace: '(issuedAt !== null && issuedAt < issuedBefore)',
    judge: COVERED,
  },
  {
    name: 'answer-overtakes-output',
    says: 'a relay says that it has ended the links of a token while its sockets still hold frames back for them',
    file: 'core/commands/node-questions.ts',
    find: 'await outputReleased(backend);',
    replace: '',
    judge: QUESTIONS,
  },
  {
    name: 'silent-part-left-uncancelled',
    says: 'a part of the store that was silent is not asked again to cancel what is revoked',
    file: 'core/store-parts.ts',
    find: 'for (const part of late) again(part);',
    replace: 'void again;',
    judge: COVERED,
  },
];
