/** A link that signs one page on this machine in, once, so that nobody has to copy a token into it. */
import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../core/clock.ts';
import { CallboardError, fail } from '../core/errors.ts';
import { SIGN_IN_MS } from '../core/limits.ts';
import { thenDo } from '../core/maybe-promise.ts';
import { systemClock } from '../platform/clock.ts';
import { parseBody, readBody } from './body.ts';
import type { BuiltinRoute } from './builtin-route.ts';
import type { RequestInfo } from './request-info.ts';

const BODY_BYTES = 1024;

export type SignIn = {
  /** The code of the link. It belongs into the fragment of a URL, which browsers do not send. */
  readonly code: string;
  /** The token for this code, the first time within SIGN_IN_MS; null for any other code and at any other time. */
  redeem(code: string): string | null;
};

/** Creates the code with which a page gets `token`. */
export function createSignIn(token: string, clock: Pick<Clock, 'now'> = systemClock): SignIn {
  const code = randomBytes(24).toString('base64url');
  const until = clock.now() + SIGN_IN_MS;
  let used = false;
  return {
    code,
    redeem(given) {
      if (used || clock.now() >= until || !timingSafeEqual(digest(given), digest(code))) return null;
      used = true;
      return token;
    },
  };
}

/**
 * `POST /sign-in` with `{"code"}` answers `{"token"}` to a peer on this machine, and 401 if the code is wrong, used or
 * too old. Requests through a proxy are refused, since every peer of a proxy would appear to be on its machine.
 */
export function createSignInRoute(signIn: SignIn): BuiltinRoute {
  return {
    authentication: 'by-route',
    methods: ['POST'],
    label: 'house',
    handle(info) {
      if (!isLocal(info)) fail('forbidden', 'A page can be signed in only on the machine of the relay.');
      const code = readBody(info.request, BODY_BYTES, { parse: codeOf });
      return thenDo(code, (given) => {
        const token = given === undefined ? null : signIn.redeem(given);
        if (token === null) throw new CallboardError('unauthenticated', 'The link was used already, or is too old.');
        const text = JSON.stringify({ token });
        info.response.writeHead(200, {
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(text),
          'cache-control': 'no-store',
        });
        info.response.end(text);
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

function isLocal({ request }: RequestInfo): boolean {
  const { 'x-forwarded-for': forwardedFor, forwarded } = request.headers;
  const address = request.socket.remoteAddress ?? '';
  return forwardedFor === undefined && forwarded === undefined && /^(::1|(::ffff:)?127\.[\d.]+)$/.test(address);
}

function digest(text: string): Buffer {
  return hash('sha256', text, 'buffer');
}
