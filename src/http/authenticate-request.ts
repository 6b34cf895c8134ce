/**
 * Takes the bearer token from a request and authenticates it, including tokens of grants and revoked tokens. It checks
 * no permissions; handlers and core do.
 */
import type { Principal } from '../core/auth/principal.ts';
import type { Core, Sites } from '../core/core.ts';
import { CallboardError, fail } from '../core/errors.ts';
import { type MaybePromise, orElse, thenDo } from '../core/maybe-promise.ts';
import { isGrantToken } from '../core/sites/grant-tokens.ts';
import type { HttpRequest } from '../web/request.ts';
import { badToken, type BearerAuthenticator } from './authenticator.ts';
import type { RequestInfo } from './request-info.ts';
import type { Sockets } from './sockets.ts';

/** Authenticates a request. Must be called once per request. Null: the request has no token. */
export type AuthenticateRequest = (info: RequestInfo) => MaybePromise<Principal | null>;

/**
 * Reads the token only from `Authorization: Bearer`, never from cookies or the query. Throws `unauthenticated` or
 * `invalid_user` (401) for an invalid token, and `rate_limited` after too many invalid tokens. With a valid token, the
 * socket counts for the token's holder; throws `share_exceeded` or `store_full` if the holder has too many sockets.
 */
export function createAuthenticateRequest(
  authenticator: BearerAuthenticator,
  sockets: Pick<Sockets, 'authenticated'>,
): AuthenticateRequest {
  return ({ request, address }) => {
    const token = bearerOf(request);
    if (token === null) return null;
    const found = thenDo(authenticator.recall(token), (known) => known ?? authenticator.authenticate(token, address));
    return thenDo(found, (requester) => {
      if (requester) sockets.authenticated(request.socket, requester);
      return requester;
    });
  };
}

/** Returns the bearer token of a request; null if it has none. Throws `unauthenticated` for any other authorization. */
export function bearerOf({ headers }: HttpRequest): string | null {
  const { authorization } = headers;
  if (authorization === undefined) return null;
  const [, token] = /^bearer +([^\s]+)$/i.exec(authorization) ?? [];
  return token ?? fail('unauthenticated', 'Only "Authorization: Bearer <token>" is supported.');
}

/**
 * Returns an authenticator that also accepts grant tokens. Core looks a grant token up each time, so a revoked grant is
 * refused at once. `recall` accepts grant tokens too, because the look-up verifies no signature.
 */
export function withGrants(bearer: BearerAuthenticator, sites: Pick<Sites, 'holder'>): BearerAuthenticator {
  return {
    ready: () => bearer.ready?.(),
    recall: (token) => (isGrantToken(token) ? orElse(() => sites.holder(token), nullIfUnknown) : bearer.recall(token)),
    authenticate: (token) => (token !== null && isGrantToken(token) ? sites.holder(token) : bearer.authenticate(token)),
  };
}

/**
 * Returns an authenticator that refuses revoked tokens (`unauthenticated`). Until this node knows all revocations, the
 * check of each token waits for them. It fails with `store_unavailable` if they cannot be read.
 */
export function withRevocations(
  bearer: BearerAuthenticator,
  revocations: Pick<Core['revocations'], 'find' | 'isLoaded' | 'loaded'>,
): BearerAuthenticator {
  const isUsable = (principal: Principal): boolean => revocations.isLoaded && revocations.find(principal) === null;
  return {
    ready: () => bearer.ready?.(),
    recall: (token) => thenDo(bearer.recall(token), (known) => (known && isUsable(known) ? known : null)),
    async authenticate(token) {
      const principal = await bearer.authenticate(token);
      if (principal === null || isUsable(principal)) return principal;
      await revocations.loaded();
      return revocations.find(principal) === null ? principal : badToken('revoked', 'The token was revoked.');
    },
  };
}

function nullIfUnknown(error: unknown): null {
  if (error instanceof CallboardError && error.code === 'unauthenticated') return null;
  throw error;
}
