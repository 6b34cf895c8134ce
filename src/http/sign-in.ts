/** Signs in a page by a one-time code or ticket in its URL, so that a person need not copy a token into the page. */
import { createHash, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto';
import { SignJWT, jwtVerify } from 'jose';
import type { TicketStore } from '../core/auth/principal.ts';
import { CallboardError, fail } from '../core/errors.ts';
import { canonicalUser } from '../core/ids.ts';
import { OPERATOR_TOKEN_SECONDS, SIGN_IN_MS, SIGN_IN_TICKET_SECONDS } from '../core/limits.ts';
import { thenDo } from '../core/maybe-promise.ts';
import type { Clock } from '../core/ports.ts';
import { systemClock } from '../platform/system.ts';
import { sendText } from '../web/reply.ts';
import { parseBody, readBody, type BuiltinRoute, type RequestInfo } from './request-info.ts';
import { digest, signToken } from './tokens.ts';

/** The most bytes of a request body, which has only a code. */
const BODY_BYTES = 1024;

export type SignIn = {
  /** The code of the sign-in URL. It is put into the fragment of the URL, which browsers do not send. */
  readonly code: string;
  /** Creates another code, for the URL of another page. */
  issue(): string;
  /** Returns the token for a code, once, within SIGN_IN_MS; null for any other code and at any other time. */
  redeem(code: string): string | null;
};

/** Creates codes with which a page gets `token`. */
export function createSignIn(token: string, clock: Pick<Clock, 'monotonic'> = systemClock): SignIn {
  /** Until when each code is valid, by `Clock.monotonic`. */
  const codes = new Map<string, number>();
  const issue = (): string => {
    const code = randomBytes(24).toString('base64url');
    codes.set(code, clock.monotonic() + SIGN_IN_MS);
    return code;
  };
  return {
    code: issue(),
    issue,
    redeem(given) {
      let found: string | null = null;
      for (const [code, until] of codes)
        if (timingSafeEqual(digest(given), digest(code)) && clock.monotonic() < until) found = code;
      if (found !== null) codes.delete(found);
      return found === null ? null : token;
    },
  };
}

/** The ways in which codes are exchanged for tokens. */
export type SignInWays = {
  /** Signs in a page on this machine by a code of this process; absent: no such code is accepted. */
  readonly signIn?: SignIn | undefined;
  /** Signs operators in with tickets of any node; absent: no ticket is accepted. */
  readonly tickets?: Pick<TicketDesk, 'redeem'> | undefined;
};

/**
 * Creates the route `POST /sign-in`. It answers `{"code"}` with `{"token"}`, or with 401 if the code is wrong, used or
 * too old. A code of this process is accepted only from a peer on this machine and without a proxy's forwarding
 * headers: behind a proxy on this machine, every peer would seem to be local. A ticket is signed, so it is accepted
 * from anywhere.
 */
export function createSignInRoute({ signIn, tickets }: SignInWays): BuiltinRoute {
  return {
    authentication: 'by-route',
    methods: ['POST'],
    label: 'builtin',
    handle(info) {
      const code = readBody(info.request, BODY_BYTES, { use: (bytes) => bytes && codeOf(bytes) });
      return thenDo(code, async (given = '') => {
        const isTicket = given.includes('.');
        if (!isTicket && !isLocal(info))
          fail('forbidden', 'This link signs a page in only on the machine of the relay.');
        const token = isTicket ? ((await tickets?.redeem(given)) ?? null) : (signIn?.redeem(given) ?? null);
        if (token === null) throw new CallboardError('unauthenticated', 'The link was used already, or is too old.');
        sendText(info.response, 200, 'application/json', JSON.stringify({ token }));
      });
    },
  };
}

function codeOf(bytes: Buffer): string {
  const body: unknown = JSON.parse(parseBody(bytes));
  const code = typeof body === 'object' && body !== null && 'code' in body ? body.code : undefined;
  if (typeof code !== 'string') fail('invalid_argument', 'The body must be an object with the text "code".');
  return code;
}

/** Whether the request comes from this machine, and not through a proxy that says so. */
export function isLocal({ request }: RequestInfo): boolean {
  const { 'x-forwarded-for': forwardedFor, forwarded } = request.headers;
  const address = request.socket.remoteAddress ?? '';
  return forwardedFor === undefined && forwarded === undefined && /^(::1|(::ffff:)?127\.[\d.]+)$/.test(address);
}

// Signs and redeems one-time tickets, which sign an operator in on any node of a deployment. The signing key is derived
// from the deployment's secret, so a ticket is never accepted as a bearer token, nor a bearer token as a ticket.

const ISSUER = 'callboard:sign-in';

/** Signs a ticket for an administrator of this name. It is valid for SIGN_IN_TICKET_SECONDS. */
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
  readonly issuer?: string | null;
  readonly audience?: string | null;
};

export interface TicketDesk {
  /**
   * Exchanges a ticket for an administrator's token, once; null if it is invalid, expired or used. Throws
   * `store_unavailable` if the store cannot say whether the ticket was used; the ticket can then be redeemed later.
   */
  redeem(ticket: string): Promise<string | null>;
  /** Accepts only tickets of these secrets from now on. */
  replace(credentials: Pick<TicketCredentials, 'secret' | 'previousSecret'>): void;
}

/** Creates the object that redeems tickets. `now`: the clock by which tokens expire, in epoch milliseconds. */
export function createTicketDesk(given: TicketCredentials, tickets: TicketStore, now: () => number): TicketDesk {
  let credentials = given;
  return {
    async redeem(ticket) {
      const { secret, previousSecret, issuer = null, audience = null } = credentials;
      const secrets = [secret, previousSecret].filter((text) => typeof text === 'string');
      for (const key of secrets) {
        const found = await read(ticket, key, now());
        if (found === null || typeof secret !== 'string') continue;
        // Used tickets are remembered a little longer than they are valid, because the clocks of nodes differ.
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

/** Digests the id of a ticket: the ticket's text can be changed without breaking the signature. */
function ticketDigest(id: string): string {
  return createHash('sha256').update(id).digest('hex').slice(0, 32);
}

function keyOf(secret: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', secret, '', ISSUER, 32));
}
