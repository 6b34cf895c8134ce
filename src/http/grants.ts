/** Adds grant tokens to the bearer authenticator. Core decides whether a grant is valid. */
import type { Sites } from '../core/core.ts';
import { CallboardError } from '../core/errors.ts';
import { orElse } from '../core/maybe-promise.ts';
import { isGrantToken } from '../core/sites/tokens.ts';
import type { BearerAuthenticator } from './auth.ts';

/**
 * Returns an authenticator that also accepts grant tokens. Core looks them up each time, so a revoked grant is refused
 * at once. `recall` accepts them too, because looking one up verifies no signature.
 */
export function withGrants(bearer: BearerAuthenticator, sites: Pick<Sites, 'holder'>): BearerAuthenticator {
  return {
    ready: () => bearer.ready?.(),
    recall: (token) => (isGrantToken(token) ? orElse(() => sites.holder(token), nullIfUnknown) : bearer.recall(token)),
    authenticate: (token) => (token !== null && isGrantToken(token) ? sites.holder(token) : bearer.authenticate(token)),
  };
}

function nullIfUnknown(error: unknown): null {
  if (error instanceof CallboardError && error.code === 'unauthenticated') return null;
  throw error;
}
