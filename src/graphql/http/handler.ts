import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ExecutionResult, GraphQLSchema } from 'graphql';
import type { Principal } from '../../core/auth/principal.ts';
import type { Core } from '../../core/core.ts';
import { CallboardError, fail } from '../../core/errors.ts';
import type { MaybePromise } from '../../core/maybe-promise.ts';
import type { Log } from '../../core/log.ts';
import type { Metrics } from '../../core/metrics.ts';
import { createDocuments } from '../execution/documents.ts';
import { requireAnonymousQuery } from '../execution/limits-anonymous.ts';
import { createContext } from '../schema/context.ts';
import { createExecutor, type MakeContext } from '../execution/executor.ts';
import { createFastPath, type FastPath } from './fast-path.ts';
import { createGraphiqlPage, wantsPage } from './graphiql.ts';
import type { Introspection } from '../execution/limits.ts';
import { createMask } from '../execution/mask.ts';
import { plainReply, type Reply } from '../../web/reply.ts';
import { HangUpSignal } from '../../web/hang-up.ts';
import { acceptedTypes, pathOf, readParams, requireAnswerType, sendError } from './request.ts';
import type { RequestNotes } from '../../web/request-notes.ts';
import { createGraphqlServer, type GraphqlServer } from './yoga.ts';
import { createSseHandler, type SseHandler } from './sse-handler.ts';

export type Exchange = {
  readonly requester: Principal | null;
  /** The parsed JSON of a POST. The HTTP layer has checked its size, content type and syntax. */
  readonly body: unknown;
  /** How to send the response; absent: the response is as Node created it. */
  readonly reply?: Reply;
  readonly notes?: RequestNotes | undefined;
};

export type GraphqlHandler = {
  /** Answers every request to the endpoint and to `<endpoint>/stream`. */
  handle(req: IncomingMessage, res: ServerResponse, exchange: Exchange): MaybePromise<void>;
  /** For streams that are not GraphQL's: they count towards the same limits and end at the same shutdown. */
  readonly streams: SseHandler['streams'];
  /**
   * Sends an error that the HTTP layer found (a body too large, not JSON, ...) in GraphQL's response format, with the
   * status of the error's code.
   */
  refuse(res: ServerResponse, error: CallboardError): void;
  /** Ends the streams without `complete`, so that their clients reconnect to another node. */
  close(): Promise<void>;
};

export type GraphqlHandlerOptions = {
  readonly schema: GraphQLSchema;
  readonly core: Core;
  readonly log: Log;
  readonly introspection: Introspection;
  /** The path of the endpoint. Default `/graphql`. */
  readonly endpoint?: string;
  readonly metrics?: Metrics;
  readonly makeContext?: MakeContext;
  /**
   * Whether valid operations are answered on the fast path, and work that is equal for several requesters is done once
   * for all of them. Default true. The bytes of a response are the same either way.
   */
  readonly fastPath?: boolean;
};

export function createGraphqlHandler(options: GraphqlHandlerOptions): GraphqlHandler {
  const { core, endpoint = '/graphql', makeContext = createContext, fastPath = true } = options;
  const mask = createMask(options);
  const executor = createExecutor({ ...options, mask, makeContext, sharing: fastPath, fast: fastPath });
  const documents = createDocuments(options.schema);
  const hot = fastPath ? createFastPath({ documents, executor, endpoint }) : null;
  const server = createGraphqlServer({ schema: options.schema, documents, executor, mask, endpoint });
  const sse = createSseHandler({ documents, executor, clock: core.clock, fastPath });
  const page = createGraphiqlPage(endpoint);
  const query = createQuery(server, options.introspection);
  const quick = createQuick(server, hot);
  return {
    handle(req, res, exchange) {
      try {
        if (quick(req, res, exchange)) return;
        if (wantsPage(req) && pathOf(req) === endpoint) return page(req, res);
        checkOrigin(req);
        if (pathOf(req) !== endpoint || wantsStream(req)) return toStream(req, res, { exchange, sse, endpoint });
        return query(req, res, exchange);
      } catch (error) {
        sendError(res, error instanceof CallboardError ? error : new CallboardError('internal', mask(error).message));
      }
    },
    streams: sse.streams,
    refuse: sendError,
    async close() {
      sse.close();
      await server.close();
    },
  };
}

type PostRequest = IncomingMessage & { body?: unknown };

function createQuery(server: GraphqlServer, introspection: Introspection) {
  return (req: PostRequest, res: ServerResponse, { requester, body, notes }: Exchange): Promise<void> => {
    // Yoga would read the URL of a GET itself, but it answers malformed JSON there as an internal failure.
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
function createQuick(server: GraphqlServer, hot: FastPath | null) {
  return (
    req: PostRequest,
    res: ServerResponse,
    { requester, body, notes, reply = plainReply(res) }: Exchange,
  ): boolean => {
    const instead = (result: ExecutionResult): void => {
      reply.open();
      req.body = body;
      void server.answer(req, res, { requester, result });
    };
    if (hot?.({ req, requester, body, reply, notes, hungUp: () => new HangUpSignal(res) }, instead)) return true;
    reply.open();
    return false;
  };
}

function toStream(
  req: IncomingMessage,
  res: ServerResponse,
  { exchange, sse, endpoint }: { exchange: Exchange; sse: SseHandler; endpoint: string },
): void {
  const { requester, body } = exchange;
  if (!requester) throw new CallboardError('unauthenticated', 'A bearer token is needed.');
  const path = pathOf(req);
  if (path === endpoint) return sse.distinct({ req, res, requester, body });
  if (path === `${endpoint}/stream`) return sse.stream({ req, res, requester, body });
  throw new CallboardError('not_found', 'There is no such path.');
}

/** A client that wants an event stream accepts `text/event-stream` only, or lists it first. */
function wantsStream(req: IncomingMessage): boolean {
  return (req.method === 'GET' || req.method === 'POST') && acceptedTypes(req)[0] === 'text/event-stream';
}

/** A page of another origin can make a browser send a plain GET, but not one with these headers. */
function checkOrigin(req: IncomingMessage): void {
  if (req.method !== 'GET' || req.headers.authorization || req.headers['x-callboard-csrf']) return;
  throw new CallboardError('forbidden', 'A GET needs the header "authorization" or "x-callboard-csrf".');
}
