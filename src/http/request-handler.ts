/**
 * Checks, authenticates, routes and counts each HTTP request, and charges its body to the user's byte rate. It passes
 * the request to another handler, and answers by itself only input that is not a valid request.
 */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Principal } from '../core/auth/principal.ts';
import type { Core } from '../core/core.ts';
import { CallboardError, fail, internalMessage, notFound } from '../core/errors.ts';
import type { JsonText } from '../core/json.ts';
import { thenDo, type MaybePromise } from '../core/maybe-promise.ts';
import type { Clock, Log } from '../core/ports.ts';
import { holderOf } from '../core/shares/holder.ts';
import type { ByteRate, ByteRates } from '../core/shares/turns.ts';
import { rejectUpgrade, type Gateway, type UpgradeRefusal } from '../gateway/gateway.ts';
import { wantsPage } from '../graphql/http/graphiql.ts';
import type { GraphqlHandler } from '../graphql/http/handler.ts';
import { GRAPHQL_PATH, createBodyReader } from '../graphql/http/request.ts';
import type { McpHandler } from '../mcp/handler.ts';
import type { Meter } from '../platform/metrics.ts';
import type { RestHandler } from '../rest/serve.ts';
import { addressOf, networkOf } from '../web/forwarded.ts';
import type { OriginRule, RefusalLog } from '../web/origin.ts';
import { createReply, type HttpReply } from '../web/reply.ts';
import { requestBegan, requestDone } from '../web/request-count.ts';
import type { HttpRequest, HttpResponse, HttpSocket } from '../web/request.ts';
import { fixedRouteOf, logAccess, type AccessEntry } from './access-log.ts';
import { challenge, metadataUrl } from './agent-metadata.ts';
import { AnonymousGate } from './anonymous-gate.ts';
import type { BuiltinRoute } from './builtin-route.ts';
import { crossOrigin, requireOwnPage } from './cross-origin.ts';
import { isChunked, mayHaveBody, parseBody, readBody, decodeBody, deferContinue, refuseBody } from './request-body.ts';
import {
  isGraphql,
  refuseExpectation,
  NO_TUNNELS,
  hostFault,
  requireHost,
  requireMethod,
  isReading,
  MCP_TOKEN,
  isMcp,
} from './request-form.ts';
import { pathOf, requestInfoOf, type RequestInfo } from './request-info.ts';
import { createBuiltinRoutes, createConsoleRoute, type BuiltinRoutesOptions } from './routes.ts';
import { isSiteEvents } from './site-events.ts';
import { isAnswering, type Sockets } from './sockets.ts';
import { namesIn, type Names } from './tokens.ts';
import type { UnreadBytes } from './unread-bytes.ts';

export type RequestHandlerOptions = Omit<BuiltinRoutesOptions, 'openapi' | 'agents'> & {
  readonly core: Core;
  readonly log: Log;
  readonly meter: Meter;
  readonly randomId: () => string;
  readonly graphql: GraphqlHandler;
  readonly rest: RestHandler;
  /** The MCP endpoint for agents; null: it is switched off. */
  readonly mcp: McpHandler | null;
  /** The issuers of the tokens that agents fetch themselves; absent if none is configured. */
  readonly issuer?: Names;
  readonly gateway: Pick<Gateway, 'upgrade'>;
  /** The route for every path for which `isSiteEvents` is true. */
  readonly siteEvents: BuiltinRoute;
  readonly sockets: Sockets;
  readonly unread: UnreadBytes;
  readonly clock: Clock;
  readonly maxBodyBytes: number;
  /** The limits on the bytes per second that each user may send. */
  readonly inbound: ByteRates;
  readonly origins: OriginRule;
  /** Logs requests that are refused before they are authenticated. */
  readonly refused: RefusalLog;
};

