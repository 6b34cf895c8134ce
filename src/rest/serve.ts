/** Answers one request to a route: access, inputs, execution, answer. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ExecutionResult } from 'graphql';
import type { Principal } from '../core/auth/principal.ts';
import { isArrayText, writeJson, type JsonText } from '../core/json.ts';
import { thenDo, type MaybePromise } from '../core/maybe-promise.ts';
import type { DocumentReading } from '../core/reading.ts';
import { traceContextOf, type TraceContext } from '../core/trace-context.ts';
import type { ReadingRequest } from '../graphql/execution/limits.ts';
import type { TextInfo } from '../graphql/writer/values.ts';
import type { HttpReply } from '../web/reply.ts';
import { wholeText } from '../web/json-text.ts';
import type { RequestNotes } from '../web/request-notes.ts';
import { checkAccess } from './access.ts';
import { answerOf } from './answer.ts';
import type { Explain } from './explain.ts';
import { HangUpSignal } from '../web/hang-up.ts';
import { isRecord } from '../core/json.ts';
import { invalidInput, problem, PROBLEM_TYPE, type Answer } from './problem.ts';
import type { Match } from './router.ts';
import { readVariables } from './variables.ts';
import { writtenAnswer } from './written.ts';

/** One request as the HTTP layer passes it on. Its size, media type and JSON syntax have been checked. */
export type RestExchange = {
  readonly requester: Principal | null;
  /** The path without the query, still percent-encoded. */
  readonly path: string;
  /** The query string without the `?`. */
  readonly query: string;
  /** The JSON text of a POST or PUT; undefined when the request had no body. */
  readonly body: JsonText | undefined;
  /** How to send the response; absent: the response is as Node created it. */
  readonly reply?: HttpReply;
  readonly notes?: RequestNotes | undefined;
};

/** What every request shares. */
export type Serving = {
  /**
   * Runs an operation that only reads, within the limits of documents: see `readDocument`.
   */
  readonly read: <T>(request: ReadingRequest, run: (reading: DocumentReading) => MaybePromise<T>) => MaybePromise<T>;
  /**
   * Creates a fresh context for each request. `signal` is given only when the operation may wait; it is aborted when
   * the requester hangs up. `reading` is given only when the operation reads.
   */
  readonly contextOf: (request: {
    readonly requester: Principal | null;
    readonly signal?: HangUpSignal;
    readonly reading?: DocumentReading;
    readonly asks: ReadonlySet<string>;
    readonly notes?: RequestNotes | undefined;
    readonly trace?: TraceContext | undefined;
  }) => unknown;
  readonly explain: Explain;
};

type Call = { readonly req: IncomingMessage; readonly res: ServerResponse; readonly exchange: RestExchange };

/** Answers one request to a resource. Never throws. */
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
  const sendProblem = (error: unknown): void => sendAnswer(problem(serving.explain(error)));
  try {
    checkAccess(route, exchange.requester);
    const { variables, faults, defaulted } = readVariables(route, { path, query: exchange.query, body: exchange.body });
    if (faults.length > 0) return sendAnswer(problem(invalidInput(faults)));
    const { requester, notes } = exchange;
    const bound = route.plan.bind(variables);
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
    // Only a mutation waits for something to happen. Everything else reads, and takes turns with other documents.
    const answer = route.mutates
      ? run(serving.contextOf({ ...own, signal, trace: traceContextOf(req.headers) }))
      : serving.read({ requester, signal, cost: bound.cost(requester) }, (reading) =>
          run(serving.contextOf({ ...own, reading })),
        );
    if (answer instanceof Promise) answer.then(sendAnswer).catch(sendProblem);
    else sendAnswer(answer);
  } catch (error) {
    sendProblem(error);
  }
}

/** Notes the code of a problem, also when no command is concerned. */
function noteProblem(notes: RequestNotes | undefined, { status, body }: Answer): void {
  if (!notes || notes.code !== null || status < 400 || !isRecord(body)) return;
  const { code } = body;
  if (typeof code === 'string') notes.code = code;
}

/** Sends an answer, unless the client has disconnected. A HEAD request gets the headers of the corresponding GET. */
export function send(
  res: ServerResponse,
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
