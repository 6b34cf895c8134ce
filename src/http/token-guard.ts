/** Counts, logs and limits invalid tokens and tickets. A token must never appear in a log line. */
import type { Authenticator } from '../core/auth/principal.ts';
import { CallboardError, type TokenFault } from '../core/errors.ts';
import type { Metrics } from '../core/metrics.ts';
import type { Clock, Log } from '../core/ports.ts';
import { LineLimit, RateTable, SlidingWindow } from '../core/rates.ts';
import { networkOf } from '../web/forwarded.ts';
import type { BearerAuthenticator } from './authenticator.ts';
import { VerifyQueue, ADDRESSES } from './verify-queue.ts';

/**
 * The maximum number of failed tokens of one address per minute. Beyond it, failures are answered with `rate_limited`.
 */
export const FAILURES_A_MINUTE = 20;
/**
 * The maximum number of failed tokens of all addresses per minute. Beyond it, failures are answered with
 * `rate_limited`.
 */
export const FAILURES_IN_ALL_A_MINUTE = 1_000;

const WINDOW_MS = 60_000;
/** The rate at which refused tokens are logged one by one. The next line states how many lines were suppressed. */
const LINES = { perSecond: 10, burst: 20 };
/**
 * Faults that do not count towards the limits, because the token may be valid: the key set is unavailable or lacks the
 * key.
 */
const NOT_COUNTED: ReadonlySet<TokenFault | undefined> = new Set<TokenFault>(['keys_unavailable', 'key_unknown']);

type TokenGuardOptions = { readonly clock: Clock; readonly log: Log; readonly metrics: Metrics };

/**
 * Handles invalid tokens and tickets: counts them by reason, logs the reason (never the token), and answers them with
 * `rate_limited` above the limits. A valid token from an address over its limit may have to wait, and is refused only
 * if too many tokens wait (VerifyQueue).
 */
export type TokenGuard = {
  /**
   * Runs `work`, which checks a token or ticket from this address. Throws the error of `work`, or `rate_limited`
   * instead of it.
   */
  check<T>(address: string, work: () => Promise<T>): Promise<T>;
  /** Returns an authenticator guarded in this way. A call without an address is neither counted nor limited. */
  around(authenticator: BearerAuthenticator): Authenticator & BearerAuthenticator;
};

export function createTokenGuard({ clock, log, metrics }: TokenGuardOptions): TokenGuard {
  const failures = countFailures(clock);
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
    return new CallboardError('rate_limited', 'Too many invalid tokens.', { retryAfterMs });
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
      ready: () => authenticator.ready?.(),
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

/** Counts failed tokens of each address and in total, in sliding windows of one minute. */
function countFailures(clock: Clock) {
  const inAll = new SlidingWindow(clock, { most: FAILURES_IN_ALL_A_MINUTE, ms: WINDOW_MS });
  const windows = new RateTable(ADDRESSES, () => new SlidingWindow(clock, { most: FAILURES_A_MINUTE, ms: WINDOW_MS }));
  return {
    /** Whether this address has reached its limit of failed tokens. */
    over: (address: string): boolean => (windows.find(address)?.waitMs ?? 0) > 0,
    /**
     * Counts a failed token. Returns how long failures are answered with `rate_limited`, in milliseconds; 0 within the
     * limits.
     */
    count(address: string): number {
      const wait = windows.of(address).take();
      const waitOfAll = inAll.take();
      return wait > 0 ? wait : waitOfAll;
    },
  };
}

/** Logs refused tokens, at the rate LINES. */
function createNotes({ clock, log }: Pick<TokenGuardOptions, 'clock' | 'log'>) {
  const lines = new LineLimit(clock, LINES);
  return (reason: TokenFault, address: string, { cause }: CallboardError): void =>
    lines.pass({ reason, address }, (fields) => {
      if (reason === 'keys_unavailable')
        log.warn({ ...fields, err: cause }, 'the keys that verify tokens are unavailable');
      else log.info(fields, 'a token was refused');
    });
}
