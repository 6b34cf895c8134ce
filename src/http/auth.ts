/**
 * Takes tokens from requests and authenticates them: configured administrator tokens, JWTs, and the tokens of grants.
 * Joins the credentials that can be replaced while the relay runs. Counts, logs and limits invalid tokens and tickets,
 * and GraphQL requests without a token. A token must never appear in a log line.
 */
import { hash, timingSafeEqual } from 'node:crypto';
import {
  decodeProtectedHeader,
  errors,
  jwtVerify,
  type JWTPayload,
  type JWTVerifyGetKey,
  type JWTVerifyOptions,
} from 'jose';
import {
  parseAdminToken,
  type AdminPrincipal,
  type Authenticator,
  type Principal,
  type TicketStore,
} from '../core/auth/principal.ts';
import { BoundedMap } from '../core/collections.ts';
import { CallboardError, fail, type TokenFault } from '../core/errors.ts';
import { type MaybePromise, orElse, thenDo } from '../core/maybe-promise.ts';
import type { Clock, Log } from '../core/ports.ts';
import {
  DEFAULT_CLAIMS,
  MetricsToken,
  TOLERANCE_SECONDS,
  createKeySet,
  createTicketDesk,
  digest,
  namesIn,
  principalOf,
  type ClaimRules,
  type KeySet,
  type Names,
} from './tokens.ts';
import type { Core, Sites } from '../core/core.ts';
import { ANONYMOUS_BODY_BYTES, ANONYMOUS_BURST, ANONYMOUS_RATE } from '../core/limits.ts';
import type { Metrics } from '../core/metrics.ts';
import { LineLimit, RateTable, SlidingWindow, TokenBucket } from '../core/rates.ts';
import { isGrantToken } from '../core/sites/sessions.ts';
import { networkOf } from '../web/forwarded.ts';
import type { RequestInfo } from './request-info.ts';
import type { Sockets } from './sockets.ts';
import type { HttpRequest } from '../web/request.ts';

export type AuthOptions = {
  /** The administrators' tokens. Each is a bare token or `name=token`; see `parseAdminToken`. */
  readonly adminTokens: readonly string[];
  /** The key for HS256, and for no other algorithm. Null: HS256 tokens are refused. */
  readonly secret: string | null;
  /** A second key for HS256 while the secret is being replaced; null: none. */
  readonly previousSecret?: string | null;
  /** The URL of the key set that verifies asymmetric signatures; null: none. Requires `issuer` and `audience`. */
  readonly jwksUrl: string | null;
  /**
   * The issuers and the audiences of which every JWT must have one if they are set, whichever key signed it.
   */
  readonly issuer: Names;
  readonly audience: Names;
  /** Whether `client_id` counts as the audience of a token of the key set that has no `aud`. */
  readonly audienceFromClientId?: boolean;
  /** The paths of claims with the user's id, in tokens of the key set; the first that is present. Default: `sub`. */
  readonly userClaim?: Names;
  /** Whether users in tokens of the key set are made canonical. Default: another form of a user is refused. */
  readonly foldUsers?: boolean;
  /** The paths of claims with the scopes, in tokens of the key set. Default: `scope`, `scp` and `permissions`. */
  readonly scopeClaim?: Names;
  /** The text that the names of scopes begin with, in tokens of the key set. */
  readonly scopePrefix?: string;
  readonly clock: Clock;
};

/** The credentials that can be replaced while the relay runs. */
export type ReplacedCredentials = Pick<AuthOptions, 'adminTokens' | 'secret' | 'previousSecret'> & {
  /** The token that reads `/metrics` and nothing else; null: only administrators may read it. */
  readonly metricsToken?: string | null;
};

export interface BearerAuthenticator extends Authenticator {
  /** Returns the principal of a configured or recently verified token; null otherwise. Does no costly verification. */
  recall(token: string): MaybePromise<Principal | null>;
  /** Throws `store_unavailable` with `reason` while keys are missing to verify tokens. Absent: always ready. */
  ready?(): MaybePromise<void>;
}

