/** Reads and checks the configuration of a relay. */
import { randomBytes } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { parseArgs } from 'node:util';
import { readTarget, secretsOf } from './backends/redis/target.ts';
import { NAMED_TOKEN_MIN, parseAdminToken, type AdminToken, type PolicyFile } from './core/auth/principal.ts';
import { refuseInputs, type InputError } from './core/errors.ts';
import { shareBounds, type ShareBounds } from './core/shares/shares.ts';
import {
  DIRECT_ONLY,
  FILE_SETTINGS,
  FILE_SUFFIX,
  JWKS_ONLY,
  PREFIX,
  SETTINGS,
  SETTING_NAMES,
  SHARED_ONLY,
  SWITCHES,
  boundsGiven,
  isSettingName,
  parsePolicyFile,
  readSettingFile,
  settingOfFile,
  shareDefaults,
  shareFaults,
  type SettingName,
  type SettingValues,
} from './settings.ts';

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
  /** The address at which clients reach this relay and no other, in shared mode; null: it has none of its own. */
  readonly advertiseUrl: string | null;
  /** A name of the deployment for people, such as `staging`; null: it has none. */
  readonly label: string | null;
  /** The address of a trace, with `{traceId}` in place of its id; null: traces are shown nowhere. */
  readonly traceUrl: string | null;
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
  /**
   * Whether the relay serves agents at `/mcp`. `on`: it does, and the package that this needs must be installed.
   * `if_installed`: it does if that package is installed.
   */
  readonly mcp: 'on' | 'off' | 'if_installed';
  /** The directory in which direct mode keeps what outlives the process; null: nothing does. */
  readonly dataDir: string | null;
  /**
   * When what was recorded is synced to the disk: after so many milliseconds at most, before each answer (`always`), or
   * when the system does it (`off`).
   */
  readonly dataSync: SettingValues['DATA_SYNC'];
  /**
   * The directory for large payloads; null: they are kept in the data directory, without one in memory, or in Redis in
   * shared mode.
   */
  readonly spillDir: string | null;
  readonly audit: AuditConfig;
  /** How administrators may read payloads. */
  readonly reveal: SettingValues['REVEAL'];
  readonly allowedOrigins: readonly string[];
  /**
   * The proxies in front whose forwarding headers are trusted: a number of them, each of which appends to the headers.
   * `false` or 0: none; `true`: one.
   */
  readonly trustProxy: boolean | number;
  /** How long an HTTP connection may be idle between two requests. */
  readonly keepAliveMs: number;
  /** The interval of pings over links and event streams. */
  readonly pingMs: number;
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
 * as unset. Throws a single `invalid_argument` that names all faults. `policyFaults`: receives the faults of the policy
 * file, which then has no policy; absent: they are among those that are thrown.
 */
export function readConfig(env: Environment, argv: readonly string[], policyFaults?: InputError[]): Config {
  const { given, files, faults } = collectGiven(env, argv);
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
  // Each issue of the schema is among the faults, so this throws nothing.
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

/** Whether large payloads are kept in memory, as far as the settings tell. */
function spillsInMemory(isSet: (name: 'SPILL_DIR' | 'DATA_DIR' | 'REDIS_URL') => boolean): boolean {
  return !isSet('SPILL_DIR') && !isSet('DATA_DIR') && !isSet('REDIS_URL');
}

/** Whether this host is reachable only from the machine itself. */
function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host === '[::1]' || /^127(\.\d{1,3}){3}$/.test(host);
}

/**
 * Returns the faults in combinations of settings. Checks the texts and not the parsed values, so that these faults are
 * reported together with the faults of single settings.
 */
