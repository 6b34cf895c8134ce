/** Creates the request handlers of one relay and connects them. It contains no request logic itself. */
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Principal } from '../core/auth/principal.ts';
import type { Clock } from '../core/clock.ts';
import type { Core } from '../core/core.ts';
import {
  INBOUND_BYTES_PER_SECOND,
  UNAUTHENTICATED_SOCKETS,
  UNAUTHENTICATED_SOCKETS_PER_ADDRESS,
} from '../core/limits.ts';
import type { Log } from '../core/log.ts';
import { ByteRates } from '../core/shares/byte-rate.ts';
import { createGateway } from '../gateway/gateway.ts';
import type { OriginRule } from '../web/origin-rule.ts';
import { createSseStreams } from '../web/sse-streams.ts';
import { createContext } from '../graphql/schema/context.ts';
import { createGraphqlHandler } from '../graphql/http/handler.ts';
import type { Introspection } from '../graphql/execution/limits.ts';
import { readDocument } from '../graphql/execution/limits.ts';
import { createMask } from '../graphql/execution/mask.ts';
import { createPlans } from '../graphql/execution/plan.ts';
import { schema, restSchema } from '../graphql/schema/schema.ts';
import { descriptorLimit, socketRoom } from '../platform/descriptors.ts';
import { systemLoop } from '../platform/event-loop.ts';
import type { Meter } from '../platform/metrics.ts';
import { createRestHandler, type RestHandler } from '../rest/handler.ts';
import { createAuthenticateRequest } from './authenticate-request.ts';
import type { BearerAuthenticator } from './auth.ts';
import { BUILTIN_DESCRIPTIONS } from './builtin-descriptions.ts';
import { MetricsToken } from './metrics-token.ts';
import { meterNode } from './node-gauges.ts';
import { requireReady } from './readiness.ts';
import { createRequestHandler, type RequestHandler } from './request-handler.ts';
import { meterShares } from './share-gauges.ts';
import type { ConsoleOptions } from './console.ts';
import type { SignIn } from './sign-in.ts';
import type { TicketDesk } from './sign-in-tickets.ts';
import { SITE_EVENTS_DESCRIPTION } from './site-events-description.ts';
import { createSiteEvents } from './site-events.ts';
import { Sockets } from './sockets.ts';
import { UnreadBytes } from './unread.ts';
import { createTokenGuard } from './token-guard.ts';

export type AppOptions = {
  readonly core: Core;
  readonly authenticator: BearerAuthenticator;
  readonly log: Log;
  readonly meter: Meter;
  readonly clock: Clock;
  readonly randomId: () => string;
  readonly basePath: string;
  readonly maxBodyBytes: number;
  readonly origins: OriginRule;
  readonly introspection: Introspection;
  readonly clientFiles: URL;
  /** The token that reads `/metrics` and nothing else. */
  readonly metricsToken?: MetricsToken;
  /** Signs in a page on this machine by a code; absent: no page can be signed in this way. */
  readonly signIn?: SignIn | undefined;
  /** Exchanges sign-in tickets for tokens; absent: no ticket is accepted. */
  readonly tickets?: Pick<TicketDesk, 'redeem'> | undefined;
  /** The console for operators. Absent: it is switched off. */
  readonly operatorConsole?: Omit<ConsoleOptions, 'basePath'> | null;
  /** The most open sockets of one address without a valid token; default UNAUTHENTICATED_SOCKETS_PER_ADDRESS. */
  readonly unauthenticatedSockets?: number | undefined;
  /**
   * Bytes per second that one user may send, over links and request bodies together; default INBOUND_BYTES_PER_SECOND.
   */
  readonly inboundBytesPerSecond?: number | undefined;
  readonly version: string;
  /**
   * Whether the fast path is used. It skips repeated work for known documents, and encodes an event once for many
   * subscribers. Default true. The responses have the same bytes either way.
   */
  readonly fastPath?: boolean;
};

/** The request handlers of one relay: HTTP, GraphQL, REST and links. */
export type App = {
  readonly requestHandler: RequestHandler;
  /** Closes links with `draining` and ends streams. Resolves when they are gone, or after two seconds. */
  close(): Promise<void>;
  /**
   * Closes links with `internal`, and answers nothing that is still in progress. Resolves when the links are gone, or
   * after one second.
   */
  abort(): Promise<void>;
};

/** How long `abort` waits, in milliseconds: the process ends because of an error whose effects nobody knows. */
const ABORT_WAIT_MS = 1_000;
/** How long `close` waits, in milliseconds: a peer that does not answer the close must not delay the process. */
const CLOSE_WAIT_MS = 2_000;

export function createApp(options: AppOptions): App {
  const { core, log, meter, clock, basePath, origins, fastPath = true } = options;
  const guard = createTokenGuard({ clock, log, metrics: meter });
  const authenticator = guard.around(options.authenticator);
  const streams = createSseStreams({ clock: core.clock, direct: fastPath });
  const graphql = createGraphqlHandler({
    schema,
    core,
    log,
    metrics: meter,
    introspection: options.introspection,
    basePath,
    fastPath,
    streams,
  });
  const sockets = new Sockets({
    ...{ clock, loop: systemLoop, log, metrics: meter, shares: core.shares, inAll: unauthenticatedSockets() },
    perAddress: origins.trustProxy ? null : (options.unauthenticatedSockets ?? UNAUTHENTICATED_SOCKETS_PER_ADDRESS),
  });
  const inbound = new ByteRates(clock, options.inboundBytesPerSecond ?? INBOUND_BYTES_PER_SECOND);
  const unread = new UnreadBytes({ shares: core.shares, clock, log, metrics: meter });
  const onWelcome = (socket: Duplex, requester: Principal): void => {
    unread.serves(socket, { requester });
    if (socket instanceof Socket) sockets.welcomed(socket);
  };
  const gateway = createGateway({ core, authenticator, log, metrics: meter, clock, inbound, onWelcome, ...origins });
  const ready = (): Promise<void> => requireReady([core, options.authenticator]);
  meterNode(meter, { core, ready, gateway, sockets });
  meterShares(meter, core);
  const authenticate = createAuthenticateRequest(authenticator, sockets);
  const siteEvents = createSiteEvents({ core, log, streams, authenticate, guard, sockets, fastPath });
  const rest = createRest(options);
  const requestHandler = createRequestHandler({
    ...options,
    metricsToken: options.metricsToken ?? new MetricsToken(),
    authenticate,
    graphql,
    rest,
    gateway,
    siteEvents,
    sockets,
    inbound,
    unread,
  });
  return {
    requestHandler,
    async close() {
      sockets.close();
      unread.close();
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

function createRest({ core, log, meter, basePath, version, fastPath = true }: AppOptions): RestHandler {
  return createRestHandler({
    schema: restSchema,
    plans: createPlans(restSchema, { fast: fastPath, keep: !core.capabilities.shared }),
    mask: createMask({ log, metrics: meter }),
    contextOf: (request) => createContext({ core, ...request }),
    read: (request, run) => readDocument(core, request, run),
    basePath,
    version,
    besides: [SITE_EVENTS_DESCRIPTION, ...BUILTIN_DESCRIPTIONS],
  });
}

/** Returns the maximum number of unauthenticated sockets, within the process's limit of descriptors. */
function unauthenticatedSockets(): number {
  return Math.min(UNAUTHENTICATED_SOCKETS, socketRoom(descriptorLimit()).unauthenticated);
}
