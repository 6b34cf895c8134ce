/** The composition root: the only place where the backend, core, the handlers and the server are connected. */
import { hkdfSync, randomBytes } from 'node:crypto';
import { createRequire } from 'node:module';
import { setImmediate } from 'node:timers/promises';
import { openAuditFile } from './backends/memory/audit.ts';
import { createMemoryBackend } from './backends/memory/backend.ts';
import type { OpenRedis, RedisBackendOptions } from './backends/redis/open.ts';
import { createDirectorySpill } from './backends/spill/directory.ts';
import { createSpillFiles } from './backends/spill/files.ts';
import { createMemorySpill } from './backends/spill/memory.ts';
import { createSpillThread } from './backends/spill/thread.ts';
import type { AuditConfig } from './config/audit-config.ts';
import type { AuthConfig } from './config/auth-config.ts';
import type { RedisConfig } from './config/redis-config.ts';
import type { TlsConfig } from './config/tls-config.ts';
import type { Config } from './config.ts';
import type { AuditSign } from './core/audit/audit-rows.ts';
import type { AuditBounds } from './core/audit/audit.ts';
import { FIXED_POLICY, LivePolicy, scopeMapOf, type PolicyControl } from './core/auth/live-policy.ts';
import type { Policy } from './core/auth/policy.ts';
import type { Authenticator } from './core/auth/principal.ts';
import type { Backend } from './core/backend.ts';
import { createCore, type Core } from './core/core.ts';
import { CallboardError, fail } from './core/errors.ts';
import type { SpillStore } from './core/history/message.ts';
import { AUDIT_KEEP_MS, AUDIT_ROWS, DRAIN_MS, MAX_BODY_BYTES, RETENTION_MS, STREAM_MESSAGES } from './core/limits.ts';
import { Cursors } from './core/cursors.ts';
import { silentLog, type Clock, type Crypto, type Log } from './core/ports.ts';
import { SPILL_IN_MEMORY, shareBounds, type GivenBounds, type ShareBound } from './core/shares/share-bounds.ts';
import { createShares, type Shares } from './core/shares/shares.ts';
import { createApp, type App } from './http/app.ts';
import { attachHandler, createHttpServer, type Attachment, type HostServer, type HttpServer } from './http/server.ts';
import { withGrants, withRevocations } from './http/authenticate-request.ts';
import { createCredentials, type ReplacedCredentials } from './http/authenticator.ts';
import type { SignIn } from './http/sign-in.ts';
import { createMetrics, type Meter } from './platform/metrics.ts';
import { descriptorLimit, withinDescriptors } from './platform/open-files.ts';
import { createCrypto, steadyClock, systemClock, systemLoop, systemProcess } from './platform/system.ts';
import { createTracing, type TraceApi } from './platform/tracing.ts';
import { checkRanges } from './settings/ranges.ts';
import { DATA_SYNC_MS, checkAdvertiseUrl } from './settings.ts';
import { VERSION } from './version.ts';

export type CallboardOptions = {
  readonly config: Settings;
  /** The storage to use instead of Redis or this process's memory. The relay closes it when it closes. */
  readonly backend?: Backend;
  /** The spill store to use instead of the default one. If it is not `managed`, the relay never cleans it. */
  readonly spill?: SpillStore;
  readonly clock?: Clock;
  readonly log?: Log;
  /** The policy to use instead of the one in `config`. */
  readonly policy?: Policy;
  /** Signs the GraphQL editor in with a code in its URL; see `createSignIn`. */
  readonly signIn?: SignIn;
  /**
   * Called with the reason if the data directory cannot be used; the relay then runs in memory. Absent: `openCallboard`
   * throws `store_unavailable`.
   */
  readonly onDataUnusable?: (reason: string) => void;
  /** The `trace` object of `@opentelemetry/api`. Absent: the relay records no trace spans. */
  readonly tracing?: TraceApi;
};

