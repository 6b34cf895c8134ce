/**
 * Fetches the published keys of an issuer (JWKS) when they are first needed, when they are old, and when a key is
 * unknown.
 */
import { createLocalJWKSet, errors, type JWTVerifyGetKey } from 'jose';
import { CallboardError } from '../core/errors.ts';
import type { Clock } from '../core/ports.ts';

export type KeySet = {
  /**
   * Finds the key for a token. Throws `store_unavailable` if there are no usable keys, and jose's error if none matches
   * the token.
   */
  readonly key: JWTVerifyGetKey;
  /**
   * Fetches the keys again after a wrong signature, because an issuer may have replaced a key without changing its
   * name. Resolves with whether the keys have changed. Does nothing within UNKNOWN_KEY_MS of the last fetch.
   */
  renew(): Promise<boolean>;
  /**
   * Throws `store_unavailable` with `reason` if no token can be verified. Fetches the keys first if they are missing or
   * old.
   */
  ready(): Promise<void>;
};

/** The age in milliseconds at which keys are fetched again. */
const FRESH_MS = 600_000;
/** The maximum age in milliseconds of keys that are still used while they cannot be fetched again. */
const USABLE_MS = 3600_000;
/** How long after a fetch an unknown key does not cause another fetch, in milliseconds. */
const UNKNOWN_KEY_MS = 5_000;
/** How long to wait after a failed fetch before another one, in milliseconds. */
const RETRY_MS = 1_000;
/** The timeout for fetching the keys from the identity provider, in milliseconds. */
const FETCH_MS = 5_000;

type Keys = {
  readonly find: JWTVerifyGetKey;
  readonly text: string;
  /** By `Clock.monotonic`. */ readonly fetchedAt: number;
};

export function createKeySet(url: string, clock: Pick<Clock, 'monotonic'>): KeySet {
  let keys: Keys | null = null;
  let failure: CallboardError | null = null;
  let triedAt = -Infinity;
  let pending: Promise<void> | null = null;
  const load = async (): Promise<void> => {
    try {
      const fetched = await fetchKeys(url);
      const text = JSON.stringify(fetched);
      keys = { find: createLocalJWKSet(fetched), text, fetchedAt: clock.monotonic() };
      failure = null;
    } catch (error) {
      failure = unreachable(error);
    }
  };
  /** Fetches the keys unless the last fetch began less than `pauseMs` ago. Calls during a fetch share that fetch. */
  const fetchAgain = (pauseMs: number): Promise<void> => {
    if (!pending && clock.monotonic() - triedAt >= pauseMs) {
      triedAt = clock.monotonic();
      pending = load().finally(() => (pending = null));
    }
    return pending ?? Promise.resolve();
  };
  const isYoungerThan = (ms: number): boolean => keys !== null && clock.monotonic() - keys.fetchedAt < ms;
  const usable = async (): Promise<JWTVerifyGetKey> => {
    if (!isYoungerThan(FRESH_MS)) await fetchAgain(RETRY_MS);
    if (keys && isYoungerThan(USABLE_MS)) return keys.find;
    throw failure ?? unreachable(new Error('the keys were not fetched'));
  };
  return {
    async key(header, token) {
      const find = await usable();
      try {
        return await find(header, token);
      } catch (error) {
        if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
        await fetchAgain(UNKNOWN_KEY_MS);
        return await (
          await usable()
        )(header, token);
      }
    },
    async renew() {
      const before = keys?.text;
      await fetchAgain(UNKNOWN_KEY_MS);
      return keys !== null && keys.text !== before;
    },
    ready: async () => void (await usable()),
  };
}

async function fetchKeys(url: string): Promise<Parameters<typeof createLocalJWKSet>[0]> {
  const response = await fetch(url, {
    signal: AbortSignal.timeout(FETCH_MS),
    redirect: 'manual',
    headers: { accept: 'application/jwk-set+json, application/json' },
  });
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new Error(`HTTP ${response.status}`);
  }
  return (await response.json()) as Parameters<typeof createLocalJWKSet>[0];
}

function unreachable(error: unknown): CallboardError {
  return new CallboardError('store_unavailable', 'The keys that verify this token are unavailable at present.', {
    tokenFault: 'keys_unavailable',
    reason: `The keys at JWKS_URL cannot be read: ${shortly(error)}.`,
    retryAfterMs: RETRY_MS,
    cause: error,
  });
}

/** Describes an error as text. The text never contains the URL, which may hold a secret. */
function shortly(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown reason';
  const { cause } = error;
  if (cause instanceof Error && 'code' in cause) return String(cause.code);
  if (error.name === 'TimeoutError') return `no answer within ${FETCH_MS / 1000} s`;
  if (error.message.startsWith('HTTP ')) return `the answer is ${error.message}`;
  return error instanceof errors.JOSEError || error instanceof SyntaxError
    ? 'the answer is not a key set'
    : 'the request failed';
}
