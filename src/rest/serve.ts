/**
 * Creates the REST handler, which serves a request: it checks access, reads the inputs, executes the operation, and
 * responds.
 */
import type { ExecutionResult, GraphQLSchema } from 'graphql';
import type { Principal } from '../core/auth/principal.ts';
import type { CallboardError } from '../core/errors.ts';
import {
  inOneLine,
  isArrayText,
  isRecord,
  readShaped,
  shapeFaultText,
  writeJson,
  type JsonText,
} from '../core/json.ts';
import { ENVELOPE_PARTS } from '../core/limits.ts';
import { thenDo, type MaybePromise } from '../core/maybe-promise.ts';
import type { DocumentReading } from '../core/document-reading.ts';
import { traceContextOf, type TraceContext } from '../core/trace-context.ts';
import type { ReadingRequest, Plans } from '../graphql/execute/executor.ts';
import type { Mask } from '../graphql/execute/mask.ts';
import type { TextInfo } from '../graphql/writer/texts.ts';
import type { CallUpdates } from '../graphql/schema/context.ts';
import { HangUpSignal } from '../web/hang-up.ts';
import { wholeText, type HttpReply } from '../web/reply.ts';
import type { RequestNotes } from '../web/request-notes.ts';
import { eventFrame, type SseStream, type SseStreams } from '../web/sse.ts';
import { writtenAnswer } from './written-answer.ts';
import { answerOf } from './answer.ts';
import {
  checkAccess,
  compileRoutes,
  createRouter,
  readOperations,
  type DocumentText,
  type Match,
  type Route,
} from './compile.ts';
import { collectFaults, decode, queryPairs, type Faults } from './inputs.ts';
import type { Described, OpenApiDocument } from './openapi.ts';
import {
  PROBLEM_TYPE,
  createExplain,
  explainError,
  invalidInput,
  problem,
  type Answer,
  type Explain,
} from './problem.ts';
import type { HttpRequest, HttpResponse } from '../web/request.ts';

export type RestHandler = {
  /**
   * Answers a request. Returns false, and sends nothing, if no route has this path. For a method that the path does not
   * support, answers 405. Never throws.
   */
  handle(req: HttpRequest, res: HttpResponse, exchange: RestExchange): boolean;
  /** Whether a request with this method and path needs no token. */
  isOpen(method: string, path: string): boolean;
  /**
   * Sends an error of the HTTP layer in the problem format of the routes. Keeps a `www-authenticate` header that the
   * response already has.
   */
  refuse(res: HttpResponse, error: CallboardError): void;
  /** Resolves with the OpenAPI 3.1 document of the routes and of `besides`, which is created at the first call. */
  openapi(): Promise<OpenApiDocument>;
  readonly operations: readonly Route[];
};

type RestOptions = Omit<Serving, 'explain'> & {
  /** The schema whose enum values are wire words. */
  readonly schema: GraphQLSchema;
  /** Compiles operations for the same schema. */
  readonly plans: Plans;
  /** Converts errors of execution into what the requester may see, and logs all others. */
  readonly mask: Mask;
  /**
   * The prefix of all paths in the OpenAPI document: empty, or `/...` without a trailing slash. Requests arrive without
   * it.
   */
  readonly basePath?: string;
  readonly version?: string;
  readonly documents?: readonly DocumentText[];
  /** Operations that other handlers serve under the same base path. They are only described in the OpenAPI document. */
  readonly besides?: readonly Described[];
};

/**
 * Creates a handler that serves the given documents as routes, by default those that ship with callboard. Throws
 * `internal` with all faults if a document does not fit the schema.
 */
export function createRestHandler(options: RestOptions): RestHandler {
  const routes = routesOf(options);
  const { contextOf, read } = options;
  const serving: Serving = { contextOf, read, streams: options.streams, explain: createExplain(options.mask) };
  const find = createRouter(routes);
  let openapi: Promise<OpenApiDocument> | null = null;
  return {
    handle(req, res, exchange) {
      const match = find(exchange.path);
      if (match !== null) serve(serving, { req, res, exchange }, match);
      return match !== null;
    },
    isOpen: (method, path) => find(path)?.resource.routes.get(method)?.access === 'OPEN',
    refuse(res, error) {
      const answer = problem(explainError(error));
      const challenge = res.getHeader('www-authenticate');
      const more = challenge === undefined ? {} : { 'www-authenticate': String(challenge) };
      send(res, { ...answer, headers: { ...answer.headers, ...more } });
    },
    openapi: () => (openapi ??= describe(routes, options)),
    operations: routes,
  };
}