/** A relay in this process. */
export interface Callboard extends AsyncDisposable {
  readonly core: Core;
  /** Resolves tokens to principals. HTTP requests and links use it. */
  readonly authenticator: Authenticator;
  /** The URL of the relay, including the base path; null until the relay, or the server that it is in, listens. */
  readonly url: string | null;
  /**
   * Starts the relay and resolves with its URL. Call it once. Default: a free port of 127.0.0.1. `fd`: a listening
   * socket.
   */
  listen(at?: { readonly host?: string; readonly port?: number; readonly fd?: number }): Promise<string>;
  /**
   * Loads the modules that only some requests need: when no request has arrived for a second, and after five seconds at
   * the latest. Without this, the first such request loads them, and other requests wait meanwhile.
   */
  preload(): void;
  /** Replaces the configured credentials from the next token on. Tokens of `jwksUrl` stay valid. Closes no link. */
  replaceCredentials(credentials: ReplacedCredentials): void;
  /**
   * Uses the login in this URL for all connections to Redis that are made from now on. If anything but the login
   * differs from the URL with which the relay was opened, changes nothing and returns false.
   */
  replaceRedisLogin(url: string): boolean;
  /**
   * Serves this certificate to new connections. Throws, and keeps the present certificate, if the relay was opened
   * without TLS or if the certificate and key do not fit together.
   */
  replaceCertificate(tls: TlsConfig): void;
  /** Replaces the policy file. It cannot replace a policy that the program passed. */
  readonly policy: PolicyControl;
  /**
   * Marks the node as not ready, admits no more commands, gives running commands at most `withinMs` milliseconds
   * (default 10 000) to end, and then closes the links.
   */
  drain(withinMs?: number): Promise<void>;
  /**
   * Drains for at most `withinMs` milliseconds (default 0), answers waiting callers, closes links with `draining`, and
   * closes everything else. Idempotent.
   */
  close(options?: { readonly withinMs?: number }): Promise<void>;
  /**
   * Ends all connections as a crash would: unfinished HTTP responses are never sent, and links are closed with
   * `internal` (4490). Drains and stores nothing; other nodes clean up as after a crash. Resolves when the links are
   * closed, or after one second. Call it after an uncaught error, and then exit the process.
   */
  abort(): Promise<void>;
}

/**
 * Opens a relay over the Redis in `config` or, if there is none, in this process's memory, with the data directory in
 * `config` if there is one. Throws `store_unavailable` if Redis cannot be reached or the directory cannot be used, and
 * `invalid_argument` if Redis is unsuitable. The node joins the deployment at `listen`.
 */
export async function openCallboard(options: CallboardOptions): Promise<Callboard> {
  return (await open(options)).callboard;
}

async function open(options: CallboardOptions): Promise<Composed> {
  const { redis, dataDir } = options.config;
  if (options.backend) return createInMemory(options);
  if (redis) return compose(options, await openShared(options, redis));
  if (!dataDir) return createInMemory(options);
  const { onDataUnusable } = options;
  const place = await openDirectory(options, dataDir).catch((error: unknown) => {
    if (!onDataUnusable || !(error instanceof CallboardError) || error.code !== 'store_unavailable') throw error;
    onDataUnusable(error.cause instanceof Error ? `${error.message} (${error.cause.message})` : error.message);
    return null;
  });
  return place ? compose(options, place) : createInMemory({ ...options, config: { ...options.config, dataDir: null } });
}

export type AttachOptions = CallboardOptions & {
  /** The path below which requests and upgrades go to the relay, such as `/relay`; not the root. */
  readonly basePath: string;
};

/**
 * Opens a relay, like `openCallboard`, and serves it below `basePath` in the program's HTTP server. The relay gets
 * requests and upgrades below that path before all listeners of the server. Do not call `listen`. Certificate and
 * timeouts are those of the server. Closing the relay removes it from the server. Throws `invalid_argument` for an
 * unsuitable base path.
 */
