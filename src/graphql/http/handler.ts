/** Handles requests to the GraphQL endpoints and chooses between fast path, Yoga, event stream and page. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ExecutionResult, GraphQLSchema } from 'graphql';
import type { Principal } from '../../core/auth/principal.ts';
import type { Core } from '../../core/core.ts';
import { CallboardError, fail } from '../../core/errors.ts';
import type { MaybePromise } from '../../core/maybe-promise.ts';
import type { Log } from '../../core/log.ts';
import type { Metrics } from '../../core/metrics.ts';
import { createDocuments, type Documents } from '../execution/documents.ts';
import { requireAnonymousQuery } from '../execution/limits-anonymous.ts';
import { createContext } from '../schema/context.ts';
import { createExecutor, type Executor, type MakeContext } from '../execution/executor.ts';
import { createFastPath, type FastPath } from './fast-path.ts';
import { createGraphiqlPage, wantsPage } from './graphiql.ts';
import type { Introspection } from '../execution/limits.ts';
import { createMask } from '../execution/mask.ts';
import { plainReply, type HttpReply } from '../../web/reply.ts';
import { HangUpSignal } from '../../web/hang-up.ts';
import type { SseStreams } from '../../web/sse-streams.ts';
import {
  acceptedTypes,
  acceptsJson,
  pathOf,
  readParams,
  requireAnswerType,
  sendError,
  GRAPHQL_PATH,
  STREAM_PATH,
} from './request.ts';
import type { RequestNotes } from '../../web/request-notes.ts';
import { createGraphqlServer, type GraphqlServer } from './yoga.ts';
import { createSseHandler, type SseHandler } from './sse-handler.ts';

export type GraphqlExchange = {
  readonly requester: Principal | null;
  /** The parsed JSON of a POST. The HTTP layer has checked its size, content type and syntax. */
  readonly body: unknown;
  /** How to send the response; absent: the response is as Node created it. */
  readonly reply?: HttpReply;
  readonly notes?: RequestNotes | undefined;
};

export type GraphqlHandler = {
  /** Answers every request to `/graphql` and `/graphql/stream`. */
  handle(req: IncomingMessage, res: ServerResponse, exchange: GraphqlExchange): MaybePromise<void>;
  /**
   * Sends an error that the HTTP layer found (a body too large, not JSON, ...) in GraphQL's response format, with the
   * status of the error's code.
   */
  refuse(res: ServerResponse, error: CallboardError): void;
  /** Frees what the handler holds. It does not end open streams; `streams.close` does. */
  close(): Promise<void>;
};

export type GraphqlHandlerOptions = {
  readonly schema: GraphQLSchema;
  readonly core: Core;
  readonly log: Log;
  readonly introspection: Introspection;
  /** All open event streams of the node, not only those of GraphQL. */
  readonly streams: SseStreams;
  /**
   * The path prefix that the GraphiQL page puts before the paths of its requests; default none. It is removed before a
   * request reaches this handler.
   */
  readonly basePath?: string;
  readonly metrics?: Metrics;
  readonly makeContext?: MakeContext;
  /**
   * Whether valid operations are answered on the fast path, and work that is equal for several requesters is done once
   * for all of them. Default true. The bytes of a response are the same either way.
   */
  readonly fastPath?: boolean;
};

export function createGraphqlHandler(options: GraphqlHandlerOptions): GraphqlHandler {
  const { core, basePath = '', makeContext = createContext, fastPath = true, streams } = options;
  const mask = createMask(options);
  const executor = createExecutor({ ...options, mask, makeContext, sharing: fastPath, fast: fastPath });
  const documents = createDocuments(options.schema);
  const fast = fastPath ? createFastPath({ documents, executor }) : null;
  const server = createGraphqlServer({ schema: options.schema, documents, executor, mask });
  const sse = createSseHandler({ documents, executor, clock: core.clock, streams, sharing: fastPath });
  const page = createGraphiqlPage({ endpoint: basePath + GRAPHQL_PATH, signInPath: `${basePath}/sign-in` });
  const query = createQuery(server, options.introspection);
  const answerFast = createFastAnswer(server, fast);
  const asStream = createStreamChoice(documents, executor);
  return {
    handle(req, res, exchange) {
      try {
        if (answerFast(req, res, exchange)) return;
        refuseWebSocket(req);
        if (wantsPage(req) && pathOf(req) === GRAPHQL_PATH) return page(req, res);
        checkOrigin(req);
        if (pathOf(req) !== GRAPHQL_PATH || asStream(req, exchange)) {
          if (exchange.notes) exchange.notes.route = null;
          return toStream(req, res, { exchange, sse });
        }
        return query(req, res, exchange);
      } catch (error) {
        sendError(res, error instanceof CallboardError ? error : new CallboardError('internal', mask(error).message));
      }
    },
    refuse: sendError,
    async close() {
      sse.close();
      await server.close();
    },
  };
}

