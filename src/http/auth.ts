import { createHash, hash, timingSafeEqual } from 'node:crypto';
import { createRemoteJWKSet, decodeProtectedHeader, errors, jwtVerify } from 'jose';
import type { JWTPayload, JWTVerifyGetKey, JWTVerifyOptions } from 'jose';
import { parseAdminToken } from '../core/auth/admin-token.ts';
import type { AdminPrincipal, Authenticator, Principal, Scope } from '../core/auth/principal.ts';
import type { Clock } from '../core/clock.ts';
import { CallboardError, fail, type TokenFault } from '../core/errors.ts';
import { isCanonicalUser } from '../core/ids.ts';
import type { MaybePromise } from '../core/maybe-promise.ts';
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
  readonly clock: Clock;
};

export interface BearerAuthenticator extends Authenticator {
  /**
   * The principal of a configured token, or of a token that was verified within the last minute and has not expired;
   * null otherwise. Does no costly verification.
   */
  recall(token: string): MaybePromise<Principal | null>;
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
const SCOPES: ReadonlySet<string> = new Set<Scope>(['connect', 'invoke', 'host']);
const TOKEN_MAX_CHARS = 8192;
/** How long a verified token is cached, in milliseconds; never beyond its own expiry. */
const BELIEVED_MS = 60_000;
const BELIEVED_TOKENS = 10_000;

type KeySource = { readonly algorithms: string[]; readonly key: Uint8Array | JWTVerifyGetKey };

/**
 * Implements core's Authenticator with configured administrator tokens and JWTs. Configured tokens are compared first,
 * in constant time. Throws `store_unavailable` when the key set is needed and cannot be fetched.
 */
export function createAuthenticator(options: AuthOptions): BearerAuthenticator {
  const believed = createTtlCache<Principal>({ clock: options.clock, size: BELIEVED_TOKENS, ms: BELIEVED_MS });
  const admin = createAdminCheck(options.adminTokens);
  const sources = keySources(options);
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
      const principal = principalOf(await verifyJwt(token, sources, options));
      believed.set(hash('sha256', token, 'base64'), principal);
      return principal;
    },
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

function keySources({ secret, jwksUrl }: AuthOptions): readonly KeySource[] {
  const sources: KeySource[] = [];
  if (secret !== null) sources.push({ algorithms: ['HS256'], key: new TextEncoder().encode(secret) });
  if (jwksUrl !== null) {
    const key = createRemoteJWKSet(new URL(jwksUrl), { timeoutDuration: 5000 });
    sources.push({ algorithms: ASYMMETRIC, key });
  }
  return sources;
}

/** The algorithm in the header only selects a key source; the source then accepts its own algorithms only. */
async function verifyJwt(token: string, sources: readonly KeySource[], options: AuthOptions): Promise<JWTPayload> {
  const algorithm = algorithmOf(token);
  const source = sources.find(({ algorithms }) => algorithms.includes(algorithm)) ?? badToken('algorithm');
  const rules: JWTVerifyOptions = {
    algorithms: source.algorithms,
    currentDate: new Date(options.clock.now()),
    requiredClaims: ['exp', 'sub'],
    ...(options.issuer !== null && { issuer: options.issuer }),
    ...(options.audience !== null && { audience: options.audience }),
  };
  try {
    const { key } = source;
    return (typeof key === 'function' ? await jwtVerify(token, key, rules) : await jwtVerify(token, key, rules))
      .payload;
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

function principalOf(claims: JWTPayload): Principal {
  const user = claims.sub ?? '';
  if (!isCanonicalUser(user)) {
    fail('invalid_user', 'The subject of the token is not a canonical user.', {
      status: 401,
      tokenFault: 'subject',
    });
  }
  const names = typeof claims['scope'] === 'string' ? claims['scope'].split(' ') : [];
  const expiresAt = Math.min((claims.exp ?? 0) * 1000, Number.MAX_SAFE_INTEGER);
  if (names.includes('admin')) return { kind: 'admin', name: user, expiresAt };
  return { kind: 'user', userId: user, scopes: new Set(names.filter(isScope)), expiresAt };
}

function isScope(name: string): name is Scope {
  return SCOPES.has(name);
}

function badToken(tokenFault: TokenFault, detail = 'The token is not valid.'): never {
  fail('unauthenticated', detail, { tokenFault });
}

/**
 * An invalid token is the requester's fault (`unauthenticated`); an unavailable key set is not (`store_unavailable`).
 */
function refusalOf(error: unknown): CallboardError {
  if (error instanceof errors.JWTExpired)
    return new CallboardError('unauthenticated', 'The token has expired.', { tokenFault: 'expired' });
  if (error instanceof errors.JWKSTimeout || !(error instanceof errors.JOSEError) || isFetchFailure(error)) {
    return new CallboardError('store_unavailable', 'The keys that verify this token are unavailable at present.', {
      tokenFault: 'keys_unavailable',
      cause: error,
    });
  }
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

/** jose throws its base class when the response from the URL is not a key set. */
function isFetchFailure(error: errors.JOSEError): boolean {
  return error.code === 'ERR_JOSE_GENERIC' || error instanceof errors.JWKSInvalid;
}
