/** The composition root: the only place where the backend, core, the handlers and the server are connected. */
import { randomBytes } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { createMemoryBackend } from './backends/memory/backend.ts';
import { createDirectorySpill } from './backends/spill/directory.ts';
import { auditOptions, auditStore, spillStore } from './callboard-stores.ts';
import { consoleOf, historyLimitsOf, NO_AUTH, serverSettings, sharesOf, type Settings } from './callboard-settings.ts';
import type { RedisConfig, TlsConfig } from './config.ts';
import { defaultPolicy, type Policy } from './core/auth/policy.ts';
import { compilePolicy } from './core/auth/rules.ts';
import type { Authenticator } from './core/auth/principal.ts';
import type { Backend } from './core/backend.ts';
import type { Clock } from './core/clock.ts';
import type { Core } from './core/core.ts';
import { createCore } from './core/create.ts';
import type { Crypto } from './core/crypto.ts';
import { fail } from './core/errors.ts';
import { Cursors } from './core/cursor.ts';
import type { SpillStore } from './core/history/spill.ts';
import { DRAIN_MS, MAX_BODY_BYTES, RETENTION_MS, STREAM_MESSAGES } from './core/limits.ts';
import { silentLog, type Log } from './core/log.ts';
import type { ShareBound } from './core/shares/bounds.ts';
import type { Shares } from './core/shares/shares.ts';
import { createApp, type App } from './http/app.ts';
import type { ReplacedCredentials } from './http/auth.ts';
import { createCredentials } from './http/credentials.ts';
import { withGrants } from './http/grants.ts';
import { createHttpServer, type HttpServer } from './http/server.ts';
import type { SignIn } from './http/sign-in.ts';
import { systemClock } from './platform/clock.ts';
import { createCrypto } from './platform/crypto.ts';
import { descriptorLimit, withinDescriptors } from './platform/descriptors.ts';
import { systemLoop } from './platform/event-loop.ts';
import { createMetrics, type Meter } from './platform/metrics.ts';
import { createTracing, type TraceApi } from './platform/tracing.ts';
import { VERSION } from './version.ts';

export type { Settings } from './callboard-settings.ts';

export type CallboardOptions = {
  readonly config: Settings;
  /** The storage to use instead of Redis or this process' memory. It is closed with the relay. */
  readonly backend?: Backend;
  /** The spill store for large payloads, instead of the default one. A store that is not `managed` is never cleaned. */
  readonly spill?: SpillStore;
  readonly clock?: Clock;
  readonly log?: Log;
  /** The policy to use instead of the one in `config`. */
  readonly policy?: Policy;
  /** Signs the GraphQL editor in with the code of a URL; see `createSignIn`. */
  readonly signIn?: SignIn;
  /** The `trace` object of `@opentelemetry/api`. Absent: the relay records no spans. */
  readonly tracing?: TraceApi;
};

/** A relay in this process. */
export interface Callboard extends AsyncDisposable {
  readonly core: Core;
  /** Resolves tokens to principals, as HTTP and links do. */
  readonly authenticator: Authenticator;
  /** The URL that the relay listens on, with the base path; null before `listen`. */
  readonly url: string | null;
  /** Starts the relay once and resolves with its URL. Default: a free port of 127.0.0.1. `fd`: a listening socket. */
  listen(at?: { readonly host?: string; readonly port?: number; readonly fd?: number }): Promise<string>;
  /** Replaces the configured credentials from the next token on. Tokens of `jwksUrl` stay valid. Closes no link. */
  replaceCredentials(credentials: ReplacedCredentials): void;
  /**
   * Serves this certificate to new connections. Throws if the relay was opened without TLS or if the texts do not fit
   * together; then the certificate stays as it is.
   */
  replaceCertificate(tls: TlsConfig): void;
  /**
   * Marks the node as not ready, admits no more commands, and gives running commands at most `withinMs` milliseconds
   * (default 10 000) to end.
   */
  drain(withinMs?: number): Promise<void>;
  /**
   * Drains for at most `withinMs` milliseconds (default 0), answers waiting callers, closes links with `draining`, and
   * closes everything else. Idempotent.
   */
  close(options?: { readonly withinMs?: number }): Promise<void>;
  /**
   * Ends all connections as a crash does: HTTP responses in progress are never sent, and links are closed with
   * `internal` (4490). Drains and stores nothing; other nodes clean up as after a crash. Resolves when the links are
   * closed, or after one second; the process must then exit. For a process in which an error was thrown that nothing
   * caught.
   */
  abort(): Promise<void>;
}

/**
 * Opens a relay over the Redis in `config`, or in this process' memory if `config` has none. Throws `store_unavailable`
 * if Redis cannot be reached, and `invalid_argument` if it is unsuitable. Nothing runs before `listen`.
 */
export async function openCallboard(options: CallboardOptions): Promise<Callboard> {
  const { redis } = options.config;
  return redis && !options.backend ? compose(options, await openShared(options, redis)) : createCallboard(options);
}

/**
 * Creates a relay synchronously, in memory or over the given `backend`. Throws `invalid_argument` for numbers out of
 * range and for a Redis without a `backend`, and `internal` if the REST documents do not fit the schema.
 */
export function createCallboard(options: CallboardOptions): Callboard {
  const { config, clock = systemClock, log = silentLog } = options;
  if (config.redis && !options.backend) fail('invalid_argument', 'Use openCallboard for a relay over Redis.');
  // In direct mode cursors do not outlive the process, so a random key is enough.
  const crypto = createCrypto(randomBytes(32));
  const shares = sharesOf(config, fitSockets);
  const meter = createMetrics(() => clock.now());
  const backend =
    options.backend ??
    createMemoryBackend({
      ...{ clock, log, shares, metrics: meter, sha256: crypto.sha256 },
      idempotencyWindowMs: config.idempotencyWindowMs,
      history: historyLimitsOf(config, shares),
      audit: auditStore(config, log),
    });
  const spill = options.spill ?? spillStore(config.spillDir ?? null, { clock, log, crypto, shares });
  return compose(options, { backend, spill, crypto, clock, shares, meter });
}