async function describe(routes: readonly Route[], options: RestOptions): Promise<OpenApiDocument> {
  const { basePath = '', version = '0.0.0', besides = [], documents } = options;
  const { describeRoutes, readExamples, NO_EXAMPLES } = await import('./openapi.ts');
  const examples = documents ? NO_EXAMPLES : readExamples();
  return describeRoutes(routes, { title: 'callboard', version, basePath, besides, examples });
}

/**
 * The routes of the documents that ship with callboard. They are compiled once per process and schema, however many
 * handlers are created.
 */
const shipped = new WeakMap<GraphQLSchema, readonly Route[]>();

function routesOf({ schema, plans, documents }: RestOptions): readonly Route[] {
  if (documents) return compileRoutes(schema, documents, plans);
  const routes = shipped.get(schema) ?? compileRoutes(schema, readOperations(), plans);
  shipped.set(schema, routes);
  return routes;
}

/** A request as the HTTP layer passes it on, with its size, media type and JSON syntax checked. */
type RestExchange = {
  readonly requester: Principal | null;
  /** The path without the query, still percent-encoded. */
  readonly path: string;
  /** The query string without the `?`. */
  readonly query: string;
  /** The JSON text of a POST or PUT; undefined if the request has no body. */
  readonly body: JsonText | undefined;
  /** Sends the response; absent: the response gets no default headers. */
  readonly reply?: HttpReply;
  readonly notes?: RequestNotes | undefined;
};

/** What serving a request needs that is the same for all requests. */
export type Serving = {
  /** Runs an operation that only reads, within the limits on documents (see `readDocument`). */
  readonly read: <T>(request: ReadingRequest, run: (reading: DocumentReading) => MaybePromise<T>) => MaybePromise<T>;
  /**
   * Creates the context of an operation. `signal`: aborted when the requester hangs up; given only for mutations.
   * `reading`: given only for queries.
   */
  readonly contextOf: (request: {
    readonly requester: Principal | null;
    readonly signal?: HangUpSignal;
    readonly reading?: DocumentReading;
    readonly asks: ReadonlySet<string>;
    /** Given only for a call that is answered by an event stream. */
    readonly updates?: CallUpdates | undefined;
    readonly notes?: RequestNotes | undefined;
    readonly trace?: TraceContext | undefined;
  }) => unknown;
  /** The event streams of the node. Absent: no call is answered by an event stream. */
  readonly streams?: SseStreams | undefined;
  readonly explain: Explain;
};

type Call = { readonly req: HttpRequest; readonly res: HttpResponse; readonly exchange: RestExchange };

