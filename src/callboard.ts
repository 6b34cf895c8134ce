/** The composition root: everything that callboard is made of meets here, and nowhere else. */
import { randomBytes } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { createMemoryBackend } from './backends/memory/backend.ts';
import { readTarget, secretsOf } from './backends/redis/target.ts';
import { createDirectorySpill } from './backends/spill/directory.ts';
import { createMemorySpill } from './backends/spill/memory.ts';
import { historyLimitsOf, sharesOf, type Settings } from './callboard-settings.ts';
import type { AuthConfig, Config, RedisConfig } from './config.ts';
import { parseAdminToken } from './core/auth/admin-token.ts';
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
import type { Metrics } from './core/metrics.ts';
import type { Shares } from './core/shares/shares.ts';
import { createFaces, type Faces } from './http/faces.ts';
import { createAuthenticator } from './http/auth.ts';
import { withGrants } from './http/grants.ts';
import { createHttpServer } from './http/server.ts';
import { systemClock } from './platform/clock.ts';
import { createCrypto } from './platform/crypto.ts';
import { createMetrics, type Meter } from './platform/metrics.ts';
import { VERSION } from './version.ts';

export type { Settings } from './callboard-settings.ts';

export type CallboardOptions = {
  readonly config: Settings;
  /** Where everything is kept, instead of Redis or this process' memory. Closed with the relay. */
  readonly backend?: Backend;
  /** Where payloads too large for history lie, instead of `spillDir` or memory. One that is not `managed` is never cleaned. */
  readonly spill?: SpillStore;
  readonly clock?: Clock;
  readonly log?: Log;
  /** Instead of the policy in `config`. */
  readonly policy?: Policy;
};

/** A relay in this process. */
export interface Callboard extends AsyncDisposable {
  readonly core: Core;
  /** Says who a token stands for, as every face does. */
  readonly authenticator: Authenticator;
  /** Where it listens, with the base path; null before `listen`. */
  readonly url: string | null;
  /** Starts the relay and resolves with its address once it takes requests. Port 0 picks a free one. Call it once. */
  listen(at?: { readonly host?: string; readonly port?: number }): Promise<string>;
  /** Readiness turns, nothing more is admitted, and commands in flight get at most `withinMs` (10 s) to end. */
  drain(withinMs?: number): Promise<void>;
  /** Drains (without time, unless given), tells callers and clients, and closes everything. Idempotent. */
  close(options?: { readonly withinMs?: number }): Promise<void>;
}

/**
 * Opens a relay: over the Redis in `config`, or in this process' memory where there is none. Throws `store_unavailable` when Redis cannot be
 * reached and `invalid_argument` when it is not fit to hold a deployment. Nothing runs before `listen`.
 */
export async function openCallboard(options: CallboardOptions): Promise<Callboard> {
  const { redis } = options.config;
  return redis && !options.backend ? compose(options, await openShared(options, redis)) : createCallboard(options);
}

/**
 * As `openCallboard` for a relay that needs nothing opened. Throws `invalid_argument` for one over Redis and for numbers out of their range, and `internal` when its own
 * documents do not fit its schema.
 */
export function createCallboard(options: CallboardOptions): Callboard {
  const { config, clock = systemClock, log = silentLog } = options;
  if (config.redis && !options.backend) fail('invalid_argument', 'A relay over Redis is opened by openCallboard.');
  // In direct mode nothing of a cursor outlives the process, so neither need its key.
  const crypto = createCrypto(randomBytes(32));
  const shares = sharesOf(config);
  const meter = createMetrics();
  const backend =
    options.backend ?? memoryBackend(config, { clock, log, metrics: meter, sha256: crypto.sha256, shares });
  const spill = options.spill ?? spillStore(config.spillDir ?? null, { clock, log, crypto, shares });
  return compose(options, { backend, spill, crypto, clock, shares, meter });
}

/** What a relay keeps things in. Its clock is the one that stamps them. */
type Place = {
  readonly backend: Backend;
  readonly spill: SpillStore;
  readonly crypto: Crypto;
  readonly clock: Clock;
  readonly shares: Shares;
  readonly meter: Meter;
};

