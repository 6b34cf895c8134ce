/** Reads and checks the configuration of a relay. */
import { type AuditConfig, auditOf } from './config/audit-config.ts';
import { type AuthConfig, authOf } from './config/auth-config.ts';
import { collectTexts, type Environment, type SettingText, textOf } from './config/setting-texts.ts';
import { type RedisConfig, redisCertificatesOf, redisOf } from './config/redis-config.ts';
import { type TlsConfig, tlsOf } from './config/tls-config.ts';
import { warningsOf } from './config/warnings.ts';
import { NAMED_TOKEN_MIN, parseAdminToken, type AdminToken } from './core/auth/admin-token.ts';
import type { PolicyFile } from './core/auth/policy-file.ts';
import { refuseInputs, type InputError } from './core/errors.ts';
import { shareBounds, type ShareBounds } from './core/shares/share-bounds.ts';
import { PREFIX, SETTINGS, isSettingName, type SettingName, type SettingValues } from './settings.ts';
import { parsePolicyFile } from './settings/policy-file-format.ts';
import { boundsGiven, shareDefaults, shareFaults } from './settings/share-settings.ts';

/** The checked configuration of a relay. Sizes are in bytes, and times in milliseconds. */
export type Config = {
  readonly host: string;
  readonly port: number;
  readonly basePath: string;
  readonly auth: AuthConfig;
  /** The certificate and key; null: the relay serves HTTP without TLS. */
  readonly tls: TlsConfig | null;
  /** The files from which settings were read. They may be replaced while the relay runs. */
  readonly files: readonly string[];
  /**
   * Whether the credentials were generated for this run, because none are configured. This is possible only on a
   * loopback address in direct mode. The program must then show them to the user.
   */
  readonly generated: boolean;
  /** The shared Redis; null: direct mode, in which everything is in this process. */
  readonly redis: RedisConfig | null;
  readonly nodeId: string | null;
  /** The address at which clients reach this relay and no other one, in shared mode; null if it has none. */
  readonly advertiseUrl: string | null;
  /** A name of the deployment for people, such as `staging`; null if it has none. */
  readonly label: string | null;
  /** The address at which a trace is shown, with `{traceId}` in place of its id; null if there is none. */
  readonly traceUrl: string | null;
  readonly policy: PolicyFile | null;
  readonly retentionMs: number;
  /** How long the id of an ended command stays known, in milliseconds. */
  readonly idempotencyWindowMs: number;
  readonly streamMaxMessages: number;
  /** For each share, the guarantee of one user and the total of all users. */
  readonly shares: ShareBounds;
  readonly maxBodyBytes: number;
  /** The most open sockets without a valid token per address. Not applied with `trustProxy`. */
  readonly unauthenticatedSockets: number;
  /** The bytes per second that one user may send, over links and HTTP bodies together. */
  readonly inboundBytesPerSecond: number;
  /** Whether administrators may read the raw sample of history. */
  readonly rawMessages: boolean;
  /** Whether the relay serves the console at `/console/`. */
  readonly operatorConsole: boolean;
  /**
   * Whether the relay serves agents at `/mcp`. `on`: it does, and the package for this must be installed.
   * `if_installed`: it does if the package is installed.
   */
  readonly mcp: 'on' | 'off' | 'if_installed';
  /** The directory in which direct mode stores what must survive the process; null: nothing survives. */
  readonly dataDir: string | null;
  /**
   * When records are synced to the disk: at most so many milliseconds later, before each answer (`always`), or whenever
   * the operating system does it (`off`).
   */
  readonly dataSync: SettingValues['DATA_SYNC'];
  /**
   * The directory for large payloads. Null: they are stored in Redis in shared mode, in the data directory if there is
   * one, and in memory otherwise.
   */
  readonly spillDir: string | null;
  readonly audit: AuditConfig;
  /** How administrators may read payloads. */
  readonly reveal: SettingValues['REVEAL'];
  readonly allowedOrigins: readonly string[];
  /**
   * How many proxies are in front of the relay. The relay trusts the forwarding headers that each of them extends.
   * `false` or 0: none. `true`: one.
   */
  readonly trustProxy: boolean | number;
  /** How long an HTTP connection may be idle between two requests. */
  readonly keepAliveMs: number;
  /** The interval of pings on links and event streams. */
  readonly pingMs: number;
  readonly introspection: SettingValues['INTROSPECTION'];
  /**
   * Whether the fast path is used: shortcuts for known documents, and work that is shared by many subscribers. The
   * bytes of responses are the same with and without it.
   */
  readonly fastPath: boolean;
  /** Whether trace spans contain user and client ids, which are personal data. */
  readonly traceIds: boolean;
  readonly logLevel: SettingValues['LOG_LEVEL'];
  /**
   * Warnings for the log: variables with the prefix that are not settings, and settings that have no effect in the
   * current mode.
   */
  readonly warnings: readonly string[];
};

