/** Reads and checks the configuration of a relay. */
import { auditFaults, auditOf, type AuditConfig } from './config-audit.ts';
import { authOf, type AuthConfig } from './config-auth.ts';
import { tlsOf, type TlsConfig } from './config-tls.ts';
import { collectGiven, type Environment, type Given } from './config-given.ts';
import { redisOf, type RedisConfig } from './config-redis.ts';
import { NAMED_TOKEN_MIN, parseAdminToken, type AdminToken } from './core/auth/admin-token.ts';
import type { PolicyFile } from './core/auth/rules.ts';
import { CallboardError, type InputError } from './core/errors.ts';
import { shareBounds, type ShareBounds } from './core/shares/bounds.ts';
import { parsePolicyFile } from './policy-file.ts';
import { PREFIX, SETTINGS, isSettingName, type SettingName, type SettingValues } from './settings.ts';
import { readSettingFile } from './settings-files.ts';
import { warningsOf } from './config-warnings.ts';
import { boundsGiven, shareDefaults, shareFaults } from './settings-shares.ts';

export { secretsIn, type AuthConfig } from './config-auth.ts';
export type { TlsConfig } from './config-tls.ts';

export type { RedisConfig } from './config-redis.ts';

/** The checked configuration of a relay. Sizes are in bytes, times in milliseconds. */
export type Config = {
  readonly host: string;
  readonly port: number;
  readonly basePath: string;
  readonly auth: AuthConfig;
  /** The certificate and key; null: HTTP without TLS. */
  readonly tls: TlsConfig | null;
  /** The files whose texts are part of the configuration and may be replaced while the relay runs. */
  readonly files: readonly string[];
  /**
   * Whether the credentials were generated for this run, because none are configured (loopback and direct mode only).
   * The program must show them to the user.
   */
  readonly generated: boolean;
  /** The shared Redis; null: direct mode, with everything in this process. */
  readonly redis: RedisConfig | null;
  readonly nodeId: string | null;
  /** A name of the deployment for people, such as `staging`; null: it has none. */
  readonly label: string | null;
  readonly policy: PolicyFile | null;
  readonly retentionMs: number;
  /** How long the relay remembers a command's id after the command ended, in milliseconds. */
  readonly idempotencyWindowMs: number;
  readonly streamMaxMessages: number;
  /** The guarantee for one user and the total for all users, by share. */
  readonly shares: ShareBounds;
  readonly maxBodyBytes: number;
  /** The most open sockets of one address without a valid token. Does not apply with `trustProxy`. */
  readonly unauthenticatedSockets: number;
  /** The bytes per second that one user may send, over links and HTTP bodies together. */
  readonly inboundBytesPerSecond: number;
  /** Whether administrators may read the raw sample of history. */
  readonly rawMessages: boolean;
  /** Whether the relay serves the console at `/console/`. */
  readonly operatorConsole: boolean;
  /** The directory for large payloads; null: they are kept in memory, or in Redis in shared mode. */
  readonly spillDir: string | null;
  readonly audit: AuditConfig;
  /** How administrators may read payloads. */
  readonly reveal: SettingValues['REVEAL'];
  readonly allowedOrigins: readonly string[];
  readonly trustProxy: boolean;
  readonly introspection: SettingValues['INTROSPECTION'];
  /**
   * Whether the fast path is used: shortcuts for known documents, and work shared by many subscribers. Responses have
   * the same bytes either way.
   */
  readonly fastPath: boolean;
  /** Whether spans name users and clients, which are personal data. */
  readonly traceIds: boolean;
  readonly logLevel: SettingValues['LOG_LEVEL'];
  /**
   * Warnings for the log about variables that have the prefix but are no settings, and about settings without effect in
   * this mode.
   */
  readonly warnings: readonly string[];
};

/**
 * Reads the configuration from variables `CALLBOARD_X` and flags `--x`; flags take precedence. An empty variable counts
 * as unset. Throws a single `invalid_argument` that names all faults.
 */
export function readConfig(env: Environment, argv: readonly string[]): Config {
  const { given, files, faults } = collectGiven(env, argv);
  const shownAs = (name: SettingName): string => given.get(name)?.shownAs ?? PREFIX + name;
  const texts = Object.fromEntries([...given].map(([name, { text }]) => [name, text]));
  const parsed = SETTINGS.safeParse(texts);
  for (const issue of parsed.error?.issues ?? []) {
    const name = String(issue.path[0]);
    faults.push({ parameter: isSettingName(name) ? shownAs(name) : name, detail: issue.message });
  }
  faults.push(...togetherFaults(given, shownAs));
  const overdrawn = shareFaults((name) => given.get(name)?.text, !given.has('SPILL_DIR') && !given.has('REDIS_URL'));
  for (const [name, detail] of overdrawn) faults.push({ parameter: shownAs(name), detail });
  const policy = readPolicy(given.get('POLICY_FILE'), faults);
  const tls = tlsOf(given, faults);
  if (!parsed.success || faults.length > 0) throw configurationError(faults);
  const paths = [...files, ...[given.get('TLS_CERT'), given.get('TLS_KEY')].flatMap((at) => (at ? [at.text] : []))];
  return { ...toConfig(parsed.data, policy, warningsOf(env, given)), tls, files: paths };
}

