import type { Sites } from '../core/core.ts';
import { CallboardError } from '../core/errors.ts';
import { orElse } from '../core/maybe.ts';
import { isGrantToken } from '../core/sites/tokens.ts';
import type { BearerAuthenticator } from './auth.ts';

/**
 * Takes the tokens of grants, too: core is asked each time, so that a revoked one is good no more from that moment. A good one is recalled
 * like a token that was verified lately, since asking for it costs no more.
 */
export function withGrants(bearer: BearerAuthenticator, sites: Pick<Sites, 'holder'>): BearerAuthenticator {
  return {
    recall: (token) =>
      isGrantToken(token) ? orElse(() => sites.holder(token), nobodyWhereUnknown) : bearer.recall(token),
    authenticate: (token) => (token !== null && isGrantToken(token) ? sites.holder(token) : bearer.authenticate(token)),
  };
}

function nobodyWhereUnknown(error: unknown): null {
  if (error instanceof CallboardError && error.code === 'unauthenticated') return null;
  throw error;
}