/**
 * Reads the configuration from variables `CALLBOARD_X` and flags `--x`. A flag overrides a variable. An empty variable
 * counts as absent. Throws one `invalid_argument` that names all faults. `policyFaults`: receives the faults of the
 * policy file instead, and the configuration then has no policy.
 */
export function readConfig(env: Environment, argv: readonly string[], policyFaults?: InputError[]): Config {
  const { given, files, faults } = collectTexts(env, argv);
  const shownAs = (name: SettingName): string => given.get(name)?.shownAs ?? PREFIX + name;
  const texts = Object.fromEntries([...given].map(([name, { text }]) => [name, text]));
  const parsed = SETTINGS.safeParse(texts);
  for (const issue of parsed.error?.issues ?? []) {
    const name = String(issue.path[0]);
    faults.push({ parameter: isSettingName(name) ? shownAs(name) : name, detail: issue.message });
  }
  faults.push(...togetherFaults(given, shownAs));
  const inMemory = spillsInMemory((name) => given.has(name));
  const overdrawn = shareFaults((name) => given.get(name)?.text, inMemory);
  for (const [name, detail] of overdrawn) faults.push({ parameter: shownAs(name), detail });
  const policy = readPolicy(given.get('POLICY_FILE'), policyFaults ?? faults);
  const tls = tlsOf(given, faults);
  const certificates = redisCertificatesOf(given, faults);
  refuseInputs(faults, '\n');
  // The issues of the schema are among the faults that were thrown above, so this line never throws.
  if (!parsed.success) throw parsed.error;
  const named = (['TLS_CERT', 'TLS_KEY', 'POLICY_FILE'] as const).map((name) => given.get(name));
  const paths = [...files, ...named.flatMap((at) => (at ? [at.text] : []))];
  const config = toConfig(parsed.data, policy, warningsOf(env, given));
  return {
    ...config,
    redis: config.redis && { ...config.redis, ...(Object.keys(certificates).length > 0 && { certificates }) },
    tls,
    files: paths,
  };
}

/** Whether large payloads are kept in memory, according to the settings. */
function spillsInMemory(isSet: (name: 'SPILL_DIR' | 'DATA_DIR' | 'REDIS_URL') => boolean): boolean {
  return !isSet('SPILL_DIR') && !isSet('DATA_DIR') && !isSet('REDIS_URL');
}

/** Whether this host can be reached only from this machine. */
function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host === '[::1]' || /^127(\.\d{1,3}){3}$/.test(host);
}

/**
 * Returns the faults in combinations of settings. It checks the texts instead of the parsed values, so that these
 * faults are reported together with those of single settings.
 */