/** Redis and its client are loaded here alone: direct mode does without. */
async function openShared(options: CallboardOptions, redis: RedisConfig): Promise<Place> {
  const { config, clock: system = systemClock, log = silentLog } = options;
  const { openRedisBackend } = await import('./backends/redis/open.ts');
  const { sha256 } = createCrypto('');
  const policy = policyOf(options);
  const shares = sharesOf(config);
  const spillDir = config.spillDir ?? null;
  const { backend, clock, cursorKey, spill } = await openRedisBackend({
    ...redis,
    retentionMs: config.retentionMs ?? RETENTION_MS,
    streamMessages: config.streamMaxMessages ?? STREAM_MESSAGES,
    idempotencyWindowMs: config.idempotencyWindowMs,
    scopeOf: (userId) => policy.scopeOf(userId).id,
    sha256,
    spillDir,
    shares,
    system,
    log,
  });
  const crypto = createCrypto(cursorKey);
  const place =
    options.spill ?? (spillDir === null ? spill : createDirectorySpill({ root: spillDir, clock, log, shares }));
  return { backend, spill: place, crypto, clock, shares, meter: createMetrics() };
}

function policyOf({ policy, config }: CallboardOptions): Policy {
  return policy ?? (config.policy ? compilePolicy(config.policy) : defaultPolicy);
}

function compose(options: CallboardOptions, place: Place): Callboard {
  const { backend, spill, crypto, clock, shares, meter } = place;
  const { config, log = silentLog } = options;
  const { basePath = '' } = config;
  const core = createCore({
    nodeId: config.nodeId ?? `node-${crypto.randomToken().slice(0, 8)}`,
    backend,
    clock,
    crypto,
    cursors: new Cursors(crypto),
    policy: policyOf(options),
    log,
    metrics: meter,
    spill,
    shares,
    rawMessages: config.rawMessages ?? false,
  });
  // Tokens end by the time of those who made them, whatever the store's clock says.
  const wall = options.clock ?? systemClock;
  const authenticator = withGrants(createAuthenticator({ ...NO_AUTH, ...config.auth, clock: wall }), core.sites);
  const faces = createFaces({
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
    version: VERSION,
  });
  return assemble({ core, backend, authenticator, faces, meter, basePath });
}

const NO_AUTH: AuthConfig = { adminTokens: [], secret: null, jwksUrl: null, issuer: null, audience: null };

type SpillParts = { readonly clock: Clock; readonly log: Log; readonly crypto: Crypto; readonly shares: Shares };

function spillStore(root: string | null, parts: SpillParts): SpillStore {
  return root === null
    ? createMemorySpill(parts.clock, parts.crypto, parts.shares)
    : createDirectorySpill({ root, ...parts });
}

/** What of a configuration must never be written anywhere. */
export function secretsIn({ auth, redis }: Pick<Config, 'auth' | 'redis'>): readonly string[] {
  const tokens = auth.adminTokens.map((text) => parseAdminToken(text).token);
  const own = auth.secret === null ? tokens : [...tokens, auth.secret];
  return redis ? [...own, ...secretsOf(readTarget(redis.url))] : own;
}

/** Removes what is expired from a spill directory, without a relay; how many payloads. What is not the store's own stays. */
export async function cleanSpillDirectory(root: string, log: Log = silentLog): Promise<number> {
  return createDirectorySpill({ root, clock: systemClock, log }).clean();
}

type MemoryParts = {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly sha256: (text: string) => string;
  readonly shares: Shares;
};

function memoryBackend(config: Settings, parts: MemoryParts): Backend {
  return createMemoryBackend({
    ...parts,
    idempotencyWindowMs: config.idempotencyWindowMs,
    history: historyLimitsOf(config, parts.shares),
  });
}

type Parts = {
  readonly core: Core;
  readonly backend: Backend;
  readonly authenticator: Authenticator;
  readonly faces: Faces;
  readonly meter: Meter;
  readonly basePath: string;
};

function assemble({ core, backend, authenticator, faces, meter, basePath }: Parts): Callboard {
  const server = createHttpServer(faces.front);
  let url: string | null = null;
  let closed: Promise<void> | null = null;
  // Callers are told while their sockets are still there; the store goes last, since every closing link writes to it.
  const end = async (withinMs: number): Promise<void> => {
    await core.drain(withinMs);
    await core.close();
    // What callers were answered is written before their links are closed.
    await setImmediate();
    await faces.close();
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
    async listen({ host = '127.0.0.1', port = 0 } = {}) {
      await core.start();
      url = (await server.listen({ host, port })).url + basePath;
      return url;
    },
    drain: (withinMs = DRAIN_MS) => core.drain(withinMs),
    close: ({ withinMs = 0 } = {}) => (closed ??= end(withinMs)),
    [Symbol.asyncDispose]: () => callboard.close(),
  };
  return callboard;
}
