/**
 * Handles requests to the GraphQL endpoints: answers them on the fast path or with Yoga, or passes them to the event
 * streams or to the GraphiQL page.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { DocumentNode, ExecutionResult, GraphQLSchema, Source } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import type { Principal } from '../../core/auth/principal.ts';
import type { Core } from '../../core/core.ts';
import { CallboardError, fail } from '../../core/errors.ts';
import { writeJson } from '../../core/json.ts';
import type { MaybePromise } from '../../core/maybe-promise.ts';
import type { Metrics } from '../../core/metrics.ts';
import type { EventLoop, Log } from '../../core/ports.ts';
import { traceContextOf } from '../../core/trace-context.ts';
import { HangUpSignal } from '../../web/hang-up.ts';
import { plainReply, type HttpReply } from '../../web/reply.ts';
import type { RequestNotes } from '../../web/request-notes.ts';
import type { SseStreams } from '../../web/sse.ts';
import { requireAnonymousQuery, type Introspection } from '../execute/anonymous-query.ts';
import { createDocuments, type Documents } from '../execute/documents.ts';
import { createExecutor, type Executor, type MakeContext, type WrittenData } from '../execute/executor.ts';
import { createMask, toGraphQLError, type Mask } from '../execute/mask.ts';
import { createContext } from '../schema/context.ts';
import type { GivenVariables } from '../variables.ts';
import { createGraphiqlPage, wantsPage } from './graphiql.ts';
import {
  GRAPHQL_PATH,
  STREAM_PATH,
  acceptedTypes,
  acceptsJson,
  pathOf,
  readParams,
  requireAnswerType,
  sendError,
  type GraphqlParams,
} from './request.ts';
import { createSseHandler, type SseHandler } from './sse.ts';
import type { HttpRequest, HttpResponse } from '../../web/request.ts';

type GraphqlExchange = {
  readonly requester: Principal | null;
  /**
   * The body of a POST request, as `createBodyReader` returned it. The HTTP layer has checked its size, content type
   * and syntax.
   */
  readonly body: unknown;
  /** Sends the response; absent: the response gets no default headers. */
  readonly reply?: HttpReply;
  readonly notes?: RequestNotes | undefined;
};

export type GraphqlHandler = ReturnType<typeof createGraphqlHandler>;

export type GraphqlHandlerOptions = {
  readonly schema: GraphQLSchema;
  readonly core: Core;
  readonly log: Log;
  readonly introspection: Introspection;
  /** All open event streams of the node, including those outside GraphQL. */
  readonly streams: SseStreams;
  /**
   * The base path, which the GraphiQL page puts before the paths of its requests; default empty. The handler itself
   * receives requests without it.
   */
  readonly basePath?: string;
  readonly metrics?: Metrics;
  readonly makeContext?: MakeContext;
  /**
   * Whether valid operations are answered on the fast path, and work that is the same for several requesters is done
   * once. Default true. Responses have the same bytes either way.
   */
  readonly fastPath?: boolean;
  /** Loads Yoga at the first request that needs it. Default: imports it then. */
  readonly loadYoga?: LoadYoga | undefined;
};