const ASYMMETRIC = [
  ...['RS256', 'RS384', 'RS512'],
  ...['PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512'],
  ...['EdDSA', 'Ed25519'],
];
/** The greatest length of a token. Longer tokens are refused without being decoded. */
const TOKEN_MAX_CHARS = 8192;
/** How long a verified token is cached, in milliseconds; never beyond its own expiry. */
const VERIFIED_CACHE_MS = 60_000;
const VERIFIED_CACHE_SIZE = 10_000;

type KeySource = {
  readonly algorithms: string[];
  /** The keys of this source. A token must be signed with one of them. */
  readonly keys: readonly Uint8Array[] | KeySet;
  /** Whether `client_id` counts as the audience of a token without `aud`. */
  readonly clientIdCounts: boolean;
  readonly claims: ClaimRules;
};

/** An authenticator whose credentials can be replaced. */
interface ReplaceableAuthenticator extends BearerAuthenticator {
  /** From the next token on, only the given credentials and the key set are accepted. Open links are not closed. */
  replace(credentials: ReplacedCredentials): void;
}

/**
 * Implements core's Authenticator with configured administrator tokens and JWTs. Looks for a token among the recently
 * verified ones, then among the configured ones (compared in constant time), and then verifies it as a JWT. Throws
 * `store_unavailable` when the key set is needed and cannot be fetched.
 */
export function createAuthenticator(options: AuthOptions): ReplaceableAuthenticator {
  const verifiedTokens = new BoundedMap<string, Principal>({
    most: VERIFIED_CACHE_SIZE,
    ttl: { ms: VERIFIED_CACHE_MS, clock: options.clock },
  });
  let admin = createAdminCheck(options.adminTokens);
  const keySet = options.jwksUrl === null ? null : createKeySet(options.jwksUrl, options.clock);
  let sources = keySources(options, keySet);
  const recall = (token: string): Principal | null => {
    if (token.length > TOKEN_MAX_CHARS) return null;
    const key = hash('sha256', token, 'base64');
    const known = verifiedTokens.get(key);
    if (known && (known.expiresAt === null || known.expiresAt > options.clock.now())) return known;
    const principal = admin(token);
    if (principal) verifiedTokens.set(key, principal);
    return principal;
  };
  return {
    recall,
    async authenticate(token) {
      if (token === null) return null;
      if (token.length > TOKEN_MAX_CHARS) badToken('malformed', 'The token is too long.');
      const known = recall(token);
      if (known) return known;
      const verifiedBy = sources;
      const principal = await verifyJwt(token, verifiedBy, options);
      // The result is not cached if the keys were replaced during the verification.
      if (verifiedBy === sources) verifiedTokens.set(hash('sha256', token, 'base64'), principal);
      return principal;
    },
    ready: () => keySet?.ready(),
    replace(credentials) {
      admin = createAdminCheck(credentials.adminTokens);
      sources = keySources({ ...options, ...credentials }, keySet);
      verifiedTokens.clear();
    },
  };
}

/**
 * Creates the check for administrator tokens. It compares digests, because they all have the same length. It compares
 * every configured token, even after a match, so timing reveals nothing.
 */
function createAdminCheck(texts: readonly string[]): (token: string) => AdminPrincipal | null {
  const admins = texts.map(parseAdminToken).map(({ name, token }, index) => {
    const principal: AdminPrincipal = { kind: 'admin', name: name ?? `token-${index + 1}`, expiresAt: null };
    return { expected: digest(token), principal };
  });
  return (token) => {
    const given = digest(token);
    let found: AdminPrincipal | null = null;
    for (const { expected, principal } of admins) found = timingSafeEqual(given, expected) ? principal : found;
    return found;
  };
}