/** Handles the events of the HTTP server. No method throws, whatever the input. */
export type RequestHandler = {
  connection(socket: HttpSocket): void;
  /**
   * Called when the TLS handshake of an accepted socket is complete. Its requests then arrive over the socket
   * `secured`.
   */
  secured(socket: HttpSocket, secured: HttpSocket): void;
  /**
   * Called for a socket that belongs to the host program, when no request to the relay is in progress over it any more.
   */
  released(socket: HttpSocket): void;
  request(request: HttpRequest, response: HttpResponse): void;
  /** Handles a request with `Expect: 100-continue`, whose client sends the body only after `100 Continue`. */
  continuing(request: HttpRequest, response: HttpResponse): void;
  /** Handles a request with an `Expect` header that is not `100-continue`. */
  expectation(request: HttpRequest, response: HttpResponse): void;
  /** Handles a CONNECT request. */
  tunnel(request: HttpRequest, socket: Duplex): void;
  /** Handles bytes that are not a valid request. */
  broken(error: ParseError, socket: Duplex): void;
  /**
   * Whether an upgrade request is a WebSocket handshake for the gateway. Any other Upgrade header is ignored, as RFC
   * 9110 allows.
   */
  shouldUpgrade(request: HttpRequest): boolean;
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
};

/**
 * The values of the label `handler` of the metric `callboard_requests_total`, except `gateway`, which counts upgrades.
 */
type RouteLabel = 'graphql' | 'rest' | 'mcp' | 'events' | 'builtin' | 'preflight' | 'none';