/** Answers a request to a resource. Never throws. */
export function serve(serving: Serving, call: Call, { resource, path }: Match): void {
  const { req, res, exchange } = call;
  if (exchange.notes) exchange.notes.route = resource.template;
  const sendAnswer = (answer: Answer): void => {
    noteProblem(exchange.notes, answer);
    send(res, answer, exchange.reply);
  };
  const route = resource.routes.get(req.method ?? '');
  if (route === undefined) {
    const answer = problem({ code: 'method_not_allowed', detail: `This path takes ${resource.allow}.` });
    return sendAnswer({ ...answer, headers: { allow: resource.allow } });
  }
  let callStream: CallStream | null = null;
  const sendLast = (answer: Answer): void => {
    if (!callStream?.end(answer)) sendAnswer(answer);
  };
  const sendProblem = (error: unknown): void => sendLast(problem(serving.explain(error)));
  try {
    checkAccess(route, exchange.requester);
    const { variables, faults, defaulted } = readVariables(route, { path, query: exchange.query, body: exchange.body });
    if (faults.length > 0) return sendAnswer(problem(invalidInput(faults)));
    const { requester, notes } = exchange;
    const bound = route.plan.bindValues(variables);
    const signal = new HangUpSignal(res);
    const own = { requester, notes, asks: bound.asks };
    const onlyItem = exchange.body !== undefined && isArrayText(exchange.body) ? null : route.itemRefusal;
    const answering = { ...route, onlyItem, reads: route.waitsBy !== null && defaulted.includes(route.waitsBy) };
    const shown = (executed: ExecutionResult): Answer => answerOf(answering, executed, serving.explain);
    const inserts: Buffer[] = [];
    const note: TextInfo = { nonAscii: false, inserts };
    const run = (context: unknown): MaybePromise<Answer> =>
      thenDo(route.around === null ? null : bound.write(context, note), (data) =>
        data === null
          ? thenDo(bound.run(context), shown)
          : (writtenAnswer(answering, data, note) ?? shown({ data: JSON.parse(wholeText(data, inserts)) })),
      );
    if (route.streams && acceptsEvents(req)) callStream = openCallStream(serving, call);
    const updates = callStream?.updates;
    // Mutations run at once, because they may wait for a command. All other operations only read, and take turns with
    // other documents.
    const answer = route.mutates
      ? run(serving.contextOf({ ...own, signal, updates, trace: traceContextOf(req.headers) }))
      : serving.read({ requester, signal, cost: bound.cost(requester) }, (reading) =>
          run(serving.contextOf({ ...own, reading })),
        );
    if (answer instanceof Promise) answer.then(sendLast).catch(sendProblem);
    else sendLast(answer);
  } catch (error) {
    sendProblem(error);
  }
}

// Answers a call with an event stream, so that its caller receives progress.

function acceptsEvents({ headers: { accept = '' } }: HttpRequest): boolean {
  return accept.includes('text/event-stream');
}

type CallStream = {
  readonly updates: CallUpdates;
  /**
   * Sends the answer as the last event. Returns false and sends nothing if no stream was opened, because the command
   * was not admitted or there was nothing to wait for.
   */
  end(answer: Answer): boolean;
};

/**
 * Prepares the event stream of a call. The stream opens when the wait begins, so that a refusal before that is an
 * ordinary response with its status. Its events are `admitted`; `progress`, with the number of the report as id; and
 * `answer`, with the status and body that an ordinary response would have. Null if the node serves no streams. Throws
 * `rate_limited` if the requester has too many streams, and `draining`.
 */
function openCallStream({ streams }: Serving, { res, exchange }: Call): CallStream | null {
  if (!streams || exchange.requester === null) return null;
  const release = streams.reserve(exchange.requester);
  let stream: SseStream | null = null;
  return {
    updates: {
      onAdmitted({ commandId }) {
        exchange.reply?.open();
        stream = streams.open(res, { onClose: release, expiresAt: null, lastChunk: null });
        stream.send(eventFrame({ event: 'admitted', data: JSON.stringify({ command_id: commandId }) }));
      },
      onProgress({ payload, number }) {
        // A slow reader misses progress reports. It can notice this by the gap in their numbers.
        if (!stream || stream.closed || stream.blocked) return;
        const id = number === null ? {} : { id: String(number) };
        stream.send(eventFrame({ event: 'progress', ...id, data: inOneLine(payload) }));
      },
    },
    end(answer) {
      if (!stream) {
        release();
        return false;
      }
      noteProblem(exchange.notes, answer);
      const { status, body, text, inserts = [] } = answer;
      const json = text === undefined ? (writeJson(body) ?? 'null') : wholeText(text, inserts);
      stream.send(eventFrame({ event: 'answer', data: `{"status":${status},"body":${inOneLine(json)}}` }));
      stream.end();
      return true;
    },
  };
}

/** Records the code of a problem for the access log, unless the notes already have a code. */
function noteProblem(notes: RequestNotes | undefined, { status, body }: Answer): void {
  if (!notes || notes.code !== null || status < 400 || !isRecord(body)) return;
  const { code } = body;
  if (typeof code === 'string') notes.code = code;
}