function keySources(options: AuthOptions, keySet: KeySet | null): readonly KeySource[] {
  const { secret, previousSecret = null, userClaim, scopeClaim, scopePrefix, foldUsers = false } = options;
  const sources: KeySource[] = [];
  const keys = [secret, previousSecret].filter((text) => text !== null).map((text) => new TextEncoder().encode(text));
  if (keys.length > 0) sources.push({ algorithms: ['HS256'], keys, claims: DEFAULT_CLAIMS, clientIdCounts: false });
  const claims: ClaimRules = {
    user: given(userClaim) ?? DEFAULT_CLAIMS.user,
    scopes: given(scopeClaim) ?? DEFAULT_CLAIMS.scopes,
    fold: foldUsers,
    prefix: scopePrefix ?? DEFAULT_CLAIMS.prefix,
  };
  const clientIdCounts = options.audienceFromClientId ?? false;
  if (keySet !== null) sources.push({ algorithms: ASYMMETRIC, keys: keySet, claims, clientIdCounts });
  return sources;
}

function given(names: Names): readonly string[] | null {
  const list = namesIn(names);
  return list.length > 0 ? list : null;
}

/** Verifies a JWT. The algorithm in the header only selects a key source, which accepts its own algorithms only. */
async function verifyJwt(token: string, sources: readonly KeySource[], options: AuthOptions): Promise<Principal> {
  const algorithm = algorithmOf(token);
  const source = sources.find(({ algorithms }) => algorithms.includes(algorithm)) ?? badToken('algorithm');
  const rules: JWTVerifyOptions = {
    algorithms: source.algorithms,
    currentDate: new Date(options.clock.now()),
    clockTolerance: TOLERANCE_SECONDS,
    requiredClaims: ['exp'],
    ...(given(options.issuer) && { issuer: [...namesIn(options.issuer)] }),
  };
  try {
    const payload = await payloadOf(token, source.keys, rules);
    requireAudience(payload, namesIn(options.audience), source.clientIdCounts);
    return principalOf(payload, source.claims);
  } catch (error) {
    throw refusalOf(error);
  }
}

/** Throws if audiences are configured and the token has none of them. */
function requireAudience(payload: JWTPayload, audiences: readonly string[], clientIdCounts: boolean): void {
  if (audiences.length === 0) return;
  const { aud = clientIdCounts ? payload['client_id'] : undefined } = payload;
  const named: readonly unknown[] = Array.isArray(aud) ? aud : [aud];
  if (!named.some((one) => typeof one === 'string' && audiences.includes(one))) badToken('audience');
}

/** Returns the payload of a token that one of the keys verifies. Tries the next key only after a wrong signature. */
async function payloadOf(token: string, keys: KeySource['keys'], rules: JWTVerifyOptions): Promise<JWTPayload> {
  if (!('key' in keys)) return payloadByEach(token, keys, rules);
  try {
    return await payloadBySet(token, keys.key, rules);
  } catch (error) {
    if (!(error instanceof errors.JWSSignatureVerificationFailed) || !(await keys.renew())) throw error;
    return payloadBySet(token, keys.key, rules);
  }
}

/** The most keys of a set that are tried for one token: each costs a verification. */
const MATCHING_KEYS = 10;

/** Verifies a token with the key of a set that matches it, or with each one if several do. */
async function payloadBySet(token: string, find: JWTVerifyGetKey, rules: JWTVerifyOptions): Promise<JWTPayload> {
  try {
    return (await jwtVerify(token, find, rules)).payload;
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
    const matching: Parameters<typeof payloadByEach>[1][number][] = [];
    for await (const key of error) if (matching.length < MATCHING_KEYS) matching.push(key);
    return payloadByEach(token, matching, rules);
  }
}

async function payloadByEach(
  token: string,
  keys: readonly (Uint8Array | CryptoKey)[],
  rules: JWTVerifyOptions,
): Promise<JWTPayload> {
  let fault: unknown;
  for (const key of keys) {
    try {
      return (await jwtVerify(token, key, rules)).payload;
    } catch (error) {
      if (!(error instanceof errors.JWSSignatureVerificationFailed)) throw error;
      fault = error;
    }
  }
  throw fault;
}

function algorithmOf(token: string): string {
  try {
    return decodeProtectedHeader(token).alg ?? '';
  } catch {
    return badToken('malformed');
  }
}

function badToken(tokenFault: TokenFault, detail = 'The token is not valid.'): never {
  fail('unauthenticated', detail, { tokenFault });
}