export function createRequestHandler(options: RequestHandlerOptions): RequestHandler {
  const { log, meter, clock, basePath, origins, sockets, unread } = options;
  const route = createRouter(options);
  const counted = (label: RouteLabel): void => meter.count('requests', label);
  // One function for all requests. A closure for each request would keep that request in memory while a stream is open.
  const ended = (socket: HttpSocket, response: HttpResponse): void => {
    sockets.ended(socket);
    requestDone(response);
  };
  const logging = { log, metrics: meter, clock, ended };
  const answer = (request: HttpRequest, response: HttpResponse, route: Router): void => {
    const info = requestInfoOf(request, response, {
      id: options.randomId(),
      basePath,
      trustProxy: origins.trustProxy,
    });
    const { socket } = request;
    sockets.began(socket);
    const access = logAccess(info, logging);
    unread.serves(socket, access);
    const refused = (error: CallboardError): void => {
      access.code = error.code;
      refuse(info, error, options);
    };
    const reply = createReply({
      requestId: info.id,
      socket,
      response,
      unread,
      loop: options.core.loop,
      refuse: refused,
    });
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
    released(socket) {
      sockets.released(socket);
      unread.released(socket);
    },
    request: (request, response) => answer(request, response, route),
    continuing(request, response) {
      deferContinue(request, response);
      answer(request, response, route);
    },
    expectation: (request, response) => answer(request, response, refuseExpectation),
    tunnel: (_request, socket) => rejectUpgrade(socket, NO_TUNNELS, clock),
    broken: createBrokenAnswers(clock),
    shouldUpgrade: (request) =>
      pathOf(request, basePath) === '/connect' && request.headers.upgrade?.toLowerCase() === 'websocket',
    upgrade(request, socket, head) {
      meter.count('requests', 'gateway');
      sockets.upgraded(request.socket);
      const detail = hostFault(request);
      if (detail !== null) {
        options.refused(request, { reason: 'host', address: addressOf(request, origins.trustProxy) });
        return rejectUpgrade(socket, { status: 400, code: 'invalid_argument', detail }, clock);
      }
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
  const agents = options.mcp && { issuers: namesIn(options.issuer), origins };
  const operatorConsole = createConsoleRoute({ ...options, agents });
  const builtin = createBuiltinRoutes({ ...options, agents, openapi: () => options.rest.openapi() });
  const routeOf = (path: string): BuiltinRoute | undefined =>
    builtin.get(path) ?? operatorConsole(path) ?? (isSiteEvents(path) ? siteEvents : undefined);
  const answer = createApiRouter(options);
  return (info, exchange) => {
    const { request, path } = info;
    requireHost(info);
    const route = path === null ? undefined : routeOf(path);
    // The default headers are set now for built-in routes, which write the response themselves, and for pages of a
    // browser, whose CORS headers follow. For others, `reply.json` writes them with the response.
    if (route || request.headers.origin !== undefined) exchange.reply.open();
    if (crossOrigin(info, origins)) return 'preflight';
    if (path === null) notFound();
    if (route) requireMethod(info, route.methods);
    const isPage = route?.authentication === 'open' || (path === GRAPHQL_PATH && wantsPage(request));
    if (!isPage) requireOwnPage(info, options);
    if (route && route.authentication !== 'bearer') return answerBuiltin(route, info, exchange);
    const authenticated = (requester: Principal | null): MaybePromise<RouteLabel> => {
      exchange.access.requester = requester;
      if (requester) requestBegan(info.response, options.core.shares.of(holderOf(requester)));
      if (route) return answerBuiltin(route, info, exchange);
      options.unread.requireRoom(requester);
      return answer(info, exchange);
    };
    const requester = authenticate(info);
    return requester instanceof Promise ? requester.then(authenticated) : authenticated(requester);
  };
}

function answerBuiltin(route: BuiltinRoute, info: RequestInfo, { access }: Exchange): MaybePromise<RouteLabel> {
  if (route.label === 'builtin') access.route = fixedRouteOf(info.path);
  return thenDo(route.handle(info, access), () => route.label);
}

/** Routes authenticated requests to GraphQL, MCP or REST. */
function createApiRouter(options: RequestHandlerOptions): Router {
  const { core, graphql, rest, mcp, maxBodyBytes, inbound } = options;
  const anonymous = new AnonymousGate(core.clock, maxBodyBytes);
  const readGraphqlBody = createBodyReader(decodeBody, refuseBody);
  const readBodyFor = <T>(
    { request, method }: RequestInfo,
    requester: Principal | null,
    { parse, answer }: { parse: (bytes: Buffer) => T; answer: (body: T | undefined) => MaybePromise<RouteLabel> },
  ): MaybePromise<RouteLabel> => {
    if (isReading(method) || !mayHaveBody(request)) return answer(undefined);
    const rate = rateOf(inbound, requester);
    if (rate) admitBody(rate, request, options);
    const unannounced = rate && isChunked(request) ? (bytes: number) => void rate.charge(bytes) : undefined;
    const use = (bytes: Buffer | undefined): MaybePromise<RouteLabel> => answer(bytes && parse(bytes));
    return readBody(request, requester ? maxBodyBytes : anonymous.bodyBytes, { use, unannounced });
  };
  const admitAnonymous = ({ request, address }: RequestInfo, access: AccessEntry): void => {
    access.network = networkOf(address);
    anonymous.admit(request, access.network);
  };
  const toGraphql: Router = (info, { access, reply }) => {
    const { request, response } = info;
    const { requester } = access;
    access.route = GRAPHQL_PATH;
    if (!requester && !wantsPage(request)) admitAnonymous(info, access);
    return readBodyFor(info, requester, {
      parse: readGraphqlBody,
      answer: (body) =>
        thenDo(graphql.handle(request, response, { requester, body, reply, notes: access }), () => 'graphql'),
    });
  };
  const toMcp = (handler: McpHandler, info: RequestInfo, { access, reply }: Exchange): MaybePromise<RouteLabel> => {
    const { request, response, query } = info;
    const { requester } = access;
    if (!requester) fail('unauthenticated', MCP_TOKEN);
    requireMethod(info, ['POST']);
    return readBodyFor(info, requester, {
      parse: parseBody,
      answer: (body) =>
        handler
          .handle({ request, response, requester, query, body, reply, notes: access })
          .then((): RouteLabel => 'mcp'),
    });
  };
  return (info, exchange) => {
    const { request, response, path, query } = info;
    if (path === null) notFound();
    if (isGraphql(path)) return toGraphql(info, exchange);
    if (mcp && isMcp(path)) return toMcp(mcp, info, exchange);
    const { requester } = exchange.access;
    const answer = (body: JsonText | undefined): RouteLabel => {
      const given = { requester, path, query, body, reply: exchange.reply, notes: exchange.access };
      return rest.handle(request, response, given) ? 'rest' : notFound();
    };
    if (requester === null && rest.isOpen(info.method, path)) {
      admitAnonymous(info, exchange.access);
      return readBodyFor(info, requester, { parse: parseBody, answer });
    }
    if (requester !== null || !mayHaveBody(request)) return readBodyFor(info, requester, { parse: parseBody, answer });
    // The request has no token, and this route answers it with 401 whatever the body contains. The body is therefore
    // not read.
    exchange.reply.open();
    response.setHeader('connection', 'close');
    return answer(undefined);
  };
}

/** Masks an unexpected error. The error is logged with the request's id, and the response contains only that id. */
function explain(error: unknown, { id, path }: RequestInfo, { log, meter }: RequestHandlerOptions): CallboardError {
  if (error instanceof CallboardError) return error;
  meter.count('errors_masked');
  log.error({ id, path, error }, 'unexpected error');
  return new CallboardError('internal', internalMessage(id));
}

function refuse(
  info: RequestInfo,
  error: CallboardError,
  { graphql, rest, mcp, issuer, basePath, origins }: RequestHandlerOptions,
): void {
  const { request, response, path } = info;
  if (response.headersSent) return void response.destroy();
  if (error.status === 401) {
    const metadata = mcp && isMcp(path) && namesIn(issuer).length > 0 ? metadataUrl(info, basePath, origins) : null;
    response.setHeader('www-authenticate', metadata === null ? 'Bearer' : challenge(metadata));
  }
  if (error.details.retryAfterMs !== undefined) {
    response.setHeader('retry-after', String(Math.max(1, Math.ceil(error.details.retryAfterMs / 1000))));
  }
  // Closing the connection avoids reading the rest of the body. A user who holds too many sockets or requests also
  // loses this connection.
  const { share } = error.details;
  if (!request.complete || share === 'sockets' || share === 'requests') response.setHeader('connection', 'close');
  if (isGraphql(path)) graphql.refuse(response, error);
  else rest.refuse(response, error);
}

// Charges request bodies to the inbound byte rate of a user, before they are read.

/**
 * Returns the byte rate to which a request body is charged: the user's own, or that of the session's owner for a grant.
 * Null for an administrator, who is not limited, and for a request without a token.
 */
function rateOf(rates: ByteRates, requester: Principal | null): ByteRate | null {
  if (requester === null || requester.kind === 'admin') return null;
  return rates.of(requester.kind === 'user' ? requester.userId : requester.ownerId);
}

/**
 * Charges the Content-Length of a body before the body is read. Throws `share_exceeded` (share `inbound`), and charges
 * nothing, while the rate is used up. A length above `maxBodyBytes` is not charged, because `readBody` refuses such a
 * body.
 */
function admitBody(
  rate: ByteRate,
  { headers }: HttpRequest,
  { maxBodyBytes, meter }: Pick<RequestHandlerOptions, 'maxBodyBytes' | 'meter'>,
): void {
  const announced = Number(headers['content-length'] ?? 0);
  const retryAfterMs = rate.admit(announced <= maxBodyBytes ? announced : 0);
  if (retryAfterMs === 0) return;
  meter.count('inbound_limited', 'http');
  const details = { share: 'inbound', retryAfterMs };
  fail('share_exceeded', 'This user sends more bytes per second than the relay accepts.', details);
}

// Answers input that the HTTP parser rejects. No such input reaches a handler.

/** An error of the HTTP parser, or of a timeout of the server. */
type ParseError = Error & { readonly code?: string };

const PARSE_REFUSALS: Readonly<Record<string, UpgradeRefusal>> = {
  HPE_HEADER_OVERFLOW: { status: 431, code: 'payload_too_large', detail: 'The headers of the request are too large.' },
  HPE_CHUNK_EXTENSIONS_OVERFLOW: {
    status: 413,
    code: 'payload_too_large',
    detail: 'The chunk extensions are too large.',
  },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, code: 'invalid_argument', detail: 'The request took too long to arrive.' },
};
const NOT_HTTP = { status: 400, code: 'invalid_argument', detail: 'The bytes are not a valid HTTP request.' } as const;

/** Answers input that is not a valid request, once per socket, and closes the socket. */
function createBrokenAnswers(clock: Clock): (error: ParseError, socket: Duplex) => void {
  const answered = new WeakSet<Duplex>();
  return (error, socket) => {
    // Each further chunk of an invalid request fails again. It must not interrupt the answer that is being sent.
    if (answered.has(socket)) return;
    if (!socket.writable || error.code === 'ECONNRESET' || isAnswering(socket)) return void socket.destroy();
    answered.add(socket);
    rejectUpgrade(socket, PARSE_REFUSALS[error.code ?? ''] ?? NOT_HTTP, clock);
  };
}