export async function attach(server: HostServer, { basePath, ...options }: AttachOptions): Promise<Callboard> {
  const relay = await open({ ...options, config: { ...options.config, basePath } });
  try {
    await relay.attach(server);
  } catch (error) {
    await relay.callboard.close();
    throw error;
  }
  return relay.callboard;
}

/**
 * Creates a relay synchronously, in memory or over the given `backend`. Throws `invalid_argument` for numbers out of
 * range and for a Redis without a `backend`, and `internal` if the REST documents do not fit the schema.
 */
export function createCallboard(options: CallboardOptions): Callboard {
  return createInMemory(options).callboard;
}

function createInMemory(options: CallboardOptions): Composed {
  const { config, log = silentLog } = options;
  const clock = steadyClock(options.clock ?? systemClock);
  if ((config.redis || config.dataDir) && !options.backend)
    fail('invalid_argument', 'Use openCallboard for a relay over Redis or with a data directory.');
  // In direct mode no cursor survives the process, so a random key is enough.
  const crypto = createCrypto(randomBytes(32));
  const shares = sharesOf(config, fitSockets);
  const meter = createMetrics(() => clock.now());
  const backend =
    options.backend ??
    createMemoryBackend({
      ...{ clock, log, shares, metrics: meter, sha256: crypto.sha256, markSecret: crypto.randomToken() },
      idempotencyWindowMs: config.idempotencyWindowMs,
      history: historyLimitsOf(config, shares),
      audit: config.audit?.file ? openAuditFile(config.audit.file, log) : undefined,
    });
  const spill = options.spill ?? spillStore(config.spillDir ?? null, { clock, log, crypto, shares });
  return compose(options, { backend, spill, crypto, clock, shares, meter });
}

/** The storage of a relay, with the clock whose times are stored. */
type Place = {
  readonly backend: Backend;
  readonly spill: SpillStore;
  readonly crypto: Crypto;
  readonly clock: Clock;
  readonly shares: Shares;
  readonly meter: Meter;
  /** The id of the node. Absent: the id in the settings, or a random one. */
  readonly nodeId?: string;
  /** Replaces the login for Redis (see `Callboard.replaceRedisLogin`). Absent if the relay uses no Redis. */
  readonly replaceLogin?: (url: string) => boolean;
};

/** Opens a data directory. Only this function imports the journal, so that other relays do not load it. */
async function openDirectory(options: CallboardOptions, root: string): Promise<Place> {
  const { config, log = silentLog } = options;
  const clock = steadyClock(options.clock ?? systemClock);
  const { openData } = await import('./backends/journal/open.ts');
  const shares = sharesOf(config, fitSockets);
  const meter = createMetrics(() => clock.now());
  const { backend, directory, cursorKey } = await openData({
    ...{ root, version: VERSION, loop: systemLoop, random: createCrypto('') },
    sync: config.dataSync ?? DATA_SYNC_MS,
    onFailure(error) {
      log.error({ err: error }, 'records can no longer be written: the relay ends');
      queueMicrotask(() => {
        throw error;
      });
    },
    memory: {
      ...{ clock, log, shares, metrics: meter, sha256: createCrypto('').sha256 },
      idempotencyWindowMs: config.idempotencyWindowMs,
      history: historyLimitsOf(config, shares),
      openAudit: ({ audit }) => openAuditFile(config.audit?.file ?? audit, log),
    },
  });
  const crypto = createCrypto(cursorKey);
  const place = { clock, log, crypto, shares, checkRoom: () => void backend.ready() };
  const spill = options.spill ?? spillStore(config.spillDir ?? directory.spill, place);
  return { backend, spill, crypto, clock, shares, meter };
}

