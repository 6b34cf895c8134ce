/**
 * Creates and connects the request handlers of one relay, and registers the node's gauges. It contains no request
 * logic.
 */
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { AdminPrincipal, Principal } from '../core/auth/principal.ts';
import type { Core } from '../core/core.ts';
import { CallboardError } from '../core/errors.ts';
import {
  INBOUND_BYTES_PER_SECOND,
  UNAUTHENTICATED_SOCKETS,
  UNAUTHENTICATED_SOCKETS_PER_ADDRESS,
} from '../core/limits.ts';
import { SHARE_NAMES, type ShareName } from '../core/shares/share-bounds.ts';
import { ByteRates } from '../core/shares/turns.ts';
import { createGateway, type Gateway } from '../gateway/gateway.ts';
import type { Introspection } from '../graphql/execute/anonymous-query.ts';
import { createPlans, readDocument } from '../graphql/execute/executor.ts';
import { createMask } from '../graphql/execute/mask.ts';
import { createGraphqlHandler, type LoadYoga } from '../graphql/http/handler.ts';
import { createContext } from '../graphql/schema/context.ts';
import { restSchema, schema } from '../graphql/schema/schema.ts';
import { createMcpHandler } from '../mcp/handler.ts';
import type { Meter } from '../platform/metrics.ts';
import { socketRoom } from '../platform/open-files.ts';
import { createRestHandler, type RestHandler } from '../rest/serve.ts';
import { createRefusalLog } from '../web/origin.ts';
import { createSseStreams, type SseStreams } from '../web/sse.ts';
import { createAuthenticateRequest } from './authenticate-request.ts';
import { createTokenGuard } from './token-guard.ts';
import type { BearerAuthenticator } from './authenticator.ts';
import { BUILTIN_DESCRIPTIONS } from './builtin-descriptions.ts';
import { MetricsToken } from './metrics-token.ts';
import { createRequestHandler, type RequestHandler, type RequestHandlerOptions } from './request-handler.ts';
import { requireReady } from './routes.ts';
import { createSiteEvents, SITE_EVENTS_DESCRIPTION } from './site-events.ts';
import { UnreadBytes } from './unread-bytes.ts';
import { Sockets } from './sockets.ts';

type AppOptions = Omit<
  RequestHandlerOptions,
  | 'authenticate'
  | 'graphql'
  | 'rest'
  | 'mcp'
  | 'gateway'
  | 'siteEvents'
  | 'sockets'
  | 'inbound'
  | 'unread'
  | 'metricsToken'
  | 'refused'
> & {
  /**
   * Whether the relay serves agents at `/mcp`; default false. The MCP server's package is loaded at the first request
   * of an agent, or by `loadAgents`.
   */
  readonly mcp?: boolean;
  readonly authenticator: BearerAuthenticator;
  readonly introspection: Introspection;
  /** The token that may read `/metrics` and nothing else. */
  readonly metricsToken?: MetricsToken;
  /**
   * The maximum number of open sockets of one address without a valid token; default
   * UNAUTHENTICATED_SOCKETS_PER_ADDRESS.
   */
  readonly unauthenticatedSockets?: number | undefined;
  /**
   * The maximum bytes per second that one user may send over links and in request bodies; default
   * INBOUND_BYTES_PER_SECOND.
   */
  readonly inboundBytesPerSecond?: number | undefined;
  /** The interval of pings over links and event streams, in milliseconds; default PING_MS. */
  readonly pingMs?: number | undefined;
  readonly version: string;
  /**
   * The maximum number of files and sockets that the process may have open; null (the default) if no limit is known.
   */
  readonly descriptors?: number | null;
  /** Loads Yoga. Default: imports the package when it is first needed. */
  readonly loadYoga?: LoadYoga | undefined;
  /**
   * Whether the fast path is used, which skips repeated work for known documents and encodes an event once for many
   * subscribers. Default true. The responses have the same bytes without it.
   */
  readonly fastPath?: boolean;
};

/** The request handlers of one relay: HTTP, GraphQL, REST and links. */
export type App = {
  readonly requestHandler: RequestHandler;
  /** See `Gateway.accept`. */
  readonly accept: Gateway['accept'];
  /**
   * Loads the modules for agents, if the relay serves agents. If this is never called, the first request of an agent
   * loads them, which delays all requests at that time.
   */
  loadAgents(): Promise<void>;
  /**
   * Starts to look for an idle time in which to load modules that requests need: no request has begun for IDLE_MS.
   * Loads them after BUSY_MS in any case. Does nothing once the app closes.
   */
  preload(): void;
  /** Closes links with `draining` and ends streams. Resolves when they are gone, or after two seconds. */
  close(): Promise<void>;
  /**
   * Closes links with `internal`, and leaves HTTP requests alone. Resolves when the links are gone, or after one
   * second.
   */
  abort(): Promise<void>;
};

