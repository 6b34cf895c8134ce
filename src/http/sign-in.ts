/** Signs in a page by a one-time code or ticket in the page's URL, so that nobody has to copy a token into the page. */
import { randomBytes, timingSafeEqual } from 'node:crypto';
import { CallboardError, fail } from '../core/errors.ts';
import { SIGN_IN_MS } from '../core/limits.ts';
import { thenDo } from '../core/maybe-promise.ts';
import type { Clock } from '../core/ports.ts';
import { systemClock } from '../platform/system.ts';
import { sendText } from '../web/reply.ts';
import type { BuiltinRoute } from './builtin-route.ts';
import { parseBody, readBody } from './request-body.ts';
import type { RequestInfo } from './request-info.ts';
import { digest } from './secret-digest.ts';
import type { TicketDesk } from './sign-in-tickets.ts';

/** The maximum size of a request body, which contains only a code or ticket. */
const BODY_BYTES = 1024;

export type SignIn = {
  /** The code of the sign-in URL. It is in the URL's fragment, which browsers do not send. */
  readonly code: string;
  /** Creates a new code, for the URL of another page. */
  issue(): string;
  /** Returns the token for a code, once and within SIGN_IN_MS. Null for a used, expired or unknown code. */
  redeem(code: string): string | null;
};

/** Creates the object that exchanges codes for `token`. */
export function createSignIn(token: string, clock: Pick<Clock, 'monotonic'> = systemClock): SignIn {
  /** The time until which each code is valid, by `Clock.monotonic`. */
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
  /** Signs in a page on this machine with a code of this process; absent: such codes are not accepted. */
  readonly signIn?: SignIn | undefined;
  /** Signs operators in with tickets of any node; absent: tickets are not accepted. */
  readonly tickets?: Pick<TicketDesk, 'redeem'> | undefined;
};

/**
 * Creates the route `POST /sign-in`. It answers `{"code"}` with `{"token"}`, or with 401 if the code is wrong, used or
 * expired. A code of this process is accepted only from a peer on this machine whose request has no forwarding headers
 * of a proxy: all peers of a proxy on this machine would otherwise seem to be local. A ticket is signed, so it is
 * accepted from anywhere.
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

/** Whether the request comes from this machine and has no forwarding headers of a proxy. */
export function isLocal({ request }: RequestInfo): boolean {
  const { 'x-forwarded-for': forwardedFor, forwarded } = request.headers;
  const address = request.socket.remoteAddress ?? '';
  return forwardedFor === undefined && forwarded === undefined && /^(::1|(::ffff:)?127\.[\d.]+)$/.test(address);
}
