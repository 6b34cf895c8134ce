import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Principal } from '../core/auth/principal.ts';
import type { Clock } from '../core/clock.ts';
import type { Core } from '../core/core.ts';
import { CallboardError, internalMessage, notFound } from '../core/errors.ts';
import type { Log } from '../core/log.ts';
import { thenDo, type MaybePromise } from '../core/maybe-promise.ts';
import type { ByteRates } from '../core/shares/byte-rate.ts';
import { rejectUpgrade } from '../gateway/reject-upgrade.ts';
import { networkOf } from '../gateway/address.ts';
import type { OriginRule } from '../web/origin-rule.ts';
import { wantsPage } from '../graphql/http/graphiql.ts';
import { createBodyReader } from '../graphql/http/request-bodies.ts';
import { createReply, type HttpReply } from '../web/reply.ts';
import { GRAPHQL_PATH } from '../graphql/http/request.ts';
import type { Meter } from '../platform/metrics.ts';
import { logAccess, type AccessEntry } from './access-log.ts';
import type { BearerAuthenticator } from './auth.ts';
import type { AuthenticateRequest } from './authenticate-request.ts';
import { createAnonymousGate } from './anonymous-rate.ts';
import { isChunked, mayHaveBody, parseBody, readBody } from './body.ts';
import { createBrokenAnswers, type ParseError } from './broken.ts';
import type { GatewayFace, GraphqlFace, RestFace } from './doors.ts';
import { admitBody, rateOf } from './inbound.ts';
import type { BuiltinRoute } from './builtin-route.ts';
import { createBuiltinRoutes } from './builtin-routes.ts';
import { crossOrigin, requireOwnPage } from './origin.ts';
import { isGraphql, isReading, NO_TUNNELS, refuseExpectation, requireHost, requireMethod } from './request-form.ts';
import type { SignIn } from './sign-in.ts';
import { isSiteEvents } from './site-events.ts';
import type { Sockets } from './sockets.ts';
import type { UnreadBytes } from './unread.ts';
import { pathOf, requestInfoOf, type RequestInfo } from './request-info.ts';

export type RequestHandlerOptions = {
  readonly core: Core;
  readonly log: Log;
  readonly meter: Meter;
  readonly randomId: () => string;
  readonly authenticator: Pick<BearerAuthenticator, 'ready'>;
  readonly admission: AuthenticateRequest;
  readonly graphql: GraphqlFace;
  readonly rest: RestFace;
  readonly gateway: GatewayFace;
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
  readonly clientFiles: URL;
  readonly signIn?: SignIn | undefined;
};

/** Handles the events of the HTTP server. No method throws, whatever the input. */
export type RequestHandler = {
  connection(socket: Socket): void;
  request(request: IncomingMessage, response: ServerResponse): void;
  /** A request with an `Expect` header that is not `100-continue`. */
  expectation(request: IncomingMessage, response: ServerResponse): void;
  /** A CONNECT request. */
  tunnel(request: IncomingMessage, socket: Duplex): void;
  /** Input that is not a valid request. */
  broken(error: ParseError, socket: Duplex): void;
  /** Whether the upgrade is a WebSocket for the gateway; any other Upgrade header is ignored, as RFC 9110 allows. */
  shouldUpgrade(request: IncomingMessage): boolean;
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
};

type Door = 'graphql' | 'rest' | 'events' | 'house' | 'preflight' | 'none';

