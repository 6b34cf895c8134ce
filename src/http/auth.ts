import { createHash, hash, timingSafeEqual } from 'node:crypto';
import { createRemoteJWKSet, decodeProtectedHeader, errors, jwtVerify } from 'jose';
import type { JWTPayload, JWTVerifyGetKey, JWTVerifyOptions } from 'jose';
import type { Authenticator, Principal, Scope } from '../core/auth/principal.ts';
import type { Clock } from '../core/clock.ts';
import { CallboardError, fail } from '../core/errors.ts';
import { isCanonicalUser } from '../core/ids.ts';
import type { Maybe } from '../core/maybe.ts';
import { createRecent, type Recent } from './recent.ts';

export type AuthOptions = {
  readonly adminTokens: readonly string[];
  /** Verifies HS256 and nothing else. */
  readonly secret: string | null;
  /** Its keys verify asymmetric algorithms and nothing else; needs issuer and audience. */
  readonly jwksUrl: string | null;
  /** Required of every JWT, whatever key signed it, where they are given. */
  readonly issuer: string | null;
  readonly audience: string | null;
  readonly clock: Clock;
};

export interface BearerAuthenticator extends Authenticator {
  /** The principal of a token that was verified in the last minute and has not expired; null otherwise. Verifies nothing costly. */
  recall(token: string): Maybe<Principal | null>;
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
/** How long a verified token is believed without verifying it again; never past its own end. */
const BELIEVED_MS = 60_000;
const BELIEVED_TOKENS = 10_000;

type KeySource = { readonly algorithms: string[]; readonly key: Uint8Array | JWTVerifyGetKey };

/**
 * core's Authenticator over configured admin tokens and JWTs. A token is looked at in full whatever it is, so that the time taken says
 * nothing about the configured ones. Throws `store_unavailable` when a key set is needed and cannot be fetched.
 */
export function createAuthenticator(options: AuthOptions): BearerAuthenticator {
  const believed = createRecent<Principal>({ clock: options.clock, size: BELIEVED_TOKENS, ms: BELIEVED_MS });
  const admin = createAdminCheck(options.adminTokens);
  const sources = keySources(options);
  const verify = async (token: string): Promise<Principal> => {
    const name = admin(token);
    if (name !== null) return { kind: 'admin', name, expiresAt: null };
    return principalOf(await verifyJwt(token, sources, options));
  };
  return {
    recall: (token) => recall(believed, token, options.clock),
    async authenticate(token) {
      if (token === null) return null;
      if (token.length > TOKEN_MAX_CHARS) fail('unauthenticated', 'The token is too long.');
      const known = recall(believed, token, options.clock);
      if (known) return known;
      const principal = await verify(token);
      believed.set(hash('sha256', token, 'base64'), principal);
      return principal;
    },
  };
}

function recall(believed: Recent<Principal>, token: string, clock: Clock): Principal | null {
  const principal = believed.get(hash('sha256', token, 'base64'));
  if (!principal) return null;
  return principal.expiresAt !== null && principal.expiresAt <= clock.now() ? null : principal;
}

/** Compares digests, which have one length, with every configured token, found or not. */
function createAdminCheck(tokens: readonly string[]): (token: string) => string | null {
  const digests = tokens.map(digest);
  return (token) => {
    const given = digest(token);
    let found: string | null = null;
    for (const [index, expected] of digests.entries()) {
      const equal = timingSafeEqual(given, expected);
      found = equal ? `token-${index + 1}` : found;
    }
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

/** The header's algorithm only chooses among the sources; each source is then held to its own algorithms. */
async function verifyJwt(token: string, sources: readonly KeySource[], options: AuthOptions): Promise<JWTPayload> {
  const algorithm = algorithmOf(token);
  const source = sources.find(({ algorithms }) => algorithms.includes(algorithm)) ?? badToken();
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
    return badToken();
  }
}

function principalOf(claims: JWTPayload): Principal {
  const user = claims.sub ?? '';
  if (!isCanonicalUser(user)) {
    fail('invalid_user', 'The subject of the token is not a canonical user.', { status: 401 });
  }
  const names = typeof claims['scope'] === 'string' ? claims['scope'].split(' ') : [];
  const expiresAt = Math.min((claims.exp ?? 0) * 1000, Number.MAX_SAFE_INTEGER);
  if (names.includes('admin')) return { kind: 'admin', name: user, expiresAt };
  return { kind: 'user', userId: user, scopes: new Set(names.filter(isScope)), expiresAt };
}

function isScope(name: string): name is Scope {
  return SCOPES.has(name);
}

function badToken(): never {
  fail('unauthenticated', 'The token is not valid.');
}

/** What is wrong with the token is the asker's to mend, and said as far as it helps; a key set that does not answer is not. */
function refusalOf(error: unknown): CallboardError {
  if (error instanceof errors.JWTExpired) return new CallboardError('unauthenticated', 'The token has expired.');
  if (error instanceof errors.JWKSTimeout || !(error instanceof errors.JOSEError) || isFetchFailure(error)) {
    return new CallboardError('store_unavailable', 'The keys to check this token cannot be read now.', {
      cause: error,
    });
  }
  return new CallboardError('unauthenticated', 'The token is not valid.', { cause: error });
}

/** jose uses its plain base class for an answer of the key set that is not a key set. */
function isFetchFailure(error: errors.JOSEError): boolean {
  return error.code === 'ERR_JOSE_GENERIC' || error instanceof errors.JWKSInvalid;
}