/**
 * How long `abort` waits, in milliseconds. It is short because the process is ending after an error whose effects are
 * unknown.
 */
const ABORT_WAIT_MS = 1_000;
/** Modules are loaded when no request has begun for this long, in milliseconds: loading keeps the event loop busy. */
const IDLE_MS = 1_000;
/**
 * When modules are loaded at the latest, in milliseconds after the start. A relay that has been busy until then may
 * stay busy, and loading them at their first use would delay all requests at that time.
 */
const BUSY_MS = 5_000;
/**
 * How long `close` waits, in milliseconds. A peer that does not answer the closing frame must not delay the end of the
 * process.
 */
const CLOSE_WAIT_MS = 2_000;

export function createApp(options: AppOptions): App {
  const { core, log, meter, clock, basePath, origins, fastPath = true } = options;
  const guard = createTokenGuard({ clock, log, metrics: meter });
  const authenticator = guard.around(options.authenticator);
  const streams = createSseStreams({ clock: core.clock, direct: fastPath, pingMs: options.pingMs });
  const graphql = createGraphqlHandler({
    schema,
    core,
    log,
    metrics: meter,
    basePath,
    fastPath,
    streams,
    introspection: options.introspection,
    loadYoga: options.loadYoga,
  });
  const sockets = new Sockets({
    clock,
    loop: core.loop,
    log,
    metrics: meter,
    shares: core.shares,
    inAll: Math.min(UNAUTHENTICATED_SOCKETS, socketRoom(options.descriptors ?? null).unauthenticated),
    perAddress: origins.trustProxy ? null : (options.unauthenticatedSockets ?? UNAUTHENTICATED_SOCKETS_PER_ADDRESS),
  });
  const inbound = new ByteRates(clock, options.inboundBytesPerSecond ?? INBOUND_BYTES_PER_SECOND);
  const unread = new UnreadBytes({ shares: core.shares, clock, log, metrics: meter });
  const onWelcome = (socket: Duplex, requester: Principal): void => {
    unread.serves(socket, { requester });
    if (socket instanceof Socket) sockets.released(socket);
  };
  const refused = createRefusalLog({ clock, log });
  const gateway = createGateway({
    core,
    authenticator,
    log,
    metrics: meter,
    clock,
    inbound,
    onWelcome,
    refused,
    ...origins,
    ...(options.pingMs !== undefined && { pingMs: options.pingMs }),
  });
  core.revocations.endWith('links', (isCovered) => gateway.endRevoked(isCovered));
  core.revocations.endWith('sockets', (isCovered, by) => sockets.endRevoked((one) => isCovered(one, null), by));
  core.onLost(() => {
    sockets.endRequests();
    gateway.endRequests();
  });
  const ready = (): Promise<void> => requireReady([core, options.authenticator]);
  meterNode(meter, { core, ready, gateway, sockets });
  meterShares(meter, core);
  const authenticate = createAuthenticateRequest(authenticator, sockets);
  const siteEvents = createSiteEvents({ core, log, streams, authenticate, guard, sockets, fastPath });
  const rest = createRest(options, streams);
  const mcp = options.mcp ? createMcpHandler({ core, log, version: options.version }) : null;
  const requestHandler = createRequestHandler({
    ...options,
    metricsToken: options.metricsToken ?? new MetricsToken(),
    authenticate,
    graphql,
    rest,
    mcp,
    gateway,
    siteEvents,
    sockets,
    inbound,
    unread,
    refused,
  });
  let stopPreload = (): void => {};
  return {
    requestHandler,
    accept: gateway.accept,
    loadAgents: async () => mcp?.load(),
    preload() {
      let before = sockets.requests;
      let left = BUSY_MS / IDLE_MS;
      stopPreload = clock.every(IDLE_MS, () => {
        const began = sockets.requests - before;
        before = sockets.requests;
        if (--left > 0 && began > 0) return;
        stopPreload();
        graphql.preload().catch((error: unknown) => log.warn({ err: error }, 'a module could not be loaded'));
      });
    },
    async close() {
      stopPreload();
      sockets.close();
      unread.close();
      mcp?.close();
      const gone = Promise.all([gateway.closeAll('draining'), graphql.close()]);
      streams.close();
      await Promise.race([gone, new Promise<void>((late) => clock.after(CLOSE_WAIT_MS, late))]);
    },
    async abort() {
      const late = new Promise<void>((done) => clock.after(ABORT_WAIT_MS, done));
      await Promise.race([gateway.closeAll('internal'), late]);
    },
  };
}

