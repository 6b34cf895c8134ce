/** Authenticates bearer tokens: configured administrator tokens and JWTs. It must not log a token. */
import { createHash, hash, timingSafeEqual } from 'node:crypto';
import { decodeProtectedHeader, errors, jwtVerify } from 'jose';
import type { JWTVerifyGetKey, JWTVerifyOptions } from 'jose';
import { parseAdminToken } from '../core/auth/admin-token.ts';
import type { AdminPrincipal, Authenticator, Principal } from '../core/auth/principal.ts';
import type { Clock } from '../core/clock.ts';
import { CallboardError, fail, type TokenFault } from '../core/errors.ts';
import type { MaybePromise } from '../core/maybe-promise.ts';
import { DEFAULT_CLAIMS, principalOf, TOLERANCE_SECONDS, type ClaimRules } from './claims.ts';
import { createKeySet, type KeySet } from './key-set.ts';
import { createTtlCache, type TtlCache } from './ttl-cache.ts';

export type AuthOptions = {
  /** Each is a bare token or `name=token`; see `parseAdminToken`. */
  readonly adminTokens: readonly string[];
  /** The key for HS256, and for no other algorithm. Null: HS256 tokens are refused. */
  readonly secret: string | null;
  /** URL of a key set for asymmetric algorithms, and for no others; requires `issuer` and `audience`. */
  readonly jwksUrl: string | null;
  /** If set, every JWT must have this issuer and audience, whichever key signed it. */
  readonly issuer: string | null;
  readonly audience: string | null;
  /** For tokens of the key set: the claim with the user's id. Default: `sub`. */
  readonly userClaim?: string | null;
  /** For tokens of the key set: the claim with the scopes. Default: the first of `scope`, `scp` and `permissions`. */
  readonly scopeClaim?: string | null;
  /** For tokens of the key set: what the names of scopes begin with. */
  readonly scopePrefix?: string;
  readonly clock: Clock;
};

export interface BearerAuthenticator extends Authenticator {
  /**
   * The principal of a configured token, or of a token that was verified within the last minute and has not expired;
   * null otherwise. Does no costly verification.
   */
  recall(token: string): MaybePromise<Principal | null>;
  /** Throws `store_unavailable` with `reason` if tokens cannot be verified for want of keys. Absent: always ready. */
  ready?(): MaybePromise<void>;
}

const ASYMMETRIC = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
];
const TOKEN_MAX_CHARS = 8192;
/** How long a verified token is cached, in milliseconds; never beyond its own expiry. */
const BELIEVED_MS = 60_000;
const BELIEVED_TOKENS = 10_000;

type KeySource = {
  readonly algorithms: string[];
  readonly key: Uint8Array | JWTVerifyGetKey;
  readonly claims: ClaimRules;
};

/**
 * Implements core's Authenticator with configured administrator tokens and JWTs. Configured tokens are compared first,
 * in constant time. Throws `store_unavailable` when the key set is needed and cannot be fetched.
 */
export function createAuthenticator(options: AuthOptions): BearerAuthenticator {
  const believed = createTtlCache<Principal>({ clock: options.clock, size: BELIEVED_TOKENS, ms: BELIEVED_MS });
  const admin = createAdminCheck(options.adminTokens);
  const keySet = options.jwksUrl === null ? null : createKeySet(options.jwksUrl, options.clock);
  const sources = keySources(options, keySet);
  const recall = (token: string): Principal | null => {
    if (token.length > TOKEN_MAX_CHARS) return null;
    const known = believedOf(believed, token, options.clock);
    if (known) return known;
    const principal = admin(token);
    if (principal) believed.set(hash('sha256', token, 'base64'), principal);
    return principal;
  };
  return {
    recall,
    async authenticate(token) {
      if (token === null) return null;
      if (token.length > TOKEN_MAX_CHARS) badToken('malformed', 'The token is too long.');
      const known = recall(token);
      if (known) return known;
      const principal = await verifyJwt(token, sources, options);
      believed.set(hash('sha256', token, 'base64'), principal);
      return principal;
    },
    ready: () => keySet?.ready(),
  };
}

function believedOf(believed: TtlCache<Principal>, token: string, clock: Clock): Principal | null {
  const principal = believed.get(hash('sha256', token, 'base64'));
  if (!principal) return null;
  return principal.expiresAt !== null && principal.expiresAt <= clock.now() ? null : principal;
}

/**
 * Compares digests, which all have the same length, with every configured token, even after a match, so timing reveals
 * nothing.
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

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

function keySources(options: AuthOptions, keySet: KeySet | null): readonly KeySource[] {
  const { secret, userClaim, scopeClaim, scopePrefix } = options;
  const sources: KeySource[] = [];
  if (secret !== null)
    sources.push({ algorithms: ['HS256'], key: new TextEncoder().encode(secret), claims: DEFAULT_CLAIMS });
  const claims: ClaimRules = {
    user: userClaim ?? DEFAULT_CLAIMS.user,
    scopes: scopeClaim ? [scopeClaim] : DEFAULT_CLAIMS.scopes,
    prefix: scopePrefix ?? DEFAULT_CLAIMS.prefix,
  };
  if (keySet !== null) sources.push({ algorithms: ASYMMETRIC, key: keySet.key, claims });
  return sources;
}

/** The algorithm in the header only selects a key source; the source then accepts its own algorithms only. */
async function verifyJwt(token: string, sources: readonly KeySource[], options: AuthOptions): Promise<Principal> {
  const algorithm = algorithmOf(token);
  const source = sources.find(({ algorithms }) => algorithms.includes(algorithm)) ?? badToken('algorithm');
  const rules: JWTVerifyOptions = {
    algorithms: source.algorithms,
    currentDate: new Date(options.clock.now()),
    clockTolerance: TOLERANCE_SECONDS,
    requiredClaims: ['exp', source.claims.user],
    ...(options.issuer !== null && { issuer: options.issuer }),
    ...(options.audience !== null && { audience: options.audience }),
  };
  try {
    const { key, claims } = source;
    const verified =
      typeof key === 'function' ? await jwtVerify(token, key, rules) : await jwtVerify(token, key, rules);
    return principalOf(verified.payload, claims);
  } catch (error) {
    throw refusalOf(error);
  }
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

/** An invalid token is the requester's fault; keys that cannot be fetched are not. */
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