/** Opens the storage in Redis. Only this function imports the Redis backend, so direct mode does not load it. */
async function openShared(options: CallboardOptions, redis: RedisConfig): Promise<Place> {
  const { config, clock: system = systemClock, log = silentLog } = options;
  checkAdvertiseUrl(config);
  const { openRedis, openRedisBackend } = await import('./backends/redis/open.ts');
  const policy = policyOf(options);
  const shares = sharesOf(config, fitSockets);
  const spillDir = config.spillDir ?? null;
  // The store measures with the deployment's clock, which is known only after the store was opened.
  const meterClock = { now: () => system.now() };
  const meter = createMetrics(() => meterClock.now());
  const redisOptions: RedisBackendOptions = {
    ...redis,
    retentionMs: config.retentionMs ?? RETENTION_MS,
    streamMessages: config.streamMaxMessages ?? STREAM_MESSAGES,
    idempotencyWindowMs: config.idempotencyWindowMs,
    scopeOf: (userId) => policy.scopeOf(userId).id,
    sha256: createCrypto('').sha256,
    spillDir,
    shares,
    system,
    log,
    metrics: meter,
  };
  const placeOver = ({ clock, cursorKey, replaceLogin, spill: inRedis }: Omit<OpenRedis, 'ready' | 'close'>) => {
    meterClock.now = () => clock.now();
    const crypto = createCrypto(cursorKey);
    const open = () => (spillDir === null ? inRedis : spillStore(spillDir, { clock, log, crypto, shares }));
    return { spill: options.spill ?? open(), crypto, clock, shares, meter, replaceLogin };
  };
  if (redis.store === 'redis') {
    const opened = await openRedisBackend(redisOptions);
    return { ...placeOver(opened), backend: opened.backend };
  }
  const opened = await openRedis(redisOptions);
  return ownedPlace(options, redis, { ...placeOver(opened), opened });
}

/** The number of partitions into which users are divided if relays own the partitions. */
const OWNED_PARTITIONS = 64;

/** Opens the partitions that relays own, over a connected Redis. Only this function imports this backend. */
async function ownedPlace(
  options: CallboardOptions,
  redis: RedisConfig,
  { opened, ...place }: Omit<Place, 'backend'> & { readonly opened: OpenRedis },
): Promise<Place> {
  const { config, clock: system = systemClock, log = silentLog } = options;
  const { openOwned } = await import('./backends/owned/open.ts');
  const { crypto, clock, shares, meter } = place;
  const policy = policyOf(options);
  const nodeId = config.nodeId ?? `node-${crypto.randomToken().slice(0, 8)}`;
  const opening = openOwned({
    ...{ connect: opened.connect, nodeId, system, clock, log, loop: systemLoop, random: crypto, version: VERSION },
    ...{ namespace: redis.namespace, address: config.advertiseUrl },
    ...{ partitions: OWNED_PARTITIONS, groups: redis.partitions, claims: true },
    scopeOf: (userId) => policy.scopeOf(userId).id,
    digest: crypto.sign(scopeMapOf(config.policy ?? null)),
    memory: {
      ...{ shares, metrics: meter, sha256: createCrypto('').sha256, markSecret: crypto.sign('marks') },
      idempotencyWindowMs: config.idempotencyWindowMs,
      history: historyLimitsOf(config, shares),
    },
  });
  const { backend } = await opening.catch(async (error: unknown) => {
    await opened.close();
    throw error;
  });
  const close = async (): Promise<void> => {
    await backend.close();
    await opened.close();
  };
  const ready = async (): Promise<void> => {
    // First, because its error says what is wrong with Redis itself: rights, memory or connection.
    await opened.ready();
    await backend.ready();
  };
  const inspector = opened.withLegacyDepths(backend.inspector);
  return { ...place, nodeId, backend: { ...backend, inspector, ready, close } };
}

const fitSockets = (bound: ShareBound): ShareBound => withinDescriptors(bound, descriptorLimit());

function policyOf({ policy, config: { redis, policy: file = null }, log = silentLog }: CallboardOptions): Policy {
  const isDivided = redis && (redis.store !== 'redis' || redis.partitions > 1);
  const scopeMove = isDivided ? 'namespace' : redis ? 'restarts' : 'restart';
  return policy ?? new LivePolicy(file, { sha256: createCrypto('').sha256, log, scopeMove });
}

/** A relay, and the function that serves it in the program's HTTP server. */
type Composed = { readonly callboard: Callboard; readonly attach: (server: HostServer) => Promise<void> };