/** Sends an answer, unless the client has disconnected. A HEAD request gets the headers that a GET would get. */
function send(
  res: HttpResponse,
  { status, body, text: written, nonAscii, inserts = [], headers }: Answer,
  reply?: HttpReply,
): void {
  if (res.destroyed) return;
  if (reply && written !== undefined && status === 200 && res.req.method !== 'HEAD')
    return reply.json('application/json; charset=utf-8', written, nonAscii, inserts);
  const text = Buffer.from(written === undefined ? (writeJson(body) ?? 'null') : wholeText(written, inserts));
  if (reply?.refuses(text.length)) return;
  reply?.open();
  res.writeHead(status, {
    'content-type': status < 400 ? 'application/json; charset=utf-8' : PROBLEM_TYPE,
    'content-length': text.length,
    'cache-control': 'no-store',
    ...headers,
  });
  if (res.req.method === 'HEAD') res.end();
  else res.end(text);
}

// Reads the variables of an operation from a request's path, query and body.

/** The parts of a request that contain its inputs. Values in `path` are still percent-encoded. */
type RequestInputs = Pick<Match, 'path'> & Pick<RestExchange, 'query' | 'body'>;
type Reading = Pick<Route, 'inputs' | 'bodyAs' | 'bodyShape'>;
type Variables = Record<string, unknown>;

/**
 * Reads the variables, in the form that resolvers receive, and all faults of a request. `defaulted`: the names of the
 * variables that got their default.
 */
function readVariables(reading: Reading, parts: RequestInputs) {
  const faults = collectFaults();
  // Contains every variable that was sent, even if its value is invalid. An invalid one is thus neither reported as
  // missing nor replaced by its default.
  const variables: Variables = Object.create(null);
  const defaulted: string[] = [];
  readPath(reading, parts.path, { variables, faults });
  readQuery(reading, parts.query, { variables, faults });
  readBody(reading, parts.body, { variables, faults });
  for (const { name, required, defaultValue } of reading.inputs.values()) {
    if (Object.hasOwn(variables, name)) continue;
    if (defaultValue !== undefined) {
      variables[name] = defaultValue;
      defaulted.push(name);
    } else if (required) faults.add(name, 'required');
  }
  return { variables, faults: faults.list, defaulted };
}

type Target = { readonly variables: Variables; readonly faults: Faults };

function readPath({ inputs }: Reading, path: RequestInputs['path'], { variables, faults }: Target): void {
  for (const [name, raw] of Object.entries(path)) {
    const input = inputs.get(name);
    if (input?.place !== 'path' || raw === undefined) continue;
    const text = decode(raw);
    if (text === null) faults.add(name, 'not valid percent-encoding');
    variables[name] = text === null ? undefined : input.read(text, name, faults);
  }
}

function readQuery({ inputs }: Reading, query: string, { variables, faults }: Target): void {
  if (query === '') return;
  for (const [name, raw] of queryPairs(query, faults)) {
    const input = inputs.get(name);
    if (input?.place !== 'query') faults.add(name, 'unknown parameter');
    else if (Object.hasOwn(variables, name)) faults.add(name, 'given twice');
    else variables[name] = input.read(raw, name, faults);
  }
}

function readBody({ inputs, bodyAs, bodyShape }: Reading, json: RequestInputs['body'], target: Target): void {
  if (json === undefined) return;
  const { variables, faults } = target;
  const built = readShaped(json, bodyShape, ENVELOPE_PARTS);
  if (typeof built === 'string') return faults.add('body', shapeFaultText(built, ENVELOPE_PARTS));
  const body = built.value;
  if (bodyAs !== null) {
    const input = inputs.get(bodyAs);
    if (input?.place === 'body') variables[bodyAs] = input.read(body, '', faults);
    return;
  }
  if (!isRecord(body)) return faults.add('body', 'expected a JSON object');
  for (const name of Object.keys(body)) {
    const input = inputs.get(name);
    const value = body[name];
    if (input?.place !== 'body') faults.add(name, 'unknown member');
    // A null member counts as absent, so its default applies.
    else if (value !== null) variables[name] = input.read(value, name, faults);
  }
}