type PostRequest = IncomingMessage & { body?: unknown };

function createQuery(server: GraphqlServer, introspection: Introspection) {
  return (req: PostRequest, res: ServerResponse, { requester, body, notes }: GraphqlExchange): Promise<void> => {
    // The parameters of a GET are read here too, because Yoga answers malformed JSON in a URL as an internal failure.
    if (req.method !== 'GET' && req.method !== 'POST') {
      res.setHeader('allow', 'GET, POST');
      fail('method_not_allowed', 'GraphQL takes GET and POST.');
    }
    const { query, variables } = readParams(req, body);
    if (!requester) requireAnonymousQuery(query, introspection);
    requireAnswerType(req);
    if (req.method === 'POST') req.body = body;
    return server.answer(req, res, { requester, variables, notes });
  };
}

/**
 * Tries the fast path before everything else. Returns false when it did not take the request; the response is then open
 * for writing.
 */
function createFastAnswer(server: GraphqlServer, fast: FastPath | null) {
  return (
    req: PostRequest,
    res: ServerResponse,
    { requester, body, notes, reply = plainReply(res) }: GraphqlExchange,
  ): boolean => {
    const sendResult = (result: ExecutionResult): void => {
      reply.open();
      req.body = body;
      void server.answer(req, res, { requester, result });
    };
    if (fast?.({ req, requester, body, reply, notes, hungUp: () => new HangUpSignal(res) }, sendResult)) return true;
    reply.open();
    return false;
  };
}

function toStream(
  req: IncomingMessage,
  res: ServerResponse,
  { exchange, sse }: { exchange: GraphqlExchange; sse: SseHandler },
): void {
  const { requester, body } = exchange;
  if (!requester) throw new CallboardError('unauthenticated', 'A bearer token is needed.');
  const path = pathOf(req);
  if (path === GRAPHQL_PATH) return sse.distinct({ req, res, requester, body });
  if (path === STREAM_PATH) return sse.stream({ req, res, requester, body });
  throw new CallboardError('not_found', 'There is no such path.');
}

/**
 * Chooses the response form. A client that wants an event stream accepts `text/event-stream` only, or lists it first.
 * If it accepts JSON too, as clients with one `accept` for all operations do, only subscriptions are streamed.
 */
function createStreamChoice(documents: Documents, executor: Executor) {
  const isSubscription = (req: IncomingMessage, { requester, body }: GraphqlExchange): boolean => {
    // Documents of requests without a token are not validated; a subscription is refused in either form.
    if (!requester) return false;
    const params = readParams(req, body);
    const document = documents.read(params.query);
    if (!('kind' in document)) return false;
    return executor.kindOf({ document, operationName: params.operationName }) === 'subscription';
  };
  return (req: IncomingMessage, exchange: GraphqlExchange): boolean => {
    if (req.method !== 'GET' && req.method !== 'POST') return false;
    if (acceptedTypes(req)[0] !== 'text/event-stream') return false;
    return !acceptsJson(req) || isSubscription(req, exchange);
  };
}

/**
 * Refuses clients of graphql-ws. They try to upgrade, but only `/connect` takes an upgrade, so their request arrives
 * here as a plain GET.
 */
function refuseWebSocket({ headers }: IncomingMessage): void {
  if (headers.upgrade?.toLowerCase() !== 'websocket') return;
  throw new CallboardError(
    'not_acceptable',
    'There is no GraphQL over WebSocket. Subscriptions are event streams (graphql-sse): POST with "accept: text/event-stream".',
  );
}

/**
 * Refuses a GET that a page of another origin may have caused. Such a page cannot make a browser send one of these
 * headers.
 */
function checkOrigin(req: IncomingMessage): void {
  if (req.method !== 'GET' || req.headers.authorization || req.headers['x-callboard-csrf']) return;
  throw new CallboardError('forbidden', 'A GET needs the header "authorization" or "x-callboard-csrf".');
}
