import type { IncomingMessage } from 'node:http';
import type { Principal } from '../core/auth/principal.ts';
import { CallboardError, fail } from '../core/errors.ts';
import { andThen, type Maybe } from '../core/maybe.ts';
import type { BearerAuthenticator } from './auth.ts';
import type { Failures } from './failures.ts';
import type { Visit } from './visit.ts';

/** Says who asks, once for each request. */
export type Admission = (visit: Visit) => Maybe<Principal | null>;

/**
 * Only `Authorization: Bearer` counts; cookies and the query never do. Null: no token was shown. Throws `unauthenticated`, `invalid_user`
 * (401), and `rate_limited` once an address has shown too many bad tokens; a token that was good within the last minute still passes
 * then, so that a neighbour's broken script locks nobody out.
 */
export function createAdmission(authenticator: BearerAuthenticator, failures: Failures): Admission {
  const verify = async (token: string, address: string): Promise<Principal | null> => {
    const retryAfterMs = failures.waitOf(address);
    if (retryAfterMs > 0) fail('rate_limited', 'Too many bad tokens came from this address.', { retryAfterMs });
    try {
      return await authenticator.authenticate(token);
    } catch (error) {
      if (error instanceof CallboardError && error.status === 401) failures.count(address);
      throw error;
    }
  };
  return ({ request, address }) => {
    const token = bearerOf(request);
    if (token === null) return null;
    return andThen(authenticator.recall(token), (known) => known ?? verify(token, address));
  };
}

function bearerOf({ headers }: IncomingMessage): string | null {
  const { authorization } = headers;
  if (authorization === undefined) return null;
  const [, token] = /^bearer +([^\s]+)$/i.exec(authorization) ?? [];
  return token ?? fail('unauthenticated', 'Only "Authorization: Bearer <token>" is understood.');
}
