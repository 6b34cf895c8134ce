import type { Authenticator } from '../core/auth/principal.ts';
import type { Clock } from '../core/clock.ts';
import { CallboardError, type TokenFault } from '../core/errors.ts';
import type { Log } from '../core/log.ts';
import type { Metrics } from '../core/metrics.ts';
import { networkOf } from '../gateway/address.ts';
import { Bucket } from '../gateway/rate.ts';
import type { BearerAuthenticator } from './auth.ts';
import { createFailures } from './failures.ts';
import { VerifyQueue } from './verify-queue.ts';

/** Refused tokens that are logged one by one; the next line says how many were not. */
const LINES = { perSecond: 10, burst: 20 };
/** Not the caller's doing: the key set does not answer, or does not know the key yet. */
const NOT_COUNTED: ReadonlySet<TokenFault | undefined> = new Set<TokenFault>(['keys_unavailable', 'key_unknown']);

export type TokenGuardOptions = { readonly clock: Clock; readonly log: Log; readonly metrics: Metrics };

/**
 * What happens when a token or a ticket is not good: it is counted by reason, logged by reason (never the token), and above a rate by
 * address or in all it is answered with `rate_limited`. What is good is served whatever else came from its address.
 */
export type TokenGuard = {
  /** Checks a token or a ticket that this address showed. Throws what `work` throws, or `rate_limited` in its place. */
  check<T>(address: string, work: () => Promise<T>): Promise<T>;
  /** The same authenticator with this guard; without an address nothing is counted. */
  around(authenticator: BearerAuthenticator): Authenticator & BearerAuthenticator;
};

export function createTokenGuard({ clock, log, metrics }: TokenGuardOptions): TokenGuard {
  const failures = createFailures(clock);
  const queue = new VerifyQueue();
  const note = createNotes({ clock, log });
  const explain = (error: unknown, address: string): unknown => {
    if (!(error instanceof CallboardError)) return error;
    const { tokenFault } = error.details;
    if (tokenFault === undefined) return error;
    metrics.count('tokens_refused', tokenFault);
    note(tokenFault, address, error);
    if (NOT_COUNTED.has(tokenFault)) return error;
    const retryAfterMs = failures.count(address);
    if (retryAfterMs === 0) return error;
    return new CallboardError('rate_limited', 'Too many bad tokens were shown.', { retryAfterMs });
  };
  const check: TokenGuard['check'] = async (from, work) => {
    const address = networkOf(from);
    try {
      return failures.over(address) ? await queue.run(address, work) : await work();
    } catch (error) {
      throw explain(error, address);
    }
  };
  return {
    check,
    around: (authenticator) => ({
      recall: (token) => authenticator.recall(token),
      async authenticate(token, address) {
        if (token === null) return null;
        const known = await authenticator.recall(token);
        if (known || address === undefined) return known ?? authenticator.authenticate(token);
        return check(address, () => authenticator.authenticate(token));
      },
    }),
  };
}

/** Lines in the log, so many a second at most. */
function createNotes({ clock, log }: Pick<TokenGuardOptions, 'clock' | 'log'>) {
  const bucket = new Bucket(clock, LINES);
  let suppressed = 0;
  return (reason: TokenFault, address: string, error: CallboardError): void => {
    if (bucket.take() !== 'ok') return void suppressed++;
    const fields = { reason, address, ...(suppressed > 0 && { suppressed }) };
    suppressed = 0;
    if (reason === 'keys_unavailable')
      log.warn({ ...fields, err: error.cause }, 'the keys to check tokens cannot be read');
    else log.info(fields, 'a token was refused');
  };
}
