/** Checks, authenticates, routes and counts each HTTP request. The handlers it calls produce the responses. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Principal } from '../core/auth/principal.ts';
import type { Clock } from '../core/clock.ts';
import type { Core } from '../core/core.ts';
import { CallboardError, internalMessage, notFound } from '../core/errors.ts';
import type { Log } from '../core/log.ts';
import { thenDo, type MaybePromise } from '../core/maybe-promise.ts';
import { holderOf } from '../core/shares/holders.ts';
import type { ByteRates } from '../core/shares/byte-rate.ts';
import { rejectUpgrade } from '../gateway/reject-upgrade.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { networkOf } from '../gateway/address.ts';
import type { OriginRule } from '../web/origin-rule.ts';
import { wantsPage } from '../graphql/http/graphiql.ts';
import type { GraphqlHandler } from '../graphql/http/handler.ts';
import { createBodyReader } from '../graphql/http/request-bodies.ts';
import { createReply, type HttpReply } from '../web/reply.ts';
import { requestBegan, requestDone } from '../web/requests-in-progress.ts';
import { GRAPHQL_PATH } from '../graphql/http/request.ts';
import type { Meter } from '../platform/metrics.ts';
import type { RestHandler } from '../rest/handler.ts';
import { fixedRouteOf, logAccess, type AccessEntry } from './access-log.ts';
import type { BearerAuthenticator } from './auth.ts';
import type { AuthenticateRequest } from './authenticate-request.ts';
import { createAnonymousGate } from './anonymous-rate.ts';
import { decodeBody, isChunked, mayHaveBody, parseBody, readBody, refuseBody } from './body.ts';
import { createBrokenAnswers, type ParseError } from './broken.ts';
import { admitBody, rateOf } from './inbound.ts';
import type { BuiltinRoute } from './builtin-route.ts';
import { createBuiltinRoutes, createConsoleRoute, type BuiltinRoutesOptions } from './builtin-routes.ts';
import { crossOrigin, requireOwnPage } from './origin.ts';
import type { MetricsToken } from './metrics-token.ts';
import {
  hostRefusal,
  isGraphql,
  isReading,
  NO_TUNNELS,
  refuseExpectation,
  requireHost,
  requireMethod,
} from './request-form.ts';
import { isSiteEvents } from './site-events.ts';
import type { Sockets } from './sockets.ts';
import type { UnreadBytes } from './unread.ts';
import { pathOf, requestInfoOf, type RequestInfo } from './request-info.ts';

export type RequestHandlerOptions = Pick<
  BuiltinRoutesOptions,
  'clientFiles' | 'signIn' | 'tickets' | 'operatorConsole'
> & {
  readonly core: Core;
  readonly log: Log;
  readonly meter: Meter;
  readonly randomId: () => string;
  readonly authenticator: Pick<BearerAuthenticator, 'ready'>;
  readonly authenticate: AuthenticateRequest;
  readonly graphql: GraphqlHandler;
  readonly rest: RestHandler;
  readonly gateway: Pick<Gateway, 'upgrade'>;
  /** The route of every path for which `isSiteEvents` is true. */
  readonly siteEvents: BuiltinRoute;
  readonly sockets: Sockets;
  readonly unread: UnreadBytes;
  readonly clock: Clock;
  readonly basePath: string;
  readonly maxBodyBytes: number;
  /** The inbound byte rates of users. */
  readonly inbound: ByteRates;
  readonly origins: OriginRule;
  readonly metricsToken: Pick<MetricsToken, 'accepts'>;
};

/** Handles the events of the HTTP server. No method throws, whatever the input. */
export type RequestHandler = {
  connection(socket: Socket): void;
  /** Called when the TLS handshake of an accepted socket is complete; its requests arrive over `secured`. */
  secured(socket: Socket, secured: Socket): void;
  request(request: IncomingMessage, response: ServerResponse): void;
  /** Handles a request with an `Expect` header that is not `100-continue`. */
  expectation(request: IncomingMessage, response: ServerResponse): void;
  /** Handles a CONNECT request. */
  tunnel(request: IncomingMessage, socket: Duplex): void;
  /** Handles input that is not a valid request. */
  broken(error: ParseError, socket: Duplex): void;
  /** Whether the upgrade is a WebSocket for the gateway; any other Upgrade header is ignored, as RFC 9110 allows. */
  shouldUpgrade(request: IncomingMessage): boolean;
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
};