function compose(options: CallboardOptions, place: Place): Composed {
  const { backend, spill, crypto, clock, shares, meter, replaceLogin = () => false } = place;
  const { config, log = silentLog, tracing } = options;
  const { basePath = '', traceIds = false, maxBodyBytes = MAX_BODY_BYTES } = config;
  const policy = policyOf(options);
  // Tokens expire by the system clock, as their issuers expect, and not by the store's clock.
  const wall = options.clock ?? systemClock;
  const credentials = createCredentials({ ...NO_AUTH, ...config.auth }, { clock: wall, tickets: backend.tickets });
  const core = createCore({
    devices: credentials.devices,
    loop: systemLoop,
    processMeter: systemProcess,
    nodeId: place.nodeId ?? config.nodeId ?? `node-${crypto.randomToken().slice(0, 8)}`,
    backend,
    clock,
    crypto,
    cursors: new Cursors(crypto),
    policy,
    log,
    metrics: meter,
    tracing: createTracing(tracing, { version: VERSION, namesUsers: traceIds }),
    spill,
    shares,
    rawMessages: config.rawMessages ?? false,
    audit: auditOptions(config, { crypto, log }),
    reveal: config.reveal,
    server: { version: VERSION, label: config.label ?? null, traceUrl: config.traceUrl ?? null, maxBodyBytes },
  });
  const authenticator = withRevocations(withGrants(credentials.bearer, core.sites), core.revocations);
  const app = createApp({
    core,
    authenticator,
    log,
    meter,
    clock: wall,
    randomId: crypto.randomId,
    basePath,
    maxBodyBytes,
    unauthenticatedSockets: config.unauthenticatedSockets,
    inboundBytesPerSecond: config.inboundBytesPerSecond,
    pingMs: config.pingMs,
    origins: { allowedOrigins: config.allowedOrigins ?? [], trustProxy: config.trustProxy ?? false },
    introspection: config.introspection ?? 'admin',
    fastPath: config.fastPath ?? true,
    clientFiles: new URL('../dist/clients/', import.meta.url),
    operatorConsole: consoleOf(config),
    mcp: servesMcp(config),
    issuer: config.auth.issuer ?? null,
    metricsToken: credentials.metricsToken,
    tickets: credentials.tickets,
    version: VERSION,
    descriptors: descriptorLimit(),
    signIn: options.signIn,
  });
  const onRecord = backend.onRecord?.bind(backend);
  const server = createHttpServer(app.requestHandler, {
    ...{ tls: config.tls ?? null, onRecord },
    keepAliveMs: config.keepAliveMs,
  });
  const { replace: replaceCredentials } = credentials;
  const start = (): Promise<void> => startOf({ core, app }, config);
  const control = policy instanceof LivePolicy ? policy : FIXED_POLICY;
  const replace = { replaceCredentials, replaceRedisLogin: replaceLogin, policy: control };
  const ownSpill = options.spill ? null : spill;
  return assemble({
    ...{ core, backend, authenticator, app, server, meter },
    ...{ basePath, onRecord, ownSpill, start },
    ...replace,
  });
}

/**
 * Removes payloads from a spill directory whose hour of expiry is over, without a relay. Returns their number. Other
 * files stay.
 */
export async function cleanSpillDirectory(root: string, log: Log = silentLog): Promise<number> {
  return createDirectorySpill({
    files: createSpillFiles(root),
    clock: systemClock,
    random: createCrypto(''),
    log,
  }).clean();
}

type AssembledRelay = {
  readonly core: Core;
  readonly backend: Backend;
  readonly authenticator: Authenticator;
  readonly app: App;
  readonly server: HttpServer;
  readonly meter: Meter;
  readonly basePath: string;
  readonly onRecord: Backend['onRecord'];
  /** The spill store, if the relay opened it itself. */
  readonly ownSpill: SpillStore | null;
  readonly start: () => Promise<void>;
} & Pick<Callboard, 'replaceCredentials' | 'replaceRedisLogin' | 'policy'>;