function createRest(
  { core, log, meter, basePath, version, fastPath = true }: AppOptions,
  streams: SseStreams,
): RestHandler {
  return createRestHandler({
    schema: restSchema,
    plans: createPlans(restSchema, { fast: fastPath, keep: !core.capabilities.shared }),
    mask: createMask({ log, metrics: meter, crypto: core.crypto }),
    contextOf: (request) => createContext({ core, ...request }),
    read: (request, run) => readDocument(core, request, run),
    streams,
    basePath,
    version,
    besides: [SITE_EVENTS_DESCRIPTION, ...BUILTIN_DESCRIPTIONS],
  });
}

type GaugeSources = {
  readonly core: Core;
  /** Rejects with a CallboardError while this node accepts no new links and commands. */
  readonly ready: () => Promise<void>;
  readonly gateway: Gateway;
  readonly sockets: Sockets;
};

const READER: AdminPrincipal = { kind: 'admin', name: 'metrics', expiresAt: null };
const CALLER = 'caller';

/** Registers the gauges of this node and of its deployment. Each is computed when it is read. */
function meterNode(meter: Meter, { core, ready, gateway, sockets }: GaugeSources): void {
  const { delivery, nodeCounts, nodeWaits, policyReport } = core;
  meter.gauge('ready', async () => {
    try {
      await ready();
      return 1;
    } catch (error) {
      if (error instanceof CallboardError) return 0;
      throw error;
    }
  });
  meter.gauges('nodes', async () => {
    const { live, stale } = await nodeCounts();
    return [
      ['live', live],
      ['stale', stale],
    ];
  });
  meter.gauge('links', () => gateway.size);
  const clients = (): [string, number][] => [...gateway.peers()].filter(([peer]) => peer !== CALLER);
  const callers = (): number => gateway.peers().get(CALLER) ?? 0;
  meter.gauges('client_links', clients);
  meter.gauge('caller_links', callers);
  meter.sample('client_links', clients);
  meter.sample('caller_links', () => [[null, callers()]]);
  meter.gauge('commands_queued', () => delivery.nodeLoad().queued);
  meter.gauge('commands_in_flight', () => delivery.nodeLoad().inFlight);
  meter.gauge('waiters', () => nodeWaits().count);
  meter.gauge('oldest_wait_seconds', () => nodeWaits().oldestMs / 1000);
  const readReservations = shared(() => delivery.reservations(READER));
  meter.gauges('reservations', async () => {
    const { named, others } = await readReservations();
    return [...named.map(({ scopeId, reservedCommands }) => [scopeId, reservedCommands] as const), ['other', others]];
  });
  meter.gauges('reservations_limit', async () => {
    const { named } = await readReservations();
    return named.flatMap(({ scopeId, limit }) => (limit === null ? [] : [[scopeId, limit] as const]));
  });
  meter.gauge('reservations_fullest_ratio', async () => (await readReservations()).fullest);
  meter.gauge('unauthenticated_sockets', () => sockets.unauthenticated);
  meter.gauge('policy_fault', () => (policyReport()?.fault ? 1 : 0));
}

/** Returns a function in which all calls that arrive during a read share that read. */
function shared<T>(read: () => Promise<T>): () => Promise<T> {
  let current: Promise<T> | null = null;
  return () => (current ??= read().finally(() => (current = null)));
}

/**
 * Registers gauges for each share: the amount in use, the total, and the number of users over their guarantee. For a
 * share that the store counts for all nodes, every node reports the same amount in use, and none reports users over
 * their guarantee.
 */
function meterShares(meter: Meter, { shares, sharesInUse }: Core): void {
  const each = (read: (share: ShareName) => number | null): readonly (readonly [ShareName, number])[] =>
    SHARE_NAMES.flatMap((share) => {
      const value = read(share);
      return value === null ? [] : [[share, value] as const];
    });
  meter.gauges('share_used', async () => {
    const { used } = await sharesInUse();
    return each(used);
  });
  meter.gauges('share_limit', () => each((share) => shares.bounds[share].total));
  meter.gauges('share_users_over', async () => {
    const { inStore } = await sharesInUse();
    return each((share) => (inStore(share) ? null : [...shares.over(share)].length));
  });
}
