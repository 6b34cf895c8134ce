/**
 * Authenticates bearer tokens: configured administrator tokens and JWTs. Also joins the credentials that can be
 * replaced while the relay runs. It must not log a token.
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
import type { MaybePromise } from '../core/maybe-promise.ts';
import type { Clock } from '../core/ports.ts';
import { createTicketDesk } from './sign-in.ts';
import {
  DEFAULT_CLAIMS,
  MetricsToken,
  TOLERANCE_SECONDS,
  createKeySet,
  digest,
  principalOf,
  type ClaimRules,
  type KeySet,
} from './tokens.ts';

export type AuthOptions = {
  /** The administrators' tokens. Each is a bare token or `name=token`; see `parseAdminToken`. */
  readonly adminTokens: readonly string[];
  /** The key for HS256, and for no other algorithm. Null: HS256 tokens are refused. */
  readonly secret: string | null;
  /** A second key for HS256 while the secret is being replaced; null: none. */
  readonly previousSecret?: string | null;
  /** The URL of the key set that verifies asymmetric signatures; null: none. Requires `issuer` and `audience`. */
  readonly jwksUrl: string | null;
  /** The issuer and the audience that every JWT must have if they are set, whichever key signed it. */
  readonly issuer: string | null;
  readonly audience: string | null;
  /** The claim with the user's id, in tokens of the key set. Default: `sub`. */
  readonly userClaim?: string | null;
  /** The claim with the scopes, in tokens of the key set. Default: the first of `scope`, `scp` and `permissions`. */
  readonly scopeClaim?: string | null;
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
  readonly keys: readonly (Uint8Array | JWTVerifyGetKey)[];
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
  const { secret, previousSecret = null, userClaim, scopeClaim, scopePrefix } = options;
  const sources: KeySource[] = [];
  const keys = [secret, previousSecret].filter((text) => text !== null).map((text) => new TextEncoder().encode(text));
  if (keys.length > 0) sources.push({ algorithms: ['HS256'], keys, claims: DEFAULT_CLAIMS });
  const claims: ClaimRules = {
    user: userClaim ?? DEFAULT_CLAIMS.user,
    scopes: scopeClaim ? [scopeClaim] : DEFAULT_CLAIMS.scopes,
    prefix: scopePrefix ?? DEFAULT_CLAIMS.prefix,
  };
  if (keySet !== null) sources.push({ algorithms: ASYMMETRIC, keys: [keySet.key], claims });
  return sources;
}

/** Verifies a JWT. The algorithm in the header only selects a key source, which accepts its own algorithms only. */
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
    return principalOf(await payloadOf(token, source.keys, rules), source.claims);
  } catch (error) {
    throw refusalOf(error);
  }
}

/** Returns the payload of a token that one of the keys verifies. Tries the next key only after a wrong signature. */
async function payloadOf(token: string, keys: KeySource['keys'], rules: JWTVerifyOptions): Promise<JWTPayload> {
  let fault: unknown;
  for (const key of keys) {
    try {
      const verified =
        typeof key === 'function' ? await jwtVerify(token, key, rules) : await jwtVerify(token, key, rules);
      return verified.payload;
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