/** Returns the refusal for an error of verification. Rethrows an error that is neither jose's nor a refusal. */
function refusalOf(error: unknown): CallboardError {
  if (error instanceof CallboardError) return error;
  if (error instanceof errors.JWTExpired)
    return new CallboardError('unauthenticated', 'The token has expired.', { tokenFault: 'expired' });
  if (!(error instanceof errors.JOSEError)) throw error;
  const tokenFault = tokenFaultOf(error);
  return new CallboardError('unauthenticated', 'The token is not valid.', { tokenFault, cause: error });
}

/** Maps jose's error classes to the reasons in the log and in the metrics. */
function tokenFaultOf(error: errors.JOSEError): TokenFault {
  if (error instanceof errors.JWTClaimValidationFailed) return FAULT_OF_CLAIM.get(error.claim) ?? 'claims';
  if (error instanceof errors.JWSSignatureVerificationFailed) return 'signature';
  if (error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys)
    return 'key_unknown';
  return error instanceof errors.JOSEAlgNotAllowed ? 'algorithm' : 'malformed';
}

const FAULT_OF_CLAIM: ReadonlyMap<string, TokenFault> = new Map<string, TokenFault>([
  ['nbf', 'not_yet_valid'],
  ['iss', 'issuer'],
  ['aud', 'audience'],
]);

/** Creates the parts that check credentials, which are replaced together. `clock`: the clock by which tokens expire. */
export function createCredentials(
  given: Omit<AuthOptions, 'clock'> & ReplacedCredentials,
  { clock, tickets: store }: { readonly clock: Clock; readonly tickets: TicketStore },
) {
  const bearer = createAuthenticator({ ...given, clock });
  const metricsToken = new MetricsToken(given.metricsToken ?? null);
  const tickets = createTicketDesk(given, store, () => clock.now());
  return {
    ...{ bearer, metricsToken, tickets },
    replace(next: ReplacedCredentials): void {
      bearer.replace(next);
      metricsToken.replace(next.metricsToken ?? null);
      tickets.replace(next);
    },
  };
}

/** The limit of failed tokens per minute of one address. Beyond it, a failure is answered with `rate_limited`. */
export const FAILURES_A_MINUTE = 20;
/** The limit of failed tokens per minute over all addresses. Beyond it, a failure is answered with `rate_limited`. */
export const FAILURES_IN_ALL_A_MINUTE = 1_000;
/** The greatest number of addresses that are remembered. Beyond it, the least recently used is forgotten. */
const ADDRESSES = 10_000;
const WINDOW_MS = 60_000;
/** The rate of log lines about single refused tokens; the next line has the number of suppressed ones. */
const LINES = { perSecond: 10, burst: 20 };
/** The faults that do not count towards the limits: the key set is unavailable, or does not have the key yet. */
const NOT_COUNTED: ReadonlySet<TokenFault | undefined> = new Set<TokenFault>(['keys_unavailable', 'key_unknown']);

type TokenGuardOptions = { readonly clock: Clock; readonly log: Log; readonly metrics: Metrics };

/**
 * Handles invalid tokens and tickets: counts them by reason, logs the reason (never the token), and answers them with
 * `rate_limited` above a rate per address or in total. A valid token from an address with many invalid ones may have to
 * wait. It is refused only if too many tokens wait (VerifyQueue).
 */