export function createGraphqlHandler(options: GraphqlHandlerOptions) {
  const { core, basePath = '', makeContext = createContext, fastPath = true, streams } = options;
  const mask = createMask({ ...options, crypto: core.crypto });
  const executor = createExecutor({ ...options, mask, makeContext, fast: fastPath });
  const documents = createDocuments(options.schema);
  const server = createGraphqlServer({
    schema: options.schema,
    documents,
    executor,
    mask,
    loadYoga: options.loadYoga,
  });
  const { clock, loop, crypto } = core;
  const { subscribed } = core;
  const sse = createSseHandler({ documents, executor, clock, loop, crypto, streams, subscribed, sharing: fastPath });
  const page = createGraphiqlPage({ endpoint: basePath + GRAPHQL_PATH, signInPath: `${basePath}/sign-in` });
  const lookup = createLookup(documents, executor);
  const query = createQuery(server, options.introspection);
  const answerFast = fastPath ? createFastPath({ executor, server, lookup, loop }) : replyOpener(loop);
  return {
    /** Answers every request to `/graphql` and `/graphql/stream`. */
    handle(req: HttpRequest, res: HttpResponse, exchange: GraphqlExchange): MaybePromise<void> {
      try {
        if (answerFast(req, res, exchange)) return;
        refuseWebSocket(req);
        if (wantsPage(req) && pathOf(req) === GRAPHQL_PATH) return page(req, res);
        checkOrigin(req);
        if (pathOf(req) !== GRAPHQL_PATH || wantsStream(req, exchange, lookup)) {
          if (exchange.notes) exchange.notes.route = null;
          return toStream(req, res, { exchange, sse });
        }
        return query(req, res, exchange);
      } catch (error) {
        sendError(res, error instanceof CallboardError ? error : new CallboardError('internal', mask(error).message));
      }
    },
    /**
     * Sends an error that the HTTP layer found (a body too large, not JSON, and so on) in GraphQL's response format,
     * with the error's status.
     */
    refuse: sendError,
    /** Loads Yoga. Otherwise the first request that needs it waits until it is loaded. */
    preload: (): Promise<void> => server.load(),
    /** Frees the handler's resources. It does not end open streams; `streams.close` does. */
    async close(): Promise<void> {
      sse.close();
      await server.close();
    },
  };
}

type PostRequest = HttpRequest & { body?: unknown };

function createQuery(server: GraphqlServer, introspection: Introspection) {
  return (req: PostRequest, res: HttpResponse, { requester, body, notes }: GraphqlExchange): Promise<void> => {
    if (req.method !== 'GET' && req.method !== 'POST') {
      res.setHeader('allow', 'GET, POST');
      fail('method_not_allowed', 'GraphQL takes GET and POST.');
    }
    // The parameters of a GET are read here even if Yoga answers, because Yoga reports malformed JSON in a URL as an
    // internal failure.
    const { query, variables } = readParams(req, body);
    if (!requester) requireAnonymousQuery(query, introspection);
    requireAnswerType(req);
    if (req.method === 'POST') req.body = body;
    return server.answer(req, res, { requester, variables, notes });
  };
}