/** The values of the label `handler` of the metric `callboard_requests_total`. */
type RouteLabel = 'graphql' | 'rest' | 'events' | 'builtin' | 'preflight' | 'none';

export function createRequestHandler(options: RequestHandlerOptions): RequestHandler {
  const { log, meter, clock, basePath, origins, sockets, unread } = options;
  const route = createRouter(options);
  const counted = (label: RouteLabel): void => meter.count('requests', label);
  const answer = (request: IncomingMessage, response: ServerResponse, route: Router): void => {
    const info = requestInfoOf(request, response, {
      id: options.randomId(),
      basePath,
      trustProxy: origins.trustProxy,
    });
    const { socket } = request;
    sockets.began(socket);
    const ended = (): void => {
      sockets.ended(socket);
      requestDone(response);
    };
    const access = logAccess(info, { log, metrics: meter, ended });
    unread.serves(socket, access);
    const refused = (error: CallboardError): void => {
      access.code = error.code;
      refuse(info, error, options);
    };
    const reply = createReply({ requestId: info.id, socket, response, unread, refuse: refused });
    const exchange = { access, reply };
    const failed = (error: unknown): void => {
      meter.count('requests', isGraphql(info.path) ? 'graphql' : 'rest');
      exchange.reply.open();
      const refusal = explain(error, info, options);
      exchange.access.code = refusal.code;
      refuse(info, refusal, options);
    };
    try {
      const done = route(info, exchange);
      if (done instanceof Promise) done.then(counted, failed);
      else counted(done);
    } catch (error) {
      failed(error);
    }
  };
  return {
    connection(socket) {
      sockets.accepted(socket);
      if (!socket.destroyed) unread.accepted(socket);
    },
    secured(socket, secured) {
      sockets.secured(socket, secured);
      unread.accepted(secured);
    },
    request: (request, response) => answer(request, response, route),
    expectation: (request, response) => answer(request, response, refuseExpectation),
    tunnel: (_request, socket) => rejectUpgrade(socket, NO_TUNNELS, clock),
    broken: createBrokenAnswers(clock),
    shouldUpgrade: (request) =>
      pathOf(request, basePath) === '/connect' && request.headers.upgrade?.toLowerCase() === 'websocket',
    upgrade(request, socket, head) {
      meter.count('requests', 'gateway');
      sockets.upgraded(request.socket);
      const refusal = hostRefusal(request);
      if (refusal) return rejectUpgrade(socket, refusal, clock);
      try {
        options.gateway.upgrade(request, socket, head);
      } catch (error) {
        log.error({ error }, 'upgrade failed');
        socket.destroy();
      }
    },
  };
}

type Exchange = { readonly access: AccessEntry; readonly reply: HttpReply };
type Router = (info: RequestInfo, exchange: Exchange) => MaybePromise<RouteLabel>;

function createRouter(options: RequestHandlerOptions): Router {
  const { authenticate, siteEvents, origins } = options;
  const operatorConsole = createConsoleRoute(options);
  const builtin = createBuiltinRoutes({ ...options, openapi: () => options.rest.openapi() });
  const routeOf = (path: string): BuiltinRoute | undefined =>
    builtin.get(path) ?? operatorConsole(path) ?? (isSiteEvents(path) ? siteEvents : undefined);
  const answer = createApiRouter(options);
  return (info, exchange) => {
    const { request, path } = info;
    requireHost(info);
    const route = path === null ? undefined : routeOf(path);
    // Only these responses need the default headers now; others send them together with the response (`reply.json`).
    if (route || request.headers.origin !== undefined) exchange.reply.open();
    if (crossOrigin(info, origins)) return 'preflight';
    if (path === null) notFound();
    if (route) requireMethod(info, route.methods);
    const isPage = route?.authentication === 'open' || (path === GRAPHQL_PATH && wantsPage(request));
    if (!isPage) requireOwnPage(info, origins);
    if (route && route.authentication !== 'bearer') return answerBuiltin(route, info, exchange);
    return thenDo(authenticate(info), (requester) => {
      exchange.access.requester = requester;
      if (requester) requestBegan(info.response, options.core.shares.of(holderOf(requester)));
      if (route) return answerBuiltin(route, info, exchange);
      options.unread.requireRoom(requester);
      return answer(info, exchange);
    });
  };
}