/** Whether this host is reachable only from the machine itself. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host === '[::1]' || /^127(\.\d{1,3}){3}$/.test(host);
}

/**
 * Returns the faults in combinations of settings. Checks the texts and not the parsed values, so that these faults are
 * reported together with the faults of single settings.
 */
function togetherFaults(given: ReadonlyMap<SettingName, Given>, shownAs: (name: SettingName) => string): InputError[] {
  const faults: InputError[] = [...auditFaults(given, shownAs)];
  if (given.has('JWKS_URL')) {
    for (const name of ['ISSUER', 'AUDIENCE'] as const) {
      if (!given.has(name)) faults.push({ parameter: shownAs(name), detail: 'is required with JWKS_URL' });
    }
  }
  if (adminTokensOf(given).some(({ name, token }) => name !== null && token.length < NAMED_TOKEN_MIN)) {
    faults.push({
      parameter: shownAs('ADMIN_TOKEN'),
      detail: 'expected at least 16 characters in a token with a name',
    });
  }
  if (adminTokensOf(given).some(({ token }) => token === given.get('METRICS_TOKEN')?.text))
    faults.push({ parameter: shownAs('METRICS_TOKEN'), detail: 'must not be the token of an administrator' });
  const host = given.get('HOST')?.text ?? '127.0.0.1';
  const shared = given.has('REDIS_URL');
  if (shared && !hasCredentials(given)) {
    const detail = `all nodes of a deployment need the same credentials, so none are generated: set ${PREFIX}ADMIN_TOKEN and ${PREFIX}SECRET (or ${PREFIX}JWKS_URL) to the same values on each node`;
    faults.push({ parameter: shownAs('REDIS_URL'), detail });
  }
  if (isLoopback(host)) return faults;
  if (!shared && !hasCredentials(given)) {
    const detail = `${host} is reachable from other machines: set ADMIN_TOKEN, SECRET or JWKS_URL before listening on it`;
    faults.push({ parameter: shownAs('HOST'), detail });
  }
  if (adminTokensOf(given).some(({ token }) => token.length < NAMED_TOKEN_MIN)) {
    faults.push({
      parameter: shownAs('ADMIN_TOKEN'),
      detail: `expected at least 16 characters in each token when listening on ${host}`,
    });
  }
  return faults;
}

function adminTokensOf(given: ReadonlyMap<SettingName, Given>): readonly AdminToken[] {
  const texts = (given.get('ADMIN_TOKEN')?.text ?? '').split(',').map((text) => text.trim());
  return texts.filter((text) => text !== '').map(parseAdminToken);
}

function hasCredentials(given: ReadonlyMap<SettingName, Given>): boolean {
  return adminTokensOf(given).length > 0 || given.has('SECRET') || given.has('JWKS_URL');
}

function readPolicy(given: Given | undefined, faults: InputError[]): PolicyFile | null {
  if (!given) return null;
  const file = readSettingFile(given.text, given.shownAs);
  if (!('text' in file)) {
    faults.push(file);
    return null;
  }
  const read = parsePolicyFile(file.text);
  for (const fault of read.faults) {
    faults.push({ parameter: `${given.shownAs} ${fault.parameter}`.trim(), detail: fault.detail });
  }
  return read.policy;
}

function toConfig(
  settings: SettingValues,
  policy: PolicyFile | null,
  warnings: readonly string[],
): Omit<Config, 'tls' | 'files'> {
  const generated = settings.ADMIN_TOKEN.length === 0 && !settings.SECRET && !settings.JWKS_URL;
  return {
    host: settings.HOST,
    port: settings.PORT,
    basePath: settings.BASE_PATH,
    auth: authOf(settings, generated),
    generated,
    redis: redisOf(settings),
    nodeId: settings.NODE_ID ?? null,
    label: settings.LABEL ?? null,
    policy,
    retentionMs: settings.RETENTION_MS,
    idempotencyWindowMs: settings.IDEMPOTENCY_WINDOW_MS,
    streamMaxMessages: settings.STREAM_MAX_MESSAGES,
    shares: shareBounds(
      boundsGiven(settings),
      shareDefaults(settings.SPILL_DIR === undefined && settings.REDIS_URL === undefined),
    ),
    maxBodyBytes: settings.MAX_BODY_BYTES,
    unauthenticatedSockets: settings.UNAUTHENTICATED_SOCKETS_PER_ADDRESS,
    inboundBytesPerSecond: settings.INBOUND_BYTES_PER_SECOND,
    rawMessages: settings.RAW_MESSAGES,
    operatorConsole: settings.CONSOLE,
    spillDir: settings.SPILL_DIR ?? null,
    audit: auditOf(settings),
    reveal: settings.REVEAL,
    allowedOrigins: settings.ALLOWED_ORIGINS,
    trustProxy: settings.TRUST_PROXY,
    introspection: settings.INTROSPECTION,
    fastPath: settings.FAST_PATH,
    traceIds: settings.TRACE_IDS,
    logLevel: settings.LOG_LEVEL,
    warnings,
  };
}

function configurationError(faults: readonly InputError[]): CallboardError {
  const lines = faults.map(({ parameter, detail }) => `${parameter}: ${detail}`);
  return new CallboardError('invalid_argument', lines.join('\n'), { errors: faults });
}
