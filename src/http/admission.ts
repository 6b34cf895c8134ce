import type { IncomingMessage } from 'node:http';
import type { Principal } from '../core/auth/principal.ts';
import { fail } from '../core/errors.ts';
import { andThen, type Maybe } from '../core/maybe.ts';
import type { BearerAuthenticator } from './auth.ts';
import type { Sockets } from './sockets.ts';
import type { Visit } from './visit.ts';

/** Says who asks, once for each request. */
export type Admission = (visit: Visit) => Maybe<Principal | null>;

/**
 * Only `Authorization: Bearer` counts; cookies and the query never do. Null: no token was shown. Throws `unauthenticated`, `invalid_user`
 * (401), and `rate_limited` for a bad token once too many were shown. The socket of a good one counts as authenticated.
 */
export function createAdmission(
  authenticator: BearerAuthenticator,
  sockets: Pick<Sockets, 'authenticated'>,
): Admission {
  return ({ request, address }) => {
    const token = bearerOf(request);
    if (token === null) return null;
    const found = andThen(authenticator.recall(token), (known) => known ?? authenticator.authenticate(token, address));
    return andThen(found, (who) => {
      if (who) sockets.authenticated(request.socket);
      return who;
    });
  };
}

function bearerOf({ headers }: IncomingMessage): string | null {
  const { authorization } = headers;
  if (authorization === undefined) return null;
  const [, token] = /^bearer +([^\s]+)$/i.exec(authorization) ?? [];
  return token ?? fail('unauthenticated', 'Only "Authorization: Bearer <token>" is understood.');
}