function assemble(parts: AssembledRelay): Composed {
  const { core, backend, authenticator, app, server, meter, basePath, onRecord, start } = parts;
  const { ownSpill, replaceCredentials, replaceRedisLogin, policy } = parts;
  let url: string | null = null;
  let attachment: Attachment | null = null;
  let closed: Promise<void> | null = null;
  let aborted: Promise<void> | null = null;
  // Callers are answered while their sockets are open. The backend is closed last, because closing links use it.
  const end = async (withinMs: number): Promise<void> => {
    await core.drain(withinMs);
    await core.close();
    await setImmediate(); // The answers to callers are written before their links close.
    await app.close();
    await (attachment ?? server).close();
    await backend.close();
    ownSpill?.close?.();
    meter.close();
  };
  const callboard: Callboard = {
    core,
    authenticator,
    get url() {
      return attachment ? attachment.url : url;
    },
    async listen({ host = '127.0.0.1', port = 0, fd } = {}) {
      if (attachment) fail('invalid_argument', 'The relay is attached to a server of the program.');
      await start();
      url = (await server.listen({ host, port, fd })).url + basePath;
      return url;
    },
    preload: () => app.preload(),
    replaceCredentials,
    replaceRedisLogin,
    policy,
    replaceCertificate: (tls) => server.replaceCertificate(tls),
    drain: (withinMs = DRAIN_MS) => core.drain(withinMs),
    close: ({ withinMs = 0 } = {}) => (closed ??= end(withinMs)),
    abort() {
      if (aborted) return aborted;
      (attachment ?? server).abort();
      return (aborted = app.abort());
    },
    [Symbol.asyncDispose]: () => callboard.close(),
  };
  const attach = async (to: HostServer): Promise<void> => {
    await start();
    attachment = attachHandler(to, { handler: app.requestHandler, basePath, onRecord });
  };
  return { callboard, attach };
}

// Checks the options of an embedded relay, and completes them with defaults.

/** The settings that the command line applies itself: where to listen, what to log, and what to reload. */
type ProgramSetting = 'host' | 'port' | 'files' | 'generated' | 'logLevel' | 'warnings';

/**
 * The settings of a relay. `readConfig` reads all of them from variables and flags; embedding programs set those that
 * they need.
 */
export type Settings = Partial<Omit<Config, ProgramSetting | 'auth' | 'audit' | 'shares'>> & {
  readonly auth: Partial<AuthConfig>;
  /** The settings of the audit. Absent members have their defaults. */
  readonly audit?: Partial<AuditConfig> | undefined;
  /** For each share, the guarantee of one user and the total of all users. */
  readonly shares?: GivenBounds;
  /** The total of the share `history_bytes`. */
  readonly historyMaxBytes?: number;
};

/**
 * Creates the shares of a relay. `fitSockets` lowers the bounds of the share `sockets` to what the process can hold.
 * Throws `invalid_argument` for numbers out of their range and for inconsistent bounds.
 */
function sharesOf(settings: Settings, fitSockets: (bound: ShareBound) => ShareBound): Shares {
  checkRanges(settings);
  const { shares, historyMaxBytes, spillDir = null, dataDir = null, redis = null } = settings;
  const history = { ...(historyMaxBytes === undefined ? {} : { total: historyMaxBytes }), ...shares?.history_bytes };
  const inMemory = spillDir === null && dataDir === null && redis === null;
  const defaults = inMemory ? { spilled_bytes: SPILL_IN_MEMORY } : {};
  const bounds = shareBounds({ ...shares, history_bytes: history }, defaults);
  return createShares({ ...bounds, sockets: fitSockets(bounds.sockets) });
}

/** Returns the limits of history in direct mode. `bytes` is set only if the share `history_bytes` has a total. */
function historyLimitsOf({ retentionMs, streamMaxMessages }: Settings, { bounds }: Shares) {
  const { total } = bounds.history_bytes;
  return {
    retentionMs: retentionMs ?? RETENTION_MS,
    streamMessages: streamMaxMessages ?? STREAM_MESSAGES,
    ...(total === null ? {} : { bytes: total }),
  };
}

