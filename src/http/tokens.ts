/**
 * JWTs: signs those of the relay, fetches the keys of an issuer, and reads users and scopes from claims. Also the token
 * for metrics, the digest with which secrets are compared, and the sign-in of a page by a one-time code or ticket.
 */
import { createHash, hash, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto';
import { SignJWT, createLocalJWKSet, errors, jwtVerify, type JWTPayload, type JWTVerifyGetKey } from 'jose';
import {
  readToolChoice,
  type Principal,
  type Scope,
  type TicketStore,
  type TokenIdentity,
  type UserPrincipal,
} from '../core/auth/principal.ts';
import { CallboardError, fail } from '../core/errors.ts';
import { canonicalUser, isCanonicalUser } from '../core/ids.ts';
import { isRecord } from '../core/json.ts';
import { OPERATOR_TOKEN_SECONDS, SIGN_IN_MS, SIGN_IN_TICKET_SECONDS } from '../core/limits.ts';
import { thenDo } from '../core/maybe-promise.ts';
import type { Clock } from '../core/ports.ts';
import { systemClock } from '../platform/system.ts';
import { sendText } from '../web/exchange.ts';
import { parseBody, readBody, type BuiltinRoute, type RequestInfo } from './request-info.ts';

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
  /** Patterns of the only actions that the token may invoke. Absent: it may invoke any. */
  readonly actions?: readonly string[] | undefined;
  /** Which tools an agent is shown, as `readToolChoice` reads them. */
  readonly tools?: string | undefined;
  readonly prefix?: string | undefined;
};

/**
 * Signs a JWT that the relay accepts: HS256, with `sub`, `scope`, `jti`, `iat` and `exp`, and `iss`, `aud` and the claims of
 * the relay if given. Of several issuers or audiences, the first is written.
 */
