/**
 * Signs and redeems one-time tickets, with which an operator signs in on any node of a deployment. The key that signs
 * tickets is derived from the deployment's secret. A ticket is therefore never accepted as a bearer token, and a bearer
 * token never as a ticket.
 */
import { createHash, hkdfSync, randomBytes } from 'node:crypto';
import { SignJWT, jwtVerify } from 'jose';
import type { TicketStore } from '../core/auth/ticket-store.ts';
import { canonicalUser } from '../core/ids.ts';
import { OPERATOR_TOKEN_SECONDS, SIGN_IN_TICKET_SECONDS } from '../core/limits.ts';
import { type Names, signToken } from './tokens.ts';

const ISSUER = 'callboard:sign-in';

/** Signs a ticket for an administrator with this name. The ticket is valid for SIGN_IN_TICKET_SECONDS. */
export function signTicket({ secret, name, now }: { secret: string; name: string; now: number }): Promise<string> {
  const issued = Math.floor(now / 1000);
  return new SignJWT({})
    .setProtectedHeader({ alg: 'HS256', typ: 'sign-in' })
    .setIssuer(ISSUER)
    .setSubject(canonicalUser(name))
    .setJti(randomBytes(16).toString('base64url'))
    .setIssuedAt(issued)
    .setExpirationTime(issued + SIGN_IN_TICKET_SECONDS)
    .sign(keyOf(secret));
}

type TicketCredentials = {
  readonly secret?: string | null;
  /** A second secret that is accepted while the secret is being replaced; null: none. */
  readonly previousSecret?: string | null;
  readonly issuer?: Names;
  readonly audience?: Names;
};

export interface TicketDesk {
  /**
   * Exchanges a ticket for an administrator's token, once. Null if the ticket is invalid, expired or used. Throws
   * `store_unavailable` if the store cannot say whether the ticket was used; the ticket can then be redeemed later.
   */
  redeem(ticket: string): Promise<string | null>;
  /** From now on accepts only tickets signed with these secrets. */
  replace(credentials: Pick<TicketCredentials, 'secret' | 'previousSecret'>): void;
}

/**
 * Creates the object that redeems tickets. `now`: the clock by which tickets and tokens expire, in epoch milliseconds.
 */
export function createTicketDesk(given: TicketCredentials, tickets: TicketStore, now: () => number): TicketDesk {
  let credentials = given;
  return {
    async redeem(ticket) {
      const { secret, previousSecret, issuer = null, audience = null } = credentials;
      const secrets = [secret, previousSecret].filter((text) => typeof text === 'string');
      for (const key of secrets) {
        const found = await read(ticket, key, now());
        if (found === null || typeof secret !== 'string') continue;
        // Used tickets are remembered for a minute longer than tickets are valid, because the clocks of nodes differ.
        const ttlMs = (SIGN_IN_TICKET_SECONDS + 60) * 1000;
        if (!(await tickets.take(ticketDigest(found.id), ttlMs))) return null;
        const ttlSeconds = OPERATOR_TOKEN_SECONDS;
        return signToken({ secret, user: found.name, scopes: ['admin'], ttlSeconds, now: now(), issuer, audience });
      }
      return null;
    },
    replace: (next) => void (credentials = { ...credentials, ...next }),
  };
}

/** Returns the content of a valid ticket; null for any other text. */
async function read(ticket: string, secret: string, now: number) {
  try {
    const currentDate = new Date(now);
    const rules = { algorithms: ['HS256'], issuer: ISSUER, requiredClaims: ['exp', 'jti', 'sub'], currentDate };
    const { sub = '', jti = '' } = (await jwtVerify(ticket, keyOf(secret), rules)).payload;
    return { name: canonicalUser(sub), id: jti };
  } catch {
    return null;
  }
}

/** Digests the id of a ticket rather than its text, because the text can be changed without breaking the signature. */
function ticketDigest(id: string): string {
  return createHash('sha256').update(id).digest('hex').slice(0, 32);
}

function keyOf(secret: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', secret, '', ISSUER, 32));
}
