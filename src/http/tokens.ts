/** Signs the relay's JWTs, and turns verified claims into principals. It verifies no tokens. */
import { randomBytes } from 'node:crypto';
import { SignJWT, type JWTPayload } from 'jose';
import {
  readToolChoice,
  type Principal,
  type DeviceLimits,
  type Scope,
  type TokenIdentity,
  type UserPrincipal,
} from '../core/auth/principal.ts';
import { fail } from '../core/errors.ts';
import { canonicalUser, isCanonicalUser } from '../core/ids.ts';
import { TOKEN_ID_CHARS } from '../core/limits.ts';
import { isRecord } from '../core/json.ts';

/** One name or several; null or absent: none. */
export type Names = string | readonly string[] | null | undefined;

export function namesIn(names: Names): readonly string[] {
  return typeof names === 'string' ? [names] : (names ?? []);
}

export type TokenRequest = {
  /** The secret of the deployment (setting SECRET), at least 32 bytes. */
  readonly secret: string;
  /** A canonical user id. */
  readonly user: string;
  readonly scopes: readonly string[];
  readonly ttlSeconds: number;
  /** The time of issue, in milliseconds since the Unix epoch. */
  readonly now: number;
  readonly issuer?: Names;
  readonly audience?: Names;
  /** Patterns of the actions that the token may invoke. Absent: it may invoke any action. */
  readonly actions?: readonly string[] | undefined;
  /** Which tools an agent may see, in the form that `readToolChoice` reads. */
  readonly tools?: string | undefined;
  readonly prefix?: string | undefined;
  /** The client as which a device's token may connect, and when the device was enrolled, in epoch milliseconds. */
  readonly device?: DeviceClaim | undefined;
};

type DeviceClaim = DeviceLimits & { readonly since: number };

/**
 * Signs a JWT that the relay accepts: HS256 with `sub`, `scope`, `jti`, `iat` and `exp`, and with `iss`, `aud` and the
 * relay's own claims if given. Of several issuers or audiences, the first one is used.
 */
export function signToken(request: TokenRequest): Promise<string> {
  const issued = Math.floor(request.now / 1000);
  const { actions, tools, prefix, device } = request;
  const claims = {
    scope: request.scopes.join(' '),
    ...(actions && { [ACTIONS_CLAIM]: actions }),
    ...(tools !== undefined && { [TOOLS_CLAIM]: tools }),
    ...(prefix !== undefined && { [PREFIX_CLAIM]: prefix }),
    ...(device && { [DEVICE_CLAIM]: device }),
  };
  const token = new SignJWT(claims)
    .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
    .setSubject(request.user)
    .setJti(randomBytes(12).toString('base64url'))
    .setIssuedAt(issued)
    .setExpirationTime(issued + request.ttlSeconds);
  const [issuer] = namesIn(request.issuer);
  const [audience] = namesIn(request.audience);
  if (issuer) token.setIssuer(issuer);
  if (audience) token.setAudience(audience);
  return token.sign(new TextEncoder().encode(request.secret));
}

/** How the claims of an issuer are read. */
export type ClaimRules = {
  /**
   * The paths of claims that may hold the user's id. Only the first one that is present counts; `email` counts only
   * with `email_verified: true`.
   */
  readonly user: readonly string[];
  /** The paths of claims that may hold the scopes. Only the first one that is present counts. */
  readonly scopes: readonly string[];
  /** Whether a user id that is not canonical is made canonical. Otherwise its token is refused. */
  readonly fold: boolean;
  /** The text with which the names of the relay's scopes begin, such as `callboard:`. All other names are ignored. */
  readonly prefix: string;
};

export const DEFAULT_CLAIMS: ClaimRules = {
  user: ['sub'],
  scopes: ['scope', 'scp', 'permissions'],
  fold: false,
  prefix: '',
};

/**
 * Returns the value of a claim by its path. A path is a name, or several names joined by dots, such as
 * `realm_access.roles`. A name itself may contain dots, as in `https://app.example/roles`: of several readings, the one
 * with the longest existing name counts.
 */
function claimAt(claims: Readonly<Record<string, unknown>>, path: string): unknown {
  if (Object.hasOwn(claims, path)) return claims[path];
  for (let dot = path.lastIndexOf('.'); dot > 0; dot = path.lastIndexOf('.', dot - 1)) {
    const name = path.slice(0, dot);
    const inner = Object.hasOwn(claims, name) ? claims[name] : undefined;
    if (isRecord(inner)) return claimAt(inner, path.slice(dot + 1));
  }
  return undefined;
}

/** How far the clock of an issuer may be behind or ahead, in seconds. */
export const TOLERANCE_SECONDS = 30;

const SCOPES: ReadonlySet<string> = new Set<Scope>(['connect', 'invoke', 'host', 'mcp']);

/** The claim that restricts the actions that a token may invoke: a list of patterns. */
const ACTIONS_CLAIM = 'callboard_actions';
/** The claim that names the only client as which a device's token may connect. */
const DEVICE_CLAIM = 'callboard_device';
/** The claims that select the tools that agents see, like the parameters `tools` and `prefix` of `/mcp`. */
const TOOLS_CLAIM = 'callboard_tools';
const PREFIX_CLAIM = 'callboard_prefix';

