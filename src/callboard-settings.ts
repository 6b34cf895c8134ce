/** Checks the options of an embedded relay, and completes them with defaults. */
import type { AuditConfig } from './config-audit.ts';
import type { AuthConfig, Config } from './config.ts';
import { MAX_BODY_BYTES, RETENTION_MS, STREAM_MESSAGES } from './core/limits.ts';
import { shareBounds, SPILL_IN_MEMORY, type GivenBounds, type ShareBound } from './core/shares/bounds.ts';
import { createShares, type Shares } from './core/shares/shares.ts';
import type { ServerSettings } from './core/server.ts';
import { checkRanges } from './settings-ranges.ts';
import { VERSION } from './version.ts';

/**
 * The settings of a relay. `readConfig` reads all of them from variables and flags; embedding programs set what they
 * need.
 */
export type Settings = Partial<
  Pick<
    Config,
    | 'basePath'
    | 'redis'
    | 'nodeId'
    | 'label'
    | 'policy'
    | 'retentionMs'
    | 'idempotencyWindowMs'
    | 'streamMaxMessages'
    | 'maxBodyBytes'
    | 'unauthenticatedSockets'
    | 'inboundBytesPerSecond'
    | 'rawMessages'
    | 'operatorConsole'
    | 'spillDir'
    | 'reveal'
    | 'allowedOrigins'
    | 'trustProxy'
    | 'introspection'
    | 'fastPath'
    | 'traceIds'
    | 'tls'
  >
> & {
  readonly auth: Partial<AuthConfig>;
  /** How the audit is kept; absent members have their defaults. */
  readonly audit?: Partial<AuditConfig> | undefined;
  /** For each share, the guarantee for one user and the total for all users. */
  readonly shares?: GivenBounds;
  /** The total of the share `history_bytes`. */
  readonly historyMaxBytes?: number;
};

/**
 * Creates the shares of a relay. `fitSockets` lowers the bounds of the share `sockets` to what the process can hold.
 * Throws `invalid_argument` for numbers out of their range and for inconsistent bounds.
 */
export function sharesOf(settings: Settings, fitSockets: (bound: ShareBound) => ShareBound): Shares {
  checkRanges(settings);
  const { shares, historyMaxBytes, spillDir = null, redis = null } = settings;
  const history = { ...(historyMaxBytes === undefined ? {} : { total: historyMaxBytes }), ...shares?.history_bytes };
  const inMemory = spillDir === null && redis === null;
  const defaults = inMemory ? { spilled_bytes: SPILL_IN_MEMORY } : {};
  const bounds = shareBounds({ ...shares, history_bytes: history }, defaults);
  return createShares({ ...bounds, sockets: fitSockets(bounds.sockets) });
}

/** Returns the limits of history in direct mode. `bytes` is set only if the share `history_bytes` has a total. */
export function historyLimitsOf({ retentionMs, streamMaxMessages }: Settings, { bounds }: Shares) {
  const { total } = bounds.history_bytes;
  return {
    retentionMs: retentionMs ?? RETENTION_MS,
    streamMessages: streamMaxMessages ?? STREAM_MESSAGES,
    ...(total === null ? {} : { bytes: total }),
  };
}

/** Returns what the relay reports about itself: its version, its label and its limit of body sizes. */
export function serverSettings({ label = null, maxBodyBytes = MAX_BODY_BYTES }: Settings): ServerSettings {
  return { version: VERSION, label, maxBodyBytes };
}

/** Returns the folder of the built console and its label; null if the console is switched off. */
export function consoleOf({ operatorConsole = true, label = null }: Settings): { folder: URL; label: string } | null {
  return operatorConsole ? { folder: new URL('../dist/console/', import.meta.url), label: label ?? '' } : null;
}

/** Credentials that no request can match. */
export const NO_AUTH: AuthConfig = { adminTokens: [], secret: null, jwksUrl: null, issuer: null, audience: null };
