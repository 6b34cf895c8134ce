/**
 * Authenticates bearer tokens: configured administrator tokens and JWTs. Creates the objects that check credentials,
 * which can be replaced while the relay runs. A token must never appear in a log line.
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
import { parseAdminToken } from '../core/auth/admin-token.ts';
import type { TicketStore } from '../core/auth/ticket-store.ts';
import type { AdminPrincipal, Authenticator, Principal } from '../core/auth/principal.ts';
import { BoundedMap } from '../core/collections.ts';
import { CallboardError, fail, type TokenFault } from '../core/errors.ts';
import type { MaybePromise } from '../core/maybe-promise.ts';
import type { Clock } from '../core/ports.ts';
import { createDeviceTokens } from './device-tokens.ts';
import { createKeySet, type KeySet } from './key-set.ts';
import { MetricsToken } from './metrics-token.ts';
import { digest } from './secret-digest.ts';
import { createTicketDesk } from './sign-in-tickets.ts';
import { DEFAULT_CLAIMS, TOLERANCE_SECONDS, namesIn, principalOf, type ClaimRules, type Names } from './tokens.ts';

export type AuthOptions = {
  /** The administrators' tokens, each as `token` or `name=token`; see `parseAdminToken`. */
  readonly adminTokens: readonly string[];
  /** The key that verifies HS256 tokens, and no others. Null: HS256 tokens are refused. */
  readonly secret: string | null;
  /** A second HS256 key that is accepted while the secret is being replaced; null: none. */
  readonly previousSecret?: string | null;
  /**
   * The URL of the key set (JWKS) that verifies asymmetric signatures; null: none. Requires `issuer` and `audience`.
   */
  readonly jwksUrl: string | null;
  /** The allowed issuers and audiences. If set, every JWT must have one of them, whichever key signed it. */
  readonly issuer: Names;
  readonly audience: Names;
  /** Whether `client_id` counts as the audience of a token that the key set verifies and that has no `aud`. */
  readonly audienceFromClientId?: boolean;
  /**
   * The paths of the claims that may hold the user's id, for tokens that the key set verifies. The first claim that is
   * present counts. Default: `sub`.
   */
  readonly userClaim?: Names;
  /**
   * Whether user ids in tokens that the key set verifies are made canonical. By default an id that is not canonical is
   * refused.
   */
  readonly foldUsers?: boolean;
  /**
   * The paths of the claims that may hold the scopes, for tokens that the key set verifies. Default: `scope`, `scp` and
   * `permissions`.
   */
  readonly scopeClaim?: Names;
  /** The text with which the names of the relay's scopes begin, in tokens that the key set verifies. */
  readonly scopePrefix?: string;
  readonly clock: Clock;
};

/** The credentials that can be replaced while the relay runs. */
export type ReplacedCredentials = Pick<AuthOptions, 'adminTokens' | 'secret' | 'previousSecret'> & {
  /** The token that may read `/metrics` and nothing else. Null: only administrators may read the metrics. */
  readonly metricsToken?: string | null;
};

export interface BearerAuthenticator extends Authenticator {
  /** Returns the principal of a configured or recently verified token; null otherwise. Verifies no signature. */
  recall(token: string): MaybePromise<Principal | null>;
  /** Throws `store_unavailable` with `reason` while the keys to verify tokens are missing. Absent: always ready. */
  ready?(): MaybePromise<void>;
}

const ASYMMETRIC = [
  ...['RS256', 'RS384', 'RS512'],
  ...['PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512'],
  ...['EdDSA', 'Ed25519'],
];
/** The maximum length of a token. Longer tokens are refused without being decoded. */
const TOKEN_MAX_CHARS = 8192;
/** How long a verified token is cached, in milliseconds. The cache never outlasts the token's own expiry. */
const VERIFIED_CACHE_MS = 60_000;
const VERIFIED_CACHE_SIZE = 10_000;

type KeySource = {
  readonly algorithms: string[];
  /** The keys of this source, one of which must have signed the token. */
  readonly keys: readonly Uint8Array[] | KeySet;
  /** Whether `client_id` counts as the audience of a token without `aud`. */
  readonly clientIdCounts: boolean;
  readonly claims: ClaimRules;
};

/** An authenticator whose credentials can be replaced. */
interface ReplaceableAuthenticator extends BearerAuthenticator {
  /**
   * Replaces the credentials: from the next token on, only these and the key set are accepted. Open links stay open.
   */
  replace(credentials: ReplacedCredentials): void;
}

/**
 * Implements core's Authenticator with configured administrator tokens and JWTs. Looks a token up among the recently
 * verified ones and then among the configured ones (in constant time), and only then verifies it as a JWT. Throws
 * `store_unavailable` if the key set is needed and cannot be fetched.
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
 * Creates the check for administrator tokens. It compares digests, because those have equal lengths. It compares all
 * configured tokens even after a match, so that the timing reveals nothing.
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

/**
 * Verifies a JWT. The algorithm in its header only selects a key source, and each source accepts only its own
 * algorithms.
 */
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

/**
 * Returns the payload of a token that one of the keys verifies. The next key is tried only if the signature is wrong.
 */
async function payloadOf(token: string, keys: KeySource['keys'], rules: JWTVerifyOptions): Promise<JWTPayload> {
  if (!('key' in keys)) return payloadByEach(token, keys, rules);
  try {
    return await payloadBySet(token, keys.key, rules);
  } catch (error) {
    if (!(error instanceof errors.JWSSignatureVerificationFailed) || !(await keys.renew())) throw error;
    return payloadBySet(token, keys.key, rules);
  }
}

/** The maximum number of keys of a set that are tried for one token, because each try costs a verification. */
const MATCHING_KEYS = 10;

/** Verifies a token with the key of a set that matches the token's header, or with each matching key in turn. */
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

/** Refuses a token as `unauthenticated`. `tokenFault`: the reason for the log and the metrics. */
export function badToken(tokenFault: TokenFault, detail = 'The token is not valid.'): never {
  fail('unauthenticated', detail, { tokenFault });
}

/**
 * Returns the refusal for an error of verification. Rethrows an error that is neither one of jose nor a CallboardError.
 */
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

/**
 * Creates the objects that check credentials, which are all replaced together. `clock`: the clock by which tokens
 * expire.
 */
export function createCredentials(
  given: Omit<AuthOptions, 'clock'> & ReplacedCredentials,
  { clock, tickets: store }: { readonly clock: Clock; readonly tickets: TicketStore },
) {
  const bearer = createAuthenticator({ ...given, clock });
  const metricsToken = new MetricsToken(given.metricsToken ?? null);
  const tickets = createTicketDesk(given, store, () => clock.now());
  const devices = createDeviceTokens(given, () => clock.now());
  return {
    bearer,
    metricsToken,
    tickets,
    devices,
    replace(next: ReplacedCredentials): void {
      bearer.replace(next);
      metricsToken.replace(next.metricsToken ?? null);
      tickets.replace(next);
      devices.replace(next);
    },
  };
}