/**
 * Returns the principal for these claims, which must include `exp` and the user's claim. The principal expires
 * TOLERANCE_SECONDS after `exp`, at which time the relay begins to refuse the token. Throws `invalid_user` (401) if the
 * user id is not canonical, and `unauthenticated` if the email address is not verified or one of the relay's own claims
 * is malformed.
 */
export function principalOf(claims: JWTPayload, rules: ClaimRules): Principal {
  const user = userOf(claims, rules);
  const names = scopesOf(claims, rules);
  // Rounded down because `exp` may contain fractions of a millisecond, while `welcome` carries whole milliseconds.
  const expiresAt = Math.min(Math.floor(((claims.exp ?? 0) + TOLERANCE_SECONDS) * 1000), Number.MAX_SAFE_INTEGER);
  const limits = deviceOf(claims);
  const token = identityOf(claims, limits?.since);
  if (names.includes('admin')) return { kind: 'admin', name: user, expiresAt, token };
  return {
    kind: 'user',
    userId: user,
    scopes: new Set(names.filter((name): name is Scope => SCOPES.has(name))),
    expiresAt,
    token,
    ...actionsOf(claims),
    ...toolChoiceOf(claims),
    ...(limits && { device: limits.device }),
  };
}

function identityOf({ jti, iat }: JWTPayload, since?: number): TokenIdentity {
  // Checked by hand, because another program wrote the claims. A longer id is ignored.
  const isId = typeof jti === 'string' && jti !== '' && jti.length <= TOKEN_ID_CHARS;
  const issuedAt = since ?? (typeof iat === 'number' ? Math.floor(iat * 1000) : null);
  return { id: isId ? jti : null, issuedAt };
}

/**
 * Reads the claim of a device. A token with a malformed claim is refused, because ignoring the claim would grant more
 * rights than intended.
 */
function deviceOf({ [DEVICE_CLAIM]: claim }: JWTPayload): { device: DeviceLimits; since: number } | null {
  if (claim === undefined) return null;
  const { clientId, clientType, actions, since } = isRecord(claim) ? claim : {};
  const isList = Array.isArray(actions) && actions.every((pattern) => typeof pattern === 'string');
  if (typeof clientId !== 'string' || typeof clientType !== 'string' || typeof since !== 'number')
    return fail('unauthenticated', `The claim ${DEVICE_CLAIM} is not that of a device.`, { tokenFault: 'claims' });
  if (actions !== null && !isList)
    return fail('unauthenticated', `The claim ${DEVICE_CLAIM} has other actions than a list.`, {
      tokenFault: 'claims',
    });
  return { device: { clientId, clientType, actions }, since };
}

function userOf(claims: JWTPayload, { user: paths, fold }: ClaimRules): string {
  const path = paths.find((one) => claimAt(claims, one) !== undefined);
  if (path === undefined) fail('unauthenticated', 'The token names no user.', { tokenFault: 'claims' });
  if (path === 'email' && claims['email_verified'] !== true)
    fail('unauthenticated', 'The email address of the token is not verified.', { tokenFault: 'email_unverified' });
  const user = claimAt(claims, path);
  if (typeof user === 'string' && isCanonicalUser(user)) return user;
  const folded = fold && typeof user === 'string' ? canonicalOrNull(user) : null;
  return (
    folded ??
    fail('invalid_user', 'The user of the token is not a canonical user.', { status: 401, tokenFault: 'subject' })
  );
}

function canonicalOrNull(user: string): string | null {
  try {
    return canonicalUser(user);
  } catch {
    return null;
  }
}

/** Reads the patterns of actions. A malformed claim is refused, because ignoring it would allow every action. */
function actionsOf({ [ACTIONS_CLAIM]: claim }: JWTPayload): Pick<UserPrincipal, 'actions'> {
  if (claim === undefined) return {};
  const patterns: readonly unknown[] = Array.isArray(claim) ? claim : [null];
  const actions = patterns.filter((pattern) => typeof pattern === 'string');
  return actions.length === patterns.length
    ? { actions }
    : fail('unauthenticated', `The claim ${ACTIONS_CLAIM} is not a list of texts.`, { tokenFault: 'claims' });
}

function toolChoiceOf({ [TOOLS_CLAIM]: tools, [PREFIX_CLAIM]: prefix }: JWTPayload): Pick<UserPrincipal, 'toolChoice'> {
  if (tools === undefined && prefix === undefined) return {};
  const toolChoice = readToolChoice(tools, prefix);
  return typeof toolChoice === 'object'
    ? { toolChoice }
    : fail('unauthenticated', `A claim of the token is wrong: callboard_${toolChoice}`, { tokenFault: 'claims' });
}

/** Returns the scopes in the claims. The claim is a text with names separated by spaces, or a list of names. */
function scopesOf(claims: JWTPayload, { scopes, prefix }: ClaimRules): readonly string[] {
  const claim = scopes.map((path) => claimAt(claims, path)).find((value) => value !== undefined);
  const names: readonly unknown[] = typeof claim === 'string' ? claim.split(' ') : Array.isArray(claim) ? claim : [];
  return names.flatMap((name) =>
    typeof name === 'string' && name.startsWith(prefix) ? [name.slice(prefix.length)] : [],
  );
}