function togetherFaults(
  given: ReadonlyMap<SettingName, SettingText>,
  shownAs: (name: SettingName) => string,
): InputError[] {
  const faults: InputError[] = [];
  const add = (name: SettingName, detail: string): void => void faults.push({ parameter: shownAs(name), detail });
  // Rows in a file survive the process, so the key that signs them must be configured.
  if (given.has('AUDIT_FILE') && !given.has('AUDIT_KEY') && !given.has('SECRET'))
    add('AUDIT_FILE', 'needs AUDIT_KEY or SECRET, which sign the rows');
  if (given.has('JWKS_URL')) {
    for (const name of ['ISSUER', 'AUDIENCE'] as const) if (!given.has(name)) add(name, 'is required with JWKS_URL');
  }
  const adminTokens = adminTokensOf(given);
  if (adminTokens.some(({ name, token }) => name !== null && token.length < NAMED_TOKEN_MIN))
    add('ADMIN_TOKEN', 'expected at least 16 characters in a token with a name');
  if (adminTokens.some(({ token }) => token === given.get('METRICS_TOKEN')?.text))
    add('METRICS_TOKEN', 'must not be the token of an administrator');
  const host = given.get('HOST')?.text ?? '127.0.0.1';
  const shared = given.has('REDIS_URL');
  const hasCredentials = adminTokens.length > 0 || given.has('SECRET') || given.has('JWKS_URL');
  if (shared && !hasCredentials)
    add(
      'REDIS_URL',
      `all nodes of a deployment need the same credentials, so none are generated: set ${PREFIX}ADMIN_TOKEN and ${PREFIX}SECRET (or ${PREFIX}JWKS_URL) to the same values on each node`,
    );
  if (isLoopback(host)) return faults;
  if (!shared && !hasCredentials)
    add('HOST', `${host} is reachable from other machines: set ADMIN_TOKEN, SECRET or JWKS_URL before listening on it`);
  if (adminTokens.some(({ token }) => token.length < NAMED_TOKEN_MIN))
    add('ADMIN_TOKEN', `expected at least 16 characters in each token when listening on ${host}`);
  return faults;
}

function adminTokensOf(given: ReadonlyMap<SettingName, SettingText>): readonly AdminToken[] {
  const texts = (given.get('ADMIN_TOKEN')?.text ?? '').split(',').map((text) => text.trim());
  return texts.filter((text) => text !== '').map(parseAdminToken);
}

function readPolicy(given: SettingText | undefined, faults: InputError[]): PolicyFile | null {
  if (!given) return null;
  const text = textOf(given, faults);
  if (text === null) return null;
  const read = parsePolicyFile(text);
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
    advertiseUrl: settings.ADVERTISE_URL ?? null,
    label: settings.LABEL ?? null,
    traceUrl: settings.TRACE_URL ?? null,
    policy,
    retentionMs: settings.RETENTION_MS,
    idempotencyWindowMs: settings.IDEMPOTENCY_WINDOW_MS,
    streamMaxMessages: settings.STREAM_MAX_MESSAGES,
    shares: shareBounds(boundsGiven(settings), shareDefaults(spillsInMemory((name) => settings[name] !== undefined))),
    maxBodyBytes: settings.MAX_BODY_BYTES,
    unauthenticatedSockets: settings.UNAUTHENTICATED_SOCKETS_PER_ADDRESS,
    inboundBytesPerSecond: settings.INBOUND_BYTES_PER_SECOND,
    rawMessages: settings.RAW_MESSAGES,
    operatorConsole: settings.CONSOLE,
    mcp: mcpOf(settings, generated),
    dataDir: settings.REDIS_URL === undefined ? (settings.DATA_DIR ?? null) : null,
    dataSync: settings.DATA_SYNC,
    spillDir: settings.SPILL_DIR ?? null,
    audit: auditOf(settings),
    reveal: settings.REVEAL,
    allowedOrigins: settings.ALLOWED_ORIGINS,
    trustProxy: settings.TRUST_PROXY,
    keepAliveMs: settings.KEEP_ALIVE_MS,
    pingMs: settings.PING_MS,
    introspection: settings.INTROSPECTION,
    fastPath: settings.FAST_PATH,
    traceIds: settings.TRACE_IDS,
    logLevel: settings.LOG_LEVEL,
    warnings,
  };
}

/**
 * Returns whether agents are served. By default, a trial serves them if the package is installed, and other relays do
 * not.
 */
function mcpOf({ MCP }: SettingValues, isTrial: boolean): Config['mcp'] {
  if (MCP === undefined) return isTrial ? 'if_installed' : 'off';
  return MCP ? 'on' : 'off';
}