/** Returns the folder of the built console and its label; null if the console is switched off. */
function consoleOf({ operatorConsole = true, label = null }: Settings): { folder: URL; label: string } | null {
  return operatorConsole ? { folder: new URL('../dist/console/', import.meta.url), label: label ?? '' } : null;
}

/**
 * Prepares for the first request. If MCP is `on`, loads its modules now, because loading takes a tenth of a second or
 * more and would delay other requests. A trial loads them with the first request of an agent.
 */
async function startOf(
  { core, app }: Pick<AssembledRelay, 'core' | 'app'>,
  { mcp }: Pick<Settings, 'mcp'>,
): Promise<void> {
  if (mcp === 'on') await app.loadAgents();
  await core.start();
}

const MCP_PACKAGE = '@modelcontextprotocol/server';

/**
 * Whether a relay with these settings serves agents at `/mcp`. If the package for this is required and missing, throws
 * `invalid_argument` with the command that installs it. Does not load the package; `startOf` does.
 */
export function servesMcp({ mcp = 'off' }: Pick<Settings, 'mcp'>): boolean {
  if (mcp === 'off') return false;
  try {
    createRequire(import.meta.url).resolve(MCP_PACKAGE);
    return true;
  } catch {
    if (mcp === 'if_installed') return false;
    return fail('invalid_argument', `MCP needs a package that is not installed: npm install ${MCP_PACKAGE}`);
  }
}

/** Credentials that match no request. */
const NO_AUTH: AuthConfig = { adminTokens: [], secret: null, jwksUrl: null, issuer: null, audience: null };

// Opens the stores of a relay that are not part of its backend: the spill store, and the audit file of direct mode.
// Derives the keys that sign audit rows.

function spillStore(
  root: string | null,
  parts: Pick<Place, 'clock' | 'crypto' | 'shares'> & { readonly log: Log; readonly checkRoom?: () => void },
): SpillStore {
  return root === null
    ? createMemorySpill(parts.clock, parts.crypto, parts.shares)
    : createDirectorySpill({ files: createSpillThread(root), random: parts.crypto, ...parts });
}

/**
 * Returns the bounds of the audit and the function that signs its rows. If there is neither an audit key nor a secret,
 * `crypto` signs the rows.
 */
function auditOptions(
  { audit, auth, redis }: Settings,
  { crypto, log }: { readonly crypto: Crypto; readonly log: Log },
): AuditBounds & { readonly sign: AuditSign; readonly keys: readonly AuditSign[] } {
  const { days, maxRows = AUDIT_ROWS } = audit ?? {};
  const keepMs = days === undefined ? AUDIT_KEEP_MS : days * 24 * 3600_000;
  const keys = auditKeys({ audit, auth });
  const [sign = crypto.sign] = keys;
  if (keys.length === 0 && redis)
    log.warn(
      {},
      'the key of the audit is kept in Redis beside its rows: set AUDIT_KEY to notice rows that are forged there',
    );
  return { keepMs, maxRows, sign, keys: [...keys, sign] };
}

/** Returns the keys with which rows may have been signed, the present one first; empty if none is configured. */
export function auditKeys({ audit, auth }: Pick<Settings, 'audit' | 'auth'>): readonly AuditSign[] {
  const { secret = null, previousSecret = null } = auth;
  const { key = null, earlierKeys = [] } = audit ?? {};
  return [key, ...earlierKeys, secret, previousSecret].filter((text) => text !== null).map(signOf);
}

/**
 * Creates the function that signs rows. Its key is derived from the secret, so that a signature for another purpose is
 * never valid for a row.
 */
function signOf(secret: string): AuditSign {
  const key = hkdfSync('sha256', secret, '', 'callboard audit', 32);
  return createCrypto(new Uint8Array(key)).sign;
}