/** The storage of a relay, with the clock that stamps what is stored. */
type Place = {
  readonly backend: Backend;
  readonly spill: SpillStore;
  readonly crypto: Crypto;
  readonly clock: Clock;
  readonly shares: Shares;
  readonly meter: Meter;
};

/** Opens the storage in Redis. Only this function imports the Redis backend, so direct mode does not load it. */
async function openShared(options: CallboardOptions, redis: RedisConfig): Promise<Place> {
  const { config, clock: system = systemClock, log = silentLog } = options;
  const { openRedisBackend } = await import('./backends/redis/open.ts');
  const policy = policyOf(options);
  const shares = sharesOf(config, fitSockets);
  const spillDir = config.spillDir ?? null;
  const { backend, clock, cursorKey, spill } = await openRedisBackend({
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
  });
  const crypto = createCrypto(cursorKey);
  const place =
    options.spill ?? (spillDir === null ? spill : createDirectorySpill({ root: spillDir, clock, log, shares }));
  return { backend, spill: place, crypto, clock, shares, meter: createMetrics(() => clock.now()) };
}

const fitSockets = (bound: ShareBound): ShareBound => withinDescriptors(bound, descriptorLimit());

const policyOf = ({ policy, config }: CallboardOptions): Policy =>
  policy ?? (config.policy ? compilePolicy(config.policy) : defaultPolicy);

function compose(options: CallboardOptions, place: Place): Callboard {
  const { backend, spill, crypto, clock, shares, meter } = place;
  const { config, log = silentLog, tracing } = options;
  const { basePath = '', traceIds = false } = config;
  const core = createCore({
    loop: systemLoop,
    nodeId: config.nodeId ?? `node-${crypto.randomToken().slice(0, 8)}`,
    backend,
    clock,
    crypto,
    cursors: new Cursors(crypto),
    policy: policyOf(options),
    log,
    metrics: meter,
    tracing: createTracing(tracing, { version: VERSION, namesUsers: traceIds }),
    spill,
    shares,
    rawMessages: config.rawMessages ?? false,
    audit: auditOptions(config, { crypto, log }),
    reveal: config.reveal,
    server: serverSettings(config),
  });
  // Tokens expire by the system clock, as their issuers expect, and not by the clock of the store.
  const wall = options.clock ?? systemClock;
  const credentials = createCredentials({ ...NO_AUTH, ...config.auth }, { clock: wall, tickets: backend.tickets });
  const authenticator = withGrants(credentials.bearer, core.sites);
  const app = createApp({
    core,
    authenticator,
    log,
    meter,
    clock: wall,
    randomId: crypto.randomId,
    basePath,
    maxBodyBytes: config.maxBodyBytes ?? MAX_BODY_BYTES,
    unauthenticatedSockets: config.unauthenticatedSockets,
    inboundBytesPerSecond: config.inboundBytesPerSecond,
    origins: { allowedOrigins: config.allowedOrigins ?? [], trustProxy: config.trustProxy ?? false },
    introspection: config.introspection ?? 'admin',
    fastPath: config.fastPath ?? true,
    clientFiles: new URL('../dist/clients/', import.meta.url),
    operatorConsole: consoleOf(config),
    metricsToken: credentials.metricsToken,
    tickets: credentials.tickets,
    version: VERSION,
    signIn: options.signIn,
  });
  const server = createHttpServer(app.requestHandler, { tls: config.tls ?? null });
  const { replace: replaceCredentials } = credentials;
  return assemble({ core, backend, authenticator, app, server, meter, basePath, replaceCredentials });
}

/** Removes expired payloads from a spill directory, without a relay. Returns their number. Other files stay. */
export async function cleanSpillDirectory(root: string, log: Log = silentLog): Promise<number> {
  return createDirectorySpill({ root, clock: systemClock, log }).clean();
}

type Parts = {
  readonly core: Core;
  readonly backend: Backend;
  readonly authenticator: Authenticator;
  readonly app: App;
  readonly server: HttpServer;
  readonly meter: Meter;
  readonly basePath: string;
} & Pick<Callboard, 'replaceCredentials'>;

function assemble(parts: Parts): Callboard {
  const { core, backend, authenticator, app, server, meter, basePath, replaceCredentials } = parts;
  let url: string | null = null;
  let closed: Promise<void> | null = null;
  let aborted: Promise<void> | null = null;
  // Waiting callers are answered while their sockets are still open. The backend is closed last, because closing links
  // write to it.
  const end = async (withinMs: number): Promise<void> => {
    await core.drain(withinMs);
    await core.close();
    await setImmediate(); // The answers to callers are written before their links are closed.
    await app.close();
    await server.close();
    await backend.close();
    meter.close();
  };
  const callboard: Callboard = {
    core,
    authenticator,
    get url() {
      return url;
    },
    async listen({ host = '127.0.0.1', port = 0, fd } = {}) {
      await core.start();
      url = (await server.listen({ host, port, fd })).url + basePath;
      return url;
    },
    replaceCredentials,
    replaceCertificate: (tls) => server.replaceCertificate(tls),
    drain: (withinMs = DRAIN_MS) => core.drain(withinMs),
    close: ({ withinMs = 0 } = {}) => (closed ??= end(withinMs)),
    abort() {
      if (aborted) return aborted;
      server.abort();
      return (aborted = app.abort());
    },
    [Symbol.asyncDispose]: () => callboard.close(),
  };
  return callboard;
}