export function createRequestHandler(options: RequestHandlerOptions): RequestHandler {
  const { log, meter, clock, basePath, origins, sockets, unread } = options;
  const route = createRouter(options);
  const counted = (door: Door): void => meter.count('requests', door);
  const answer = (request: IncomingMessage, response: ServerResponse, route: Router): void => {
    const visit = requestInfoOf(request, response, {
      id: options.randomId(),
      basePath,
      trustProxy: origins.trustProxy,
    });
    const access = logAccess(visit, log);
    unread.serves(request.socket, access);
    const refused = (error: CallboardError): void => {
      access.code = error.code;
      refuse(visit, error, options);
    };
    const { socket } = request;
    const reply = createReply({ requestId: visit.id, socket, response, unread, refuse: refused });
    const asked = { access, reply };
    const failed = (error: unknown): void => {
      meter.count('requests', isGraphql(visit.path) ? 'graphql' : 'rest');
      asked.reply.open();
      const refusal = explain(error, visit, options);
      asked.access.code = refusal.code;
      refuse(visit, refusal, options);
    };
    try {
      const done = route(visit, asked);
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
    request: (request, response) => answer(request, response, route),
    expectation: (request, response) => answer(request, response, refuseExpectation),
    tunnel: (_request, socket) => rejectUpgrade(socket, NO_TUNNELS, clock),
    broken: createBrokenAnswers(clock),
    shouldUpgrade: (request) =>
      pathOf(request, basePath) === '/connect' && request.headers.upgrade?.toLowerCase() === 'websocket',
    upgrade(request, socket, head) {
      meter.count('requests', 'gateway');
      sockets.upgraded(request.socket);
      try {
        options.gateway.upgrade(request, socket, head);
      } catch (error) {
        log.error({ error }, 'upgrade failed');
        socket.destroy();
      }
    },
  };
}

type Asked = { readonly access: AccessEntry; readonly reply: HttpReply };
type Router = (visit: RequestInfo, asked: Asked) => MaybePromise<Door>;

function createRouter(options: RequestHandlerOptions): Router {
  const { admission, siteEvents, origins } = options;
  const builtin = createBuiltinRoutes({ ...options, openapi: () => options.rest.openapi });
  const routeOf = (path: string): BuiltinRoute | undefined =>
    builtin.get(path) ?? (isSiteEvents(path) ? siteEvents : undefined);
  const answer = createDoors(options);
  return (visit, asked) => {
    const { request, path } = visit;
    requireHost(visit);
    const route = path === null ? undefined : routeOf(path);
    // These responses need the default headers now; all others send them together with the response (`reply.json`).
    if (route || request.headers.origin !== undefined) asked.reply.open();
    if (crossOrigin(visit, origins)) return 'preflight';
    if (path === null) notFound();
    if (route) requireMethod(visit, route.methods);
    const isPage = route?.authentication === 'open' || (path === GRAPHQL_PATH && wantsPage(request));
    if (!isPage) requireOwnPage(visit, origins);
    if (route && route.authentication !== 'bearer') return answerBuiltin(route, visit, asked);
    return thenDo(admission(visit), (requester) => {
      asked.access.requester = requester;
      if (route) return answerBuiltin(route, visit, asked);
      options.unread.requireRoom(requester);
      return answer(visit, asked);
    });
  };
}

function answerBuiltin(route: BuiltinRoute, visit: RequestInfo, { access }: Asked): MaybePromise<Door> {
  return thenDo(route.handle(visit, access), () => route.label);
}

/** Routes authenticated requests to GraphQL or REST. */
function createDoors({ core, graphql, rest, maxBodyBytes, inbound, meter }: RequestHandlerOptions): Router {
  const anonymous = createAnonymousGate(core.clock, maxBodyBytes);
  const readGraphqlBody = createBodyReader(parseBody);
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
  const toGraphql: Router = (visit, { access, reply }) => {
    const { request, response } = visit;
    const { requester } = access;
    if (!requester && !wantsPage(request)) anonymous.admit(request, networkOf(visit.address));
    return thenDo(read(visit, requester, readGraphqlBody), (body) =>
      thenDo(graphql.handle(request, response, { requester, body, reply, notes: access }), () => 'graphql'),
    );
  };
  return (visit, asked) => {
    const { request, response, path, query } = visit;
    if (path === null) notFound();
    if (isGraphql(path)) return toGraphql(visit, asked);
    const { requester } = asked.access;
    const unread = requester === null && mayHaveBody(request);
    if (unread) {
      // Every route needs a token and answers 401 whatever the body says, so none of it is read.
      asked.reply.open();
      response.setHeader('connection', 'close');
    }
    return thenDo(unread ? undefined : read(visit, requester, parseBody), (body) =>
      thenDo(
        rest.handle(request, response, { requester, path, query, body, reply: asked.reply, notes: asked.access }),
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
  // The next request on this connection would start only after the rest of the body, which is not worth reading.
  if (!request.complete) response.setHeader('connection', 'close');
  if (isGraphql(path)) graphql.refuse(response, error);
  else rest.refuse(response, error);
}
