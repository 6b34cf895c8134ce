/** Issues grant tokens and tickets, and resolves them to their holders. Stores contain only their digests. */
import type { GrantPrincipal, Requester, Scope } from '../auth/principal.ts';
import type { Bus } from '../backend.ts';
import type { Deps } from '../deps.ts';
import { fail } from '../errors.ts';
import { SESSION_TICKETS, TICKET_MS } from '../limits.ts';
import { sessionAccessOf, requireAllowed, findSession } from './session-access.ts';
import type { RedeemedTicket } from './site-requests.ts';
import { OWNER_GRANT, isGrantLive } from './site-session.ts';

export const GRANT = 'cbg_';
const TICKET = 'cbt_';
/** The length of the random text at the end of a token, in characters. */
const SECRET_CHARS = 43;
const SECRET = /^cb[gt]_[A-Za-z0-9_-]{43,80}$/;

/** Whether a bearer token has the format of a grant's token. No other token has this format. */
export function isGrantToken(token: string): boolean {
  return token.startsWith(GRANT) && SECRET.test(token);
}

type TokenDeps = Pick<Deps, 'backend' | 'crypto'>;

/** Makes a token, which is shown only once, and its digest, which is stored. */
export function newToken({ backend, crypto }: TokenDeps, form: typeof GRANT | typeof TICKET, userId: string) {
  const token = form + backend.sessions.prefixOf(userId) + crypto.randomToken();
  return { token, tokenHash: digestOf(crypto, token) };
}

/**
 * Returns the digest of a token in the form in which it is stored: the prefix by which the store finds it, then the
 * SHA-256 of the token.
 */
function digestOf(crypto: TokenDeps['crypto'], token: string): string {
  return token.slice(GRANT.length, -SECRET_CHARS) + crypto.sha256(token);
}

/** Creates the API that issues tickets, and resolves tickets and grant tokens to their holders. */
export function createTokens(deps: Deps) {
  const { backend, clock, crypto } = deps;
  const nextOrder = createOrder(deps);
  return {
    /**
     * Issues a ticket for one `EventSource`, so that the URL contains no token. The ticket must be redeemed within
     * TICKET_MS; afterwards it is valid for reconnects. Throws the code with which `sessionPolicy` refuses.
     */
    async ticket(requester: Requester, sessionId: string) {
      const access = await sessionAccessOf(deps, requester, { sessionId, scope: 'invoke' });
      if (!access || !requester) return null;
      requireAllowed(deps, access, { kind: 'subscribe', names: null });
      const { token, tokenHash } = newToken(deps, TICKET, access.session.userId);
      const { grantId } = access.grant;
      const ticket = { sessionId, grantId, holderExpiresAt: requester.expiresAt, ttlMs: TICKET_MS };
      const result = await backend.sessions.putTicket(tokenHash, ticket);
      if (result.kind === 'put') return { ticket: token, expiresAt: result.expiresAt };
      if (result.kind === 'gone') fail('session_inactive', 'The session is over.');
      return fail('capacity_exceeded', `A session may have at most ${SESSION_TICKETS} unused tickets.`, {
        retryAfterMs: TICKET_MS,
      });
    },
    /**
     * Redeems a ticket: the first time within TICKET_MS, and then again for as long as its session is stored, and its
     * taker's grant and token are valid. Throws `unauthenticated` otherwise, and for a ticket of another session. Does
     * not check whether the session is over; subscribing checks this.
     */
    async redeem(sessionId: string, token: string): Promise<RedeemedTicket> {
      const form = token.startsWith(TICKET) && SECRET.test(token);
      const ticket = form ? await backend.sessions.redeemTicket(digestOf(crypto, token)) : null;
      const session = ticket && (await findSession(deps, ticket.sessionId));
      if (!session || ticket.sessionId !== sessionId) return badTicket();
      const { grantId, holderExpiresAt: expiresAt } = ticket;
      if (expiresAt !== null && expiresAt <= clock.now()) badTicket();
      const occupy = occupierOf(backend.bus, digestOf(crypto, token), nextOrder);
      if (grantId === OWNER_GRANT) {
        const scopes: ReadonlySet<Scope> = new Set<Scope>(['invoke']);
        return { principal: { kind: 'user', userId: session.userId, scopes, expiresAt }, occupy };
      }
      const grant = session.grants.find((one) => one.grantId === grantId);
      if (!grant || !isGrantLive(grant, clock.now())) badTicket();
      const ownerId = session.userId;
      return { principal: { kind: 'grant', sessionId, grantId, ownerId, expiresAt: grant.expiresAt }, occupy };
    },
    /** Returns the principal of a grant's token. Throws `unauthenticated`. */
    async holder(token: string): Promise<GrantPrincipal> {
      const found = isGrantToken(token) ? await backend.sessions.findByToken(digestOf(crypto, token)) : null;
      if (!found) return fail('unauthenticated', 'The token is not valid.', { tokenFault: 'grant' });
      const { grant, session } = found;
      if (!isGrantLive(grant, clock.now())) fail('unauthenticated', 'The grant is over.', { tokenFault: 'grant' });
      const { grantId, expiresAt } = grant;
      return { kind: 'grant', sessionId: session.sessionId, grantId, ownerId: session.userId, expiresAt };
    },
  };
}

/**
 * Creates the function `occupy` of a ticket. If streams with the same ticket are opened on two nodes at the same time,
 * the one with the greater text from `nextOrder` stays open.
 */
function occupierOf(bus: Bus, ticketHash: string, nextOrder: () => string): RedeemedTicket['occupy'] {
  return (onReplaced) => {
    const topic = `ticket:${ticketHash}` as const;
    const own = nextOrder();
    bus.publish(topic, own);
    const stop = bus.subscribe(topic, (other) => {
      if (other <= own) return;
      stop();
      onReplaced();
    });
    return stop;
  };
}

/**
 * Creates a function that returns texts which sort by the time of the call. On one node the order is exact; between
 * nodes it is as exact as their clocks.
 */
function createOrder({ clock, crypto }: Deps): () => string {
  let at = 0;
  let count = 0;
  return () => {
    at = Math.max(at, clock.now());
    return `${String(at).padStart(16, '0')} ${String(count++).padStart(16, '0')} ${crypto.randomId()}`;
  };
}

function badTicket(): never {
  fail('unauthenticated', 'The ticket is not valid or has expired.', { tokenFault: 'ticket' });
}