function answerBuiltin(route: BuiltinRoute, info: RequestInfo, { access }: Exchange): MaybePromise<RouteLabel> {
  if (route.label === 'builtin') access.route = fixedRouteOf(info.path);
  return thenDo(route.handle(info, access), () => route.label);
}

/** Routes authenticated requests to GraphQL or REST. */
function createApiRouter({ core, graphql, rest, maxBodyBytes, inbound, meter }: RequestHandlerOptions): Router {
  const anonymous = createAnonymousGate(core.clock, maxBodyBytes);
  const readGraphqlBody = createBodyReader(decodeBody, refuseBody);
  const read = <T>(
    { request, method }: RequestInfo,
    requester: Principal | null,
    parse: (bytes: Buffer) => T,
  ): MaybePromise<T | undefined> => {
    if (isReading(method) || !mayHaveBody(request)) return undefined;
    const rate = rateOf(inbound, requester);
    if (rate) admitBody(rate, request, { maxBytes: maxBodyBytes, metrics: meter });
    const unannounced = rate && isChunked(request) ? (bytes: number) => void rate.charge(bytes) : undefined;
    return readBody(request, requester ? maxBodyBytes : anonymous.bodyBytes, { parse, unannounced });
  };
  const toGraphql: Router = (info, { access, reply }) => {
    const { request, response } = info;
    const { requester } = access;
    access.route = GRAPHQL_PATH;
    if (!requester && !wantsPage(request)) anonymous.admit(request, networkOf(info.address));
    return thenDo(read(info, requester, readGraphqlBody), (body) =>
      thenDo(graphql.handle(request, response, { requester, body, reply, notes: access }), () => 'graphql'),
    );
  };
  return (info, exchange) => {
    const { request, response, path, query } = info;
    if (path === null) notFound();
    if (isGraphql(path)) return toGraphql(info, exchange);
    const { requester } = exchange.access;
    const unread = requester === null && mayHaveBody(request);
    if (unread) {
      // The request has no token. Every REST route answers it with 401 whatever the body says, so the body is not read.
      exchange.reply.open();
      response.setHeader('connection', 'close');
    }
    return thenDo(unread ? undefined : read(info, requester, parseBody), (body) =>
      thenDo(
        rest.handle(request, response, { requester, path, query, body, reply: exchange.reply, notes: exchange.access }),
        (found) => (found ? 'rest' : notFound()),
      ),
    );
  };
}

/** Masks an unexpected error: the log has it under the request's id, and the response has only that id. */
function explain(error: unknown, { id, path }: RequestInfo, { log, meter }: RequestHandlerOptions): CallboardError {
  if (error instanceof CallboardError) return error;
  meter.count('errors_masked');
  log.error({ id, path, error }, 'unexpected error');
  return new CallboardError('internal', internalMessage(id));
}

function refuse(
  { request, response, path }: RequestInfo,
  error: CallboardError,
  { graphql, rest }: RequestHandlerOptions,
): void {
  if (response.headersSent) return void response.destroy();
  if (error.status === 401) response.setHeader('www-authenticate', 'Bearer');
  if (error.details.retryAfterMs !== undefined) {
    response.setHeader('retry-after', String(Math.max(1, Math.ceil(error.details.retryAfterMs / 1000))));
  }
  // The next request on this connection would follow the rest of the body, which is not worth reading.
  // A user who holds too many connections or requests gets rid of one.
  const { share } = error.details;
  if (!request.complete || share === 'sockets' || share === 'requests') response.setHeader('connection', 'close');
  if (isGraphql(path)) graphql.refuse(response, error);
  else rest.refuse(response, error);
}