export function signToken(request: TokenRequest): Promise<string> {
  const issued = Math.floor(request.now / 1000);
  const { actions, tools, prefix } = request;
  const claims = {
    scope: request.scopes.join(' '),
    ...(actions && { [ACTIONS_CLAIM]: actions }),
    ...(tools !== undefined && { [TOOLS_CLAIM]: tools }),
    ...(prefix !== undefined && { [PREFIX_CLAIM]: prefix }),
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

/** How to read the claims of an issuer. */
export type ClaimRules = {
  /**
   * The paths of claims that may hold the user's id. Only the first one that is present counts; `email` counts only
   * with `email_verified: true`.
   */
  readonly user: readonly string[];
  /** The paths of claims that may hold the scopes. Only the first one that is present counts. */
  readonly scopes: readonly string[];
  /** Whether the user's id is made canonical. Otherwise a token with another form of it is refused. */
  readonly fold: boolean;
  /** The text with which the names of the relay's scopes begin, such as `callboard:`. Other names are ignored. */
  readonly prefix: string;
};

export const DEFAULT_CLAIMS: ClaimRules = {
  user: ['sub'],
  scopes: ['scope', 'scp', 'permissions'],
  fold: false,
  prefix: '',
};

/**
 * Returns the value of a claim by its path: a name, or names with dots between them, such as `realm_access.roles`. A
 * name may contain dots itself, as `https://app.example/roles` does: the longest name that exists counts.
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

/** The number of seconds by which the clock of an issuer may be behind or ahead. */
export const TOLERANCE_SECONDS = 30;

const SCOPES: ReadonlySet<string> = new Set<Scope>(['connect', 'invoke', 'host', 'mcp']);

/** The claim with the patterns of the only actions that a token may invoke: a list of texts. */
const ACTIONS_CLAIM = 'callboard_actions';
/** The claims with the tools that agents are shown, as the parameters `tools` and `prefix` of `/mcp`. */
const TOOLS_CLAIM = 'callboard_tools';
const PREFIX_CLAIM = 'callboard_prefix';

/**
 * Returns the principal of these claims, which must include `exp` and the user's claim. The principal expires
 * `TOLERANCE_SECONDS` after `exp`, when the relay begins to refuse the token. Throws `invalid_user` (401) if the user
 * is not canonical, and `unauthenticated` if the email address is not verified or a claim of the relay has another form.
 */
export function principalOf(claims: JWTPayload, rules: ClaimRules): Principal {
  const user = userOf(claims, rules);
  const names = scopesOf(claims, rules);
  // `exp` may have digits beyond milliseconds, and `welcome` holds whole ones.
  const expiresAt = Math.min(Math.floor(((claims.exp ?? 0) + TOLERANCE_SECONDS) * 1000), Number.MAX_SAFE_INTEGER);
  const token = identityOf(claims);
  if (names.includes('admin')) return { kind: 'admin', name: user, expiresAt, token };
  return {
    kind: 'user',
    userId: user,
    scopes: new Set(names.filter((name): name is Scope => SCOPES.has(name))),
    expiresAt,
    token,
    ...actionsOf(claims),
    ...toolChoiceOf(claims),
  };
}

/** The longest id of a token by which it can be revoked. A longer one counts as none. */
const TOKEN_ID_CHARS = 256;

function identityOf({ jti, iat }: JWTPayload): TokenIdentity {
  // The claims are those of another program, whose types nothing has checked.
  const isId = typeof jti === 'string' && jti !== '' && jti.length <= TOKEN_ID_CHARS;
  return { id: isId ? jti : null, issuedAt: typeof iat === 'number' ? Math.floor(iat * 1000) : null };
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

/** Reads the patterns of actions. A claim of another form is refused, because ignoring it would allow every action. */
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

/** Returns the scopes that the claims name. A claim is a text of names with spaces between them, or a list of names. */
function scopesOf(claims: JWTPayload, { scopes, prefix }: ClaimRules): readonly string[] {
  const claim = scopes.map((path) => claimAt(claims, path)).find((value) => value !== undefined);
  const names: readonly unknown[] = typeof claim === 'string' ? claim.split(' ') : Array.isArray(claim) ? claim : [];
  return names.flatMap((name) =>
    typeof name === 'string' && name.startsWith(prefix) ? [name.slice(prefix.length)] : [],
  );
}

// Fetches the published keys of an issuer (JWKS) when they are needed, and again when they are old or a key is unknown.

export type KeySet = {
  /**
   * Finds the key of a token. Throws `store_unavailable` if there are no usable keys, and jose's error if no key fits.
   */
  readonly key: JWTVerifyGetKey;
  /**
   * Fetches the keys again after a wrong signature: an issuer may have replaced a key under its name. Resolves with
   * whether there are other keys than before. Does nothing within UNKNOWN_KEY_MS of the last fetch.
   */
  renew(): Promise<boolean>;
  /** Throws `store_unavailable` with `reason` if no token can be verified. Fetches the keys if there are none. */
  ready(): Promise<void>;
};

/** The age in milliseconds at which keys are fetched again. */
const FRESH_MS = 600_000;
/** The age in milliseconds up to which keys are used while they cannot be fetched again. */
const USABLE_MS = 3600_000;
/** The time after a fetch during which a token with an unknown key causes no further fetch, in milliseconds. */
const UNKNOWN_KEY_MS = 5_000;
/** How long after a failed fetch the keys are not fetched again, in milliseconds. */
const RETRY_MS = 1_000;
/** How long the identity provider may take to send its keys, in milliseconds. */
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
  /** Callers that need a fetch at the same time share one. */
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

/** Writes an error as text, without the address, which may hold a secret. */
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

/** The token that may read the metrics and nothing else. No other part of the relay knows it. */
export class MetricsToken {
  #expected: Buffer | null = null;

  /** `token`: the token that is accepted; null: only administrators may read the metrics. */
  constructor(token: string | null = null) {
    this.replace(token);
  }

  /** Accepts only this token from now on; null: none. */
  replace(token: string | null): void {
    this.#expected = token === null ? null : digest(token);
  }

  /** Whether the given token is this one. Compares digests of one length, so that timing reveals nothing. */
  accepts(given: string | null): boolean {
    return given !== null && this.#expected !== null && timingSafeEqual(digest(given), this.#expected);
  }
}

/** Returns a digest of a secret. Digests have one length, so comparing them does not reveal that of the secret. */
export function digest(text: string): Buffer {
  return hash('sha256', text, 'buffer');
}

// Signs in a page by a one-time code or ticket in its URL, so that a person need not copy a token into the page.

/** The most bytes of a request body, which has only a code. */
const BODY_BYTES = 1024;

export type SignIn = {
  /** The code of the sign-in URL. It is put into the fragment of the URL, which browsers do not send. */
  readonly code: string;
  /** Creates another code, for the URL of another page. */
  issue(): string;
  /** Returns the token for a code, once, within SIGN_IN_MS; null for any other code and at any other time. */
  redeem(code: string): string | null;
};

/** Creates codes with which a page gets `token`. */
export function createSignIn(token: string, clock: Pick<Clock, 'monotonic'> = systemClock): SignIn {
  /** Until when each code is valid, by `Clock.monotonic`. */
  const codes = new Map<string, number>();
  const issue = (): string => {
    const code = randomBytes(24).toString('base64url');
    codes.set(code, clock.monotonic() + SIGN_IN_MS);
    return code;
  };
  return {
    code: issue(),
    issue,
    redeem(given) {
      let found: string | null = null;
      for (const [code, until] of codes)
        if (timingSafeEqual(digest(given), digest(code)) && clock.monotonic() < until) found = code;
      if (found !== null) codes.delete(found);
      return found === null ? null : token;
    },
  };
}

/** The ways in which codes are exchanged for tokens. */
export type SignInWays = {
  /** Signs in a page on this machine by a code of this process; absent: no such code is accepted. */
  readonly signIn?: SignIn | undefined;
  /** Signs operators in with tickets of any node; absent: no ticket is accepted. */
  readonly tickets?: Pick<TicketDesk, 'redeem'> | undefined;
};

/**
 * Creates the route `POST /sign-in`. It answers `{"code"}` with `{"token"}`, or with 401 if the code is wrong, used or
 * too old. A code of this process is accepted only from a peer on this machine and without a proxy's forwarding
 * headers: behind a proxy on this machine, every peer would seem to be local. A ticket is signed, so it is accepted
 * from anywhere.
 */
export function createSignInRoute({ signIn, tickets }: SignInWays): BuiltinRoute {
  return {
    authentication: 'by-route',
    methods: ['POST'],
    label: 'builtin',
    handle(info) {
      const code = readBody(info.request, BODY_BYTES, { use: (bytes) => bytes && codeOf(bytes) });
      return thenDo(code, async (given = '') => {
        const isTicket = given.includes('.');
        if (!isTicket && !isLocal(info))
          fail('forbidden', 'This link signs a page in only on the machine of the relay.');
        const token = isTicket ? ((await tickets?.redeem(given)) ?? null) : (signIn?.redeem(given) ?? null);
        if (token === null) throw new CallboardError('unauthenticated', 'The link was used already, or is too old.');
        sendText(info.response, 200, 'application/json', JSON.stringify({ token }));
      });
    },
  };
}

function codeOf(bytes: Buffer): string {
  const body: unknown = JSON.parse(parseBody(bytes));
  const code = typeof body === 'object' && body !== null && 'code' in body ? body.code : undefined;
  if (typeof code !== 'string') fail('invalid_argument', 'The body must be an object with the text "code".');
  return code;
}

/** Whether the request comes from this machine, and not through a proxy that says so. */
export function isLocal({ request }: RequestInfo): boolean {
  const { 'x-forwarded-for': forwardedFor, forwarded } = request.headers;
  const address = request.socket.remoteAddress ?? '';
  return forwardedFor === undefined && forwarded === undefined && /^(::1|(::ffff:)?127\.[\d.]+)$/.test(address);
}

// Signs and redeems one-time tickets, which sign an operator in on any node of a deployment. The signing key is derived
// from the deployment's secret, so a ticket is never accepted as a bearer token, nor a bearer token as a ticket.

const ISSUER = 'callboard:sign-in';

/** Signs a ticket for an administrator of this name. It is valid for SIGN_IN_TICKET_SECONDS. */
export function signTicket({ secret, name, now }: { secret: string; name: string; now: number }): Promise<string> {
  const issued = Math.floor(now / 1000);
  return new SignJWT({})
    .setProtectedHeader({ alg: 'HS256', typ: 'sign-in' })
    .setIssuer(ISSUER)
    .setSubject(canonicalUser(name))
    .setJti(randomBytes(16).toString('base64url'))
    .setIssuedAt(issued)
    .setExpirationTime(issued + SIGN_IN_TICKET_SECONDS)
    .sign(keyOf(secret));
}

type TicketCredentials = {
  readonly secret?: string | null;
  /** A second secret that is accepted while the secret is being replaced; null: none. */
  readonly previousSecret?: string | null;
  readonly issuer?: Names;
  readonly audience?: Names;
};

export interface TicketDesk {
  /**
   * Exchanges a ticket for an administrator's token, once; null if it is invalid, expired or used. Throws
   * `store_unavailable` if the store cannot say whether the ticket was used; the ticket can then be redeemed later.
   */
  redeem(ticket: string): Promise<string | null>;
  /** Accepts only tickets of these secrets from now on. */
  replace(credentials: Pick<TicketCredentials, 'secret' | 'previousSecret'>): void;
}

/** Creates the object that redeems tickets. `now`: the clock by which tokens expire, in epoch milliseconds. */
export function createTicketDesk(given: TicketCredentials, tickets: TicketStore, now: () => number): TicketDesk {
  let credentials = given;
  return {
    async redeem(ticket) {
      const { secret, previousSecret, issuer = null, audience = null } = credentials;
      const secrets = [secret, previousSecret].filter((text) => typeof text === 'string');
      for (const key of secrets) {
        const found = await read(ticket, key, now());
        if (found === null || typeof secret !== 'string') continue;
        // Used tickets are remembered a little longer than they are valid, because the clocks of nodes differ.
        const ttlMs = (SIGN_IN_TICKET_SECONDS + 60) * 1000;
        if (!(await tickets.take(ticketDigest(found.id), ttlMs))) return null;
        const ttlSeconds = OPERATOR_TOKEN_SECONDS;
        return signToken({ secret, user: found.name, scopes: ['admin'], ttlSeconds, now: now(), issuer, audience });
      }
      return null;
    },
    replace: (next) => void (credentials = { ...credentials, ...next }),
  };
}

/** Returns the content of a valid ticket; null for any other text. */
async function read(ticket: string, secret: string, now: number) {
  try {
    const currentDate = new Date(now);
    const rules = { algorithms: ['HS256'], issuer: ISSUER, requiredClaims: ['exp', 'jti', 'sub'], currentDate };
    const { sub = '', jti = '' } = (await jwtVerify(ticket, keyOf(secret), rules)).payload;
    return { name: canonicalUser(sub), id: jti };
  } catch {
    return null;
  }
}

/** Digests the id of a ticket: the ticket's text can be changed without breaking the signature. */
function ticketDigest(id: string): string {
  return createHash('sha256').update(id).digest('hex').slice(0, 32);
}

function keyOf(secret: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', secret, '', ISSUER, 32));
}