function toStream(
  req: HttpRequest,
  res: HttpResponse,
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
 * Creates the function that finds the plan of a valid request and reads the request's parameters. It returns null if
 * the parameters or the document are invalid, or if the document does not determine which operation to run. It also
 * returns null without a token, because documents are not validated then.
 */
function createLookup(documents: Documents, executor: Executor) {
  return (req: HttpRequest, { requester, body }: GraphqlExchange) => {
    const params = requester && paramsOf(req, body);
    const document = params && documents.read(params.query);
    const plan = document && 'kind' in document ? executor.planOf(document, params.operationName) : null;
    return params && plan && { params, plan };
  };
}

type Lookup = ReturnType<typeof createLookup>;

function paramsOf(req: HttpRequest, body: unknown): GraphqlParams | null {
  try {
    return readParams(req, body);
  } catch (error) {
    if (error instanceof CallboardError) return null;
    throw error;
  }
}

/**
 * Whether to answer with an event stream. A client that wants a stream lists only `text/event-stream` in `accept`, or
 * lists it first. Some clients send one `accept` for all operations and list JSON too; for them, only subscriptions are
 * streamed.
 */
function wantsStream(req: HttpRequest, exchange: GraphqlExchange, lookup: Lookup): boolean {
  if (req.method !== 'GET' && req.method !== 'POST') return false;
  if (acceptedTypes(req)[0] !== 'text/event-stream') return false;
  return !acceptsJson(req) || lookup(req, exchange)?.plan.operation === 'subscription';
}

/**
 * Refuses clients of graphql-ws, which try to upgrade. Only `/connect` takes upgrades, so their requests arrive here as
 * plain GET requests.
 */
function refuseWebSocket({ headers }: HttpRequest): void {
  if (headers.upgrade?.toLowerCase() !== 'websocket') return;
  throw new CallboardError(
    'not_acceptable',
    'There is no GraphQL over WebSocket. Subscriptions are event streams (graphql-sse): POST with "accept: text/event-stream".',
  );
}

/**
 * Refuses a GET that has neither the header `authorization` nor `x-callboard-csrf`. A page of another origin may cause
 * a GET, but cannot make a browser send one of these headers.
 */
function checkOrigin(req: HttpRequest): void {
  if (req.method !== 'GET' || req.headers.authorization || req.headers['x-callboard-csrf']) return;
  throw new CallboardError('forbidden', 'A GET needs the header "authorization" or "x-callboard-csrf".');
}

// Answers common requests without Yoga. The responses must have the bytes that Yoga would send.

/**
 * The content type that Yoga would choose for each of these `accept` headers. Requests with any other header are left
 * to Yoga.
 */
const MEDIA_TYPES: ReadonlyMap<string | undefined, string> = new Map([
  [undefined, 'application/json; charset=utf-8'],
  ['', 'application/json; charset=utf-8'],
  ['*/*', 'application/json; charset=utf-8'],
  ['application/json', 'application/json; charset=utf-8'],
  ['application/graphql-response+json', 'application/graphql-response+json; charset=utf-8'],
  ['application/graphql-response+json, application/json', 'application/graphql-response+json; charset=utf-8'],
]);

/**
 * Answers a request and returns true. Returns false for a request that it leaves to Yoga: nothing of it has been
 * executed, and the default headers are set.
 */
type FastPath = (req: PostRequest, res: HttpResponse, exchange: GraphqlExchange) => boolean;

/** Creates a fast path that leaves every request to Yoga. */
function replyOpener(loop: EventLoop): FastPath {
  return (_req, res, { reply = plainReply(res, loop) }) => {
    reply.open();
    return false;
  };
}

type FastPathOptions = {
  readonly executor: Executor;
  readonly server: GraphqlServer;
  readonly lookup: Lookup;
  readonly loop: EventLoop;
};

/**
 * Creates the function that answers valid queries and mutations without Yoga. The executor runs them as it does for
 * Yoga, so limits, refusals and masking are the same, and the response has the bytes that Yoga would send. Only Yoga
 * can encode errors, so a result with errors is passed to Yoga, which does not execute the operation again.
 */
function createFastPath({ executor, server, lookup, loop }: FastPathOptions): FastPath {
  const openReply = replyOpener(loop);
  return (req, res, exchange) => {
    const { requester, body, notes, reply = plainReply(res, loop) } = exchange;
    const type = MEDIA_TYPES.get(req.headers.accept);
    const found = req.method === 'POST' && req.url === GRAPHQL_PATH && type ? lookup(req, exchange) : null;
    if (type === undefined || !found || found.params.extensions || found.plan.operation === 'subscription')
      return openReply(req, res, { ...exchange, reply });
    const { plan, params } = found;
    const waits = plan.operation === 'mutation' && { notes, trace: traceContextOf(req.headers) };
    const answer = executor.answer(
      { plan, variables: params.variables, requester, signal: new HangUpSignal(res), ...waits },
      true,
    );
    const show = (done: ExecutionResult | WrittenData): void => {
      if ('written' in done) return reply.json(type, `{"data":${done.written}}`, done.nonAscii, done.inserts);
      if (!done.errors) return reply.json(type, writeJson(done) ?? 'null');
      reply.open();
      req.body = body;
      void server.answer(req, res, { requester, result: done });
    };
    if (answer instanceof Promise) void answer.then(show);
    else show(answer);
    return true;
  };
}

// Handles the HTTP side of GraphQL with graphql-yoga. Only the executor may execute an operation.

type GraphqlServer = ReturnType<typeof createGraphqlServer>;

type GraphqlServerOptions = {
  readonly schema: GraphQLSchema;
  readonly documents: Documents;
  readonly executor: Executor;
  readonly mask: Mask;
  readonly loadYoga?: LoadYoga | undefined;
};

/** Imports the package graphql-yoga. */
export type LoadYoga = () => Promise<Pick<typeof import('graphql-yoga'), 'createYoga'>>;

type YogaRequest = {
  readonly requester: Principal | null;
  /** The result of the operation, if it was already executed. */
  readonly result?: ExecutionResult;
  readonly notes?: RequestNotes | undefined;
  /** The variables of the request; absent if `result` is present. */
  readonly variables?: GivenVariables;
};

type ServerContext = YogaRequest & { readonly req: HttpRequest; readonly res: HttpResponse };

/**
 * Creates a Yoga server for the HTTP side of GraphQL: content types, statuses and GET. The relay's own code comes
 * before it for size limits, CSRF checks, GraphiQL and event streams, and the executor executes the operations. Yoga is
 * loaded by `load`, or at the first request that needs it, because the fast path answers most requests.
 */
function createGraphqlServer(options: GraphqlServerOptions) {
  let opened: ReturnType<typeof openYoga> | null = null;
  return {
    /** Answers POST and GET requests to the endpoint. For a POST, `req.body` holds the members of the body. */
    async answer(req: HttpRequest, res: HttpResponse, request: YogaRequest): Promise<void> {
      const yoga = await (opened ??= openYoga(options));
      await yoga.handle(req, res, request);
    },
    load: async (): Promise<void> => void (await (opened ??= openYoga(options))),
    close: async (): Promise<void> => void (await (await opened)?.dispose()),
  };
}

async function openYoga({ loadYoga = () => import('graphql-yoga'), ...options }: GraphqlServerOptions) {
  const { createYoga } = await loadYoga();
  const { schema, mask } = options;
  const yoga = createYoga<ServerContext>({
    schema,
    graphqlEndpoint: GRAPHQL_PATH,
    logging: false,
    cors: false,
    graphiql: false,
    landingPage: false,
    multipart: false,
    batching: false,
    maxRequestBodySize: false,
    healthCheckEndpoint: `${GRAPHQL_PATH}/health`,
    maskedErrors: { maskError: mask },
    parserAndValidationCache: false,
    plugins: [reading(options), execution(options)],
  });
  return {
    // The casts are safe. Yoga uses only the target, method, headers, body and socket of a request. Of a response it
    // uses only the members that write it and that report its end.
    handle: (req: HttpRequest, res: HttpResponse, request: YogaRequest): Promise<void> =>
      yoga.handle(req as IncomingMessage, res as ServerResponse, request),
    dispose: () => yoga.dispose(),
  };
}

function reading({ documents }: GraphqlServerOptions): Plugin {
  return {
    onParse: ({ setParseFn }) =>
      setParseFn((source: string | Source) => documents.parse(typeof source === 'string' ? source : source.body)),
    onValidate: ({ setValidationFn }) =>
      setValidationFn((_schema: GraphQLSchema, document: DocumentNode) => documents.faults(document)),
  };
}

/** Returns the result in the form that Yoga expects. Yoga calls the result's member `stringify` to get its text. */
function asYogaTakesIt(answer: ExecutionResult | WrittenData): ExecutionResult {
  if (!('written' in answer)) return withText(answer, ({ stringify: _, ...shown }) => writeJson(shown) ?? 'null');
  return withText({ data: null }, () => `{"data":${answer.written}}`);
}

type Shown = ExecutionResult & { readonly stringify: (shown: Shown) => string };

function withText(result: ExecutionResult, stringify: Shown['stringify']): Shown {
  return { ...result, stringify };
}

function execution({ executor }: GraphqlServerOptions): Plugin<ServerContext> {
  return {
    onExecute({ args, setExecuteFn }) {
      const { document, operationName, contextValue } = args;
      const { requester, result, variables, notes, req, res } = contextValue;
      if (result) return setExecuteFn(() => asYogaTakesIt(result));
      const plan = executor.planOf(document, operationName);
      const operation = { plan, variables, requester, notes, trace: traceContextOf(req.headers) };
      setExecuteFn(async () => {
        const answer = await executor.answer({ ...operation, signal: new HangUpSignal(res) });
        return asYogaTakesIt(answer);
      });
    },
    onSubscribe({ setResultAndStopExecution }) {
      const refused = new CallboardError('not_acceptable', 'A subscription needs "accept: text/event-stream".');
      setResultAndStopExecution({ errors: [toGraphQLError(refused)] });
    },
  };
}