function togetherFaults(given: ReadonlyMap<SettingName, Given>, shownAs: (name: SettingName) => string): InputError[] {
  const faults: InputError[] = [];
  const add = (name: SettingName, detail: string): void => void faults.push({ parameter: shownAs(name), detail });
  // Rows in a file outlive the process, so the key that signs them must be configured too.
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

function adminTokensOf(given: ReadonlyMap<SettingName, Given>): readonly AdminToken[] {
  const texts = (given.get('ADMIN_TOKEN')?.text ?? '').split(',').map((text) => text.trim());
  return texts.filter((text) => text !== '').map(parseAdminToken);
}

function readPolicy(given: Given | undefined, faults: InputError[]): PolicyFile | null {
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

/** A trial serves agents if it can. Otherwise they are served only if that is asked for. */
function mcpOf({ MCP }: SettingValues, isTrial: boolean): Config['mcp'] {
  if (MCP === undefined) return isTrial ? 'if_installed' : 'off';
  return MCP ? 'on' : 'off';
}

// Collects the texts of settings from variables, flags and files. Does not parse them.

type Environment = Readonly<Record<string, string | undefined>>;
/** The text of a setting, and the name of the variable or flag that gives it. */
type Given = { readonly text: string; readonly shownAs: string };
type Collected = {
  readonly given: Map<SettingName, Given>;
  /** The files that were read. */
  readonly files: string[];
  readonly faults: InputError[];
};

/**
 * Collects the texts of all settings in variables, files and flags, and the faults in them. Flags take precedence over
 * variables. A setting for which variables give both a text and a file is a fault.
 */
function collectGiven(env: Environment, argv: readonly string[]): Collected {
  const given = new Map<SettingName, Given>();
  const files: string[] = [];
  const faults: InputError[] = [];
  for (const name of SETTING_NAMES) {
    const text = env[PREFIX + name];
    if (text !== undefined && text !== '') given.set(name, { text, shownAs: PREFIX + name });
  }
  for (const name of FILE_SETTINGS) {
    const path = env[PREFIX + name + FILE_SUFFIX];
    if (path === undefined || path === '') continue;
    const shownAs = PREFIX + name + FILE_SUFFIX;
    if (given.has(name)) faults.push({ parameter: shownAs, detail: `is not allowed together with ${PREFIX + name}` });
    else addFile(name, { text: path, shownAs }, { given, files, faults });
  }
  collectFlags(argv, { given, files, faults });
  return { given, files, faults };
}

function addFile(name: SettingName, at: Given, { given, files, faults }: Collected): void {
  files.push(at.text);
  const text = textOf(at, faults);
  if (text !== null) given.set(name, { text, shownAs: at.shownAs });
}

function collectFlags(argv: readonly string[], collected: Collected): void {
  const { given, faults } = collected;
  const options = Object.fromEntries([
    ...SETTING_NAMES.map((name) => [flagOf(name), { type: SWITCHES.has(name) ? 'boolean' : 'string' } as const]),
    ...FILE_SETTINGS.map((name) => [flagOf(name + FILE_SUFFIX), { type: 'string' } as const]),
  ]);
  const { tokens } = parseArgs({ args: [...argv], options, strict: false, tokens: true, allowPositionals: true });
  for (const token of tokens) {
    if (token.kind === 'positional') faults.push({ parameter: token.value, detail: 'is not expected here' });
    if (token.kind !== 'option') continue;
    const shownAs = `--${token.name}`;
    const flag = readFlag(token.name);
    if (flag === null) {
      faults.push({ parameter: token.rawName, detail: 'is not a known flag' });
      continue;
    }
    const text = token.value ?? flag.alone;
    if (text === undefined || text === '') faults.push({ parameter: shownAs, detail: 'needs a value' });
    else if (flag.off && token.value !== undefined) faults.push({ parameter: shownAs, detail: 'takes no value' });
    else if (flag.file) addFile(flag.name, { text, shownAs }, collected);
    else given.set(flag.name, { text, shownAs });
  }
}

/**
 * Returns the setting that a flag sets; null if the flag is unknown. `alone` is the value of a flag that is given
 * without a text. `--fast-path` and `--no-fast-path` set the same setting to different values.
 */
function readFlag(flag: string): ReadFlag | null {
  const off = flag.startsWith('no-');
  const written = off ? flag.slice('no-'.length) : flag;
  const name = written.replaceAll('-', '_').toUpperCase();
  const inFile = settingOfFile(name);
  if (inFile !== null) return off || flagOf(name) !== written ? null : { name: inFile, off, file: true };
  if (!isSettingName(name) || flagOf(name) !== written) return null;
  if (SWITCHES.has(name)) return { name, alone: String(!off), off };
  return off ? null : { name, off };
}

type ReadFlag = {
  readonly name: SettingName;
  readonly alone?: string;
  readonly off: boolean;
  /** Whether the value is the path of a file that has the setting's text. */
  readonly file?: boolean;
};

function flagOf(name: string): string {
  return name.toLowerCase().replaceAll('_', '-');
}

// Reads the settings that decide which tokens a relay accepts, and lists the values that must never be logged.

export type AuthConfig = {
  /** The administrators' tokens. Each is a bare token or `name=token`. */
  readonly adminTokens: readonly string[];
  /** The key that signs and verifies tokens (HS256); null: no signed tokens are accepted. */
  readonly secret: string | null;
  /** The token that reads `/metrics` and nothing else; null: only administrators may read it. */
  readonly metricsToken?: string | null;
  /** A second key that verifies tokens while the secret is being replaced; null: none. */
  readonly previousSecret?: string | null;
  readonly jwksUrl: string | null;
  /** The issuers and audiences of which every JWT must have one; null or empty: any. */
  readonly issuer: string | readonly string[] | null;
  readonly audience: string | readonly string[] | null;
  /** Whether `client_id` counts as the audience of a token of `jwksUrl` that has no `aud`. */
  readonly audienceFromClientId?: boolean;
  /** The paths of claims with the user's id, in tokens of `jwksUrl`; default `sub`. */
  readonly userClaim?: string | readonly string[] | null;
  /** Whether users in tokens of `jwksUrl` are made canonical. Default: another form of a user is refused. */
  readonly foldUsers?: boolean;
  /** The paths of claims with the scopes, in tokens of `jwksUrl`; default `scope`, `scp` and `permissions`. */
  readonly scopeClaim?: string | readonly string[] | null;
  /** The prefix of the names of scopes, in tokens of `jwksUrl`; default none. */
  readonly scopePrefix?: string;
};

/** Reads the credentials from settings. `generated`: none are configured, so they are generated for this run. */
function authOf(settings: SettingValues, generated: boolean): AuthConfig {
  return {
    adminTokens: generated ? [randomBytes(24).toString('base64url')] : settings.ADMIN_TOKEN,
    metricsToken: settings.METRICS_TOKEN ?? null,
    secret: generated ? randomBytes(32).toString('base64url') : (settings.SECRET?.[0] ?? null),
    previousSecret: settings.SECRET?.[1] ?? null,
    jwksUrl: settings.JWKS_URL ?? null,
    issuer: settings.ISSUER ?? null,
    audience: settings.AUDIENCE ?? null,
    audienceFromClientId: settings.AUDIENCE_FROM_CLIENT_ID,
    foldUsers: settings.FOLD_USERS,
    userClaim: settings.USER_CLAIM ?? null,
    scopeClaim: settings.SCOPE_CLAIM ?? null,
    scopePrefix: settings.SCOPE_PREFIX,
  };
}

/** Returns the values of a configuration that must never be logged or printed. */
export function secretsIn({
  auth,
  redis,
  audit,
}: {
  readonly auth: AuthConfig;
  readonly audit: Pick<AuditConfig, 'key' | 'earlierKeys'>;
  readonly redis: Pick<RedisConfig, 'url'> | null;
}): readonly string[] {
  const tokens = auth.adminTokens.map((text) => parseAdminToken(text).token);
  const keys = [audit.key, ...audit.earlierKeys];
  const secrets = [auth.secret, auth.previousSecret, auth.metricsToken, ...keys].filter(
    (secret) => typeof secret === 'string',
  );
  const own = [...tokens, ...secrets];
  return redis ? [...own, ...secretsOf(readTarget(redis.url))] : own;
}

// The settings of the Redis that the nodes of a deployment share.

/** The authorities that sign Redis' certificates, and the certificate of the relay with its key, as PEM texts. */
export type RedisCertificates = { readonly ca?: string; readonly cert?: string; readonly key?: string };

export type RedisConfig = {
  /** The URL of Redis. It may contain a password, so it must never be logged or printed. */
  readonly url: string;
  /**
   * `redis`: Redis decides, by scripts. `owned`: relays decide, each for the users that it owns, and Redis has their logs.
   * Absent: `redis`.
   */
  readonly store?: 'redis' | 'owned';
  readonly partitions: number;
  /**
   * The durability of the store, as declared. Null: the relay takes what Redis reports, and Redis must write to disk.
   */
  readonly durability: 'memory' | 'aof_everysec' | 'aof_always' | null;
  readonly namespace: string;
  readonly strictMigration: boolean;
  /** The certificates for TLS; absent: those that Node trusts. */
  readonly certificates?: RedisCertificates;
  /** The keys of an earlier system in the same Redis. */
  readonly legacy: { readonly commandStream: string | null; readonly pending: string | null };
};

function redisOf(settings: SettingValues): RedisConfig | null {
  if (settings.REDIS_URL === undefined) return null;
  return {
    url: settings.REDIS_URL,
    store: settings.STORE,
    partitions: settings.PARTITIONS,
    durability: settings.DURABILITY ?? null,
    namespace: settings.NAMESPACE,
    strictMigration: settings.STRICT_MIGRATION,
    legacy: { commandStream: settings.LEGACY_COMMAND_STREAM ?? null, pending: settings.LEGACY_PENDING ?? null },
  };
}

// Reads the settings of the audit.

export type AuditConfig = {
  /** The file of the audit's rows in direct mode; null: they are kept in memory. */
  readonly file: string | null;
  /**
   * The key with which rows are signed; null: a key derived from the secret of tokens, or without a secret the key of
   * cursors.
   */
  readonly key: string | null;
  /** The keys with which earlier rows were signed. They only verify rows. */
  readonly earlierKeys: readonly string[];
  readonly days: number;
  readonly maxRows: number;
};

function auditOf(settings: SettingValues): AuditConfig {
  const { AUDIT_FILE: file = null, AUDIT_KEY: keys = [], AUDIT_DAYS: days, AUDIT_MAX_ROWS: maxRows } = settings;
  const [key = null, ...earlierKeys] = keys;
  return { file, key, earlierKeys, days, maxRows };
}

// Reads the certificate and the key with which the relay itself speaks TLS.

/** A certificate and its key as PEM texts. The certificate may be followed by its chain. */
export type TlsConfig = { readonly cert: string; readonly key: string };

/**
 * Returns the texts of the files that TLS_CERT and TLS_KEY name; null if neither is set. If there is a fault, adds it
 * to `faults` and returns null.
 */
function tlsOf(given: ReadonlyMap<SettingName, Given>, faults: InputError[]): TlsConfig | null {
  const [certFile, keyFile] = [given.get('TLS_CERT'), given.get('TLS_KEY')];
  if (!certFile || !keyFile) {
    const alone = certFile ?? keyFile;
    const missing = certFile ? 'TLS_KEY' : 'TLS_CERT';
    if (alone) faults.push({ parameter: alone.shownAs, detail: `needs ${missing} too` });
    return null;
  }
  const cert = textOf(certFile, faults);
  const key = textOf(keyFile, faults);
  if (cert === null || key === null) return null;
  try {
    createSecureContext({ cert, key });
    return { cert, key };
  } catch {
    // The error of OpenSSL is not shown, because it may quote the key.
    faults.push({
      parameter: certFile.shownAs,
      detail: 'the certificate and the key are not PEM texts that fit together',
    });
    return null;
  }
}

/** Returns the texts of the files of REDIS_TLS_CA, REDIS_TLS_CERT and REDIS_TLS_KEY. Adds faults to `faults`. */
function redisCertificatesOf(given: ReadonlyMap<SettingName, Given>, faults: InputError[]): RedisCertificates {
  const textIn = (name: SettingName): string | null => {
    const at = given.get(name);
    return at ? textOf(at, faults) : null;
  };
  const [certFile, keyFile] = [given.get('REDIS_TLS_CERT'), given.get('REDIS_TLS_KEY')];
  const alone = certFile && keyFile ? undefined : (certFile ?? keyFile);
  if (alone) faults.push({ parameter: alone.shownAs, detail: `needs REDIS_TLS_${certFile ? 'KEY' : 'CERT'} too` });
  const [ca, cert, key] = [textIn('REDIS_TLS_CA'), textIn('REDIS_TLS_CERT'), textIn('REDIS_TLS_KEY')];
  const texts = { ...(ca !== null && { ca }), ...(cert !== null && { cert }), ...(key !== null && { key }) };
  try {
    createSecureContext(texts);
  } catch {
    // The error of OpenSSL is not shown, because it may quote the key.
    const at = given.get('REDIS_TLS_CERT') ?? given.get('REDIS_TLS_CA');
    if (at)
      faults.push({
        parameter: at.shownAs,
        detail: 'the certificates and the key are not PEM texts that fit together',
      });
  }
  return texts;
}

/** Returns the text of the file that a setting names. If it cannot be read, adds a fault and returns null. */
function textOf({ text: path, shownAs }: Given, faults: InputError[]): string | null {
  const read = readSettingFile(path, shownAs);
  if ('text' in read) return read.text;
  faults.push(read);
  return null;
}

// Builds the warnings in the log about settings without effect, and about variables that are not settings.

function warningsOf(env: Environment, given: ReadonlyMap<SettingName, Given>): string[] {
  const shared = given.has('REDIS_URL');
  const idle = (shared ? DIRECT_ONLY : SHARED_ONLY)
    .filter((name) => given.has(name))
    .map((name) => `${given.get(name)?.shownAs} has no effect ${shared ? 'with' : 'without'} ${PREFIX}REDIS_URL.`);
  // These are warnings and not faults, because container platforms set such variables themselves:
  // CALLBOARD_SERVICE_HOST for a service named `callboard`.
  const strange = Object.keys(env)
    .filter((key) => key.startsWith(PREFIX) && !isSettingName(key.slice(PREFIX.length)))
    .filter((key) => settingOfFile(key.slice(PREFIX.length)) === null)
    .map((key) => `${key} is not a setting and was ignored.`);
  const unread = given.has('JWKS_URL') ? [] : JWKS_ONLY.filter((name) => given.has(name));
  const without = unread.map((name) => `${given.get(name)?.shownAs} has no effect without ${PREFIX}JWKS_URL.`);
  return [...idle, ...without, ...strange];
}