export type TokenGuard = {
  /** Runs `work`, which checks a token or ticket from this address. Throws what it throws, or `rate_limited`. */
  check<T>(address: string, work: () => Promise<T>): Promise<T>;
  /** Wraps the authenticator with this guard. A call without an address is neither counted nor limited. */
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

/** Counts failed tokens per address and in total, in sliding windows of one minute. */
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

/** Writes log lines about refused tokens, at the rate LINES. */
function createNotes({ clock, log }: Pick<TokenGuardOptions, 'clock' | 'log'>) {
  const lines = new LineLimit(clock, LINES);
  return (reason: TokenFault, address: string, { cause }: CallboardError): void =>
    lines.pass({ reason, address }, (fields) => {
      if (reason === 'keys_unavailable')
        log.warn({ ...fields, err: cause }, 'the keys that verify tokens are unavailable');
      else log.info(fields, 'a token was refused');
    });
}

/** The number of concurrent verifications for addresses over their rate. Half of Node's four threads stay free. */
const RUNNING = 2;
/** The most verifications that wait for one address: 0.1 s of work at 10 000 verifications per second. */
const WAITING_PER_ADDRESS = 1_000;

/**
 * Verifies tokens from addresses that sent too many invalid ones: a few at a time, round-robin by address. Other
 * addresses never wait. A valid token of such an address waits too, and is refused only if the queue is full.
 */
export class VerifyQueue {
  readonly #waiting = new Map<string, (() => void)[]>();
  #running = 0;

  /** Runs `work` in its turn. Throws `rate_limited` if too many jobs of this address, or too many addresses, wait. */
  async run<T>(address: string, work: () => Promise<T>): Promise<T> {
    if (this.#running >= RUNNING) await this.#turn(address);
    else this.#running++;
    try {
      return await work();
    } finally {
      this.#next();
    }
  }

  /** The number of verifications that wait. */
  get size(): number {
    return this.#waiting.values().reduce((sum, jobs) => sum + jobs.length, 0);
  }

  #turn(address: string): Promise<void> {
    const jobs = this.#waiting.get(address) ?? [];
    if (jobs.length >= WAITING_PER_ADDRESS || (jobs.length === 0 && this.#waiting.size >= ADDRESSES))
      fail('rate_limited', 'Too many invalid tokens from this address.', { retryAfterMs: 1_000 });
    this.#waiting.set(address, jobs);
    return new Promise((start) => void jobs.push(start));
  }

  /** Starts the next job of the address whose last turn is longest ago, or frees the slot. */
  #next(): void {
    const [first] = this.#waiting;
    if (!first) return void this.#running--;
    const [address, jobs] = first;
    const [start, ...rest] = jobs;
    this.#waiting.delete(address);
    if (rest.length > 0) this.#waiting.set(address, rest);
    start?.();
  }
}

/** Bounds what GraphQL accepts without a token. */
export class AnonymousGate {
  /** The largest body that is read. */
  readonly bodyBytes: number;
  readonly #maxBodyBytes: number;
  readonly #buckets: RateTable<TokenBucket>;

  /** `maxBodyBytes`: the largest body that is read with a token. */
  constructor(clock: Clock, maxBodyBytes: number) {
    const rate = { perSecond: ANONYMOUS_RATE, burst: ANONYMOUS_BURST };
    this.bodyBytes = Math.min(maxBodyBytes, ANONYMOUS_BODY_BYTES);
    this.#maxBodyBytes = maxBodyBytes;
    this.#buckets = new RateTable(ADDRESSES, () => new TokenBucket(clock, rate));
  }

  /**
   * Counts one request of this address. Over the rate, throws `rate_limited` with the time to wait and counts nothing.
   * Throws `unauthenticated` if the announced body is larger than `bodyBytes`.
   */
  admit({ headers }: Pick<HttpRequest, 'headers'>, address: string): void {
    const retryAfterMs = this.#buckets.of(address).take();
    if (retryAfterMs > 0)
      fail('rate_limited', 'Too many GraphQL requests without a token from this address.', { retryAfterMs });
    const announced = Number(headers['content-length'] ?? 0);
    if (announced > this.bodyBytes && announced <= this.#maxBodyBytes)
      fail('unauthenticated', 'A bearer token is needed.');
  }
}

// Takes the bearer token from a request and authenticates it. Permissions are checked by the handlers and core.

/** Authenticates a request. Called once per request. Null: the request has no token. */
export type AuthenticateRequest = (info: RequestInfo) => MaybePromise<Principal | null>;

/**
 * Reads the token from `Authorization: Bearer` only, never from cookies or the query. Throws `unauthenticated` or
 * `invalid_user` (401) for an invalid token, and `rate_limited` after too many invalid tokens. A valid token counts
 * the socket for its holder, and throws `share_exceeded` or `store_full` if the holder has too many sockets.
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

/**
 * Returns an authenticator that refuses revoked tokens (`unauthenticated`). Until this node knows all revocations, each
 * token waits for them, and fails with `store_unavailable` if they cannot be read.
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
