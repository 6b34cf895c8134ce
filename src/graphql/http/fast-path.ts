/** Answers common requests without Yoga. Its bytes must be those that Yoga would send. */
import type { IncomingMessage } from 'node:http';
import type { ExecutionResult } from 'graphql';
import type { Principal } from '../../core/auth/principal.ts';
import type { HangUp } from '../../core/core.ts';
import { CallboardError } from '../../core/errors.ts';
import { writeJson } from '../../core/json.ts';
import { traceContextOf } from '../../core/trace-context.ts';
import type { Documents } from '../execution/documents.ts';
import type { Executor, WrittenData } from '../execution/executor.ts';
import type { HttpReply } from '../../web/reply.ts';
import { checkParams, GRAPHQL_PATH, type GraphqlParams } from './request.ts';
import type { RequestNotes } from '../../web/request-notes.ts';

/** A request after authentication. `requester` null: it has no token. `body`: the parsed JSON of a POST. */
export type FastPathRequest = {
  readonly req: IncomingMessage;
  readonly requester: Principal | null;
  readonly body: unknown;
  readonly reply: HttpReply;
  readonly notes?: RequestNotes | undefined;
  /** Returns the signal that fires when the requester hangs up. */
  readonly hungUp: () => HangUp;
};

/**
 * Answers valid queries and mutations without Yoga. The executor runs them as it does for Yoga, so limits, refusals and
 * masking are the same, and the response has the bytes that Yoga would send. Returns false when it does not take the
 * request; nothing was executed then. Only Yoga can encode a result with errors, so `sendResult` receives such a result
 * after the operation was executed.
 */
export type FastPath = (request: FastPathRequest, sendResult: (result: ExecutionResult) => void) => boolean;

export type FastPathOptions = {
  readonly documents: Documents;
  readonly executor: Executor;
};

/**
 * The content type that Yoga chooses for each of these `accept` headers. Yoga answers requests with any other header.
 */
const MEDIA_TYPES: ReadonlyMap<string | undefined, string> = new Map([
  [undefined, 'application/json; charset=utf-8'],
  ['*/*', 'application/json; charset=utf-8'],
  ['application/json', 'application/json; charset=utf-8'],
  ['application/graphql-response+json', 'application/graphql-response+json; charset=utf-8'],
  ['application/graphql-response+json, application/json', 'application/graphql-response+json; charset=utf-8'],
]);

export function createFastPath({ documents, executor }: FastPathOptions): FastPath {
  return ({ req, requester, body, reply, notes, hungUp }, sendResult) => {
    const type = MEDIA_TYPES.get(req.headers.accept);
    if (type === undefined || requester === null || req.method !== 'POST' || req.url !== GRAPHQL_PATH) return false;
    const params = paramsOf(body);
    if (!params || params.extensions) return false;
    const document = documents.read(params.query);
    // Yoga reports the faults of a document.
    if (!('kind' in document)) return false;
    const { operationName, variables } = params;
    const kind = executor.kindOf({ document, operationName });
    if (kind !== 'query' && kind !== 'mutation') return false;
    const waits = kind === 'mutation' && { notes, trace: traceContextOf(req.headers) };
    const operation = { document, operationName, variables, requester, signal: hungUp(), ...waits };
    const answer = executor.answer(operation, true);
    const show = (done: ExecutionResult | WrittenData): void => {
      if ('written' in done) reply.json(type, `{"data":${done.written}}`, done.nonAscii, done.inserts);
      else if (done.errors) sendResult(done);
      else reply.json(type, writeJson(done) ?? 'null');
    };
    if (answer instanceof Promise) void answer.then(show);
    else show(answer);
    return true;
  };
}

/** Reads the parameters of a request. Null when they are invalid; the regular path reports the error. */
function paramsOf(body: unknown): GraphqlParams | null {
  try {
    return checkParams(body);
  } catch (error) {
    if (error instanceof CallboardError) return null;
    throw error;
  }
}
