import type { IncomingMessage } from 'node:http';
import type { DocumentNode, ExecutionResult } from 'graphql';
import type { Principal } from '../../core/auth/principal.ts';
import type { HangUp } from '../../core/core.ts';
import { CallboardError } from '../../core/errors.ts';
import { createDocumentCache } from '../execution/document-cache.ts';
import type { Executor, Operation, WrittenData } from '../execution/executor.ts';
import type { HttpReply } from '../../web/reply.ts';
import { checkParams, GRAPHQL_PATH } from './request.ts';
import type { RequestNotes } from '../../web/request-notes.ts';

/** A request after authentication. `requester` null: it has no token. `body`: the parsed JSON of a POST. */
export type FastPathRequest = {
  readonly req: IncomingMessage;
  readonly requester: Principal | null;
  readonly body: unknown;
  readonly reply: HttpReply;
  readonly notes?: RequestNotes | undefined;
  /** Returns the signal that fires when the requester hangs up. Called only when the operation may wait. */
  readonly hungUp: () => HangUp;
};

/**
 * Answers queries and mutations whose text is known to be valid, without parsing or validating it again. The executor
 * runs them as usual, so limits, refusals and masking are the same, and the response has the bytes that Yoga would
 * send.
 */
export type FastPath = {
  /**
   * Returns false when the request is not for this path; nothing was done then. `instead` receives a result with
   * errors, which only Yoga can encode: the operation has been executed.
   */
  take(request: FastPathRequest, instead: (result: ExecutionResult) => void): boolean;
  /**
   * Records a text whose document is valid and was written without errors. A text is kept when it is recorded for the
   * second time.
   */
  learn(query: string, document: DocumentNode): void;
  /**
   * Whether `take` has accepted this body object, and it asks for a query. The caller may pass the same object again
   * for equal bytes, because a body is never modified.
   */
  knows(body: unknown): boolean;
};

const DOCUMENTS = 500;
const LONGEST = 16 * 1024;

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

type Asked = Pick<Operation, 'document' | 'operationName' | 'variables'> & { readonly kind: 'query' | 'mutation' };

export function createFastPath(executor: Executor): FastPath {
  const seen = createDocumentCache<true>({ most: DOCUMENTS, longest: LONGEST });
  const known = createDocumentCache<DocumentNode>({ most: DOCUMENTS, longest: LONGEST });
  const taken = new WeakMap<object, Asked>();
  const read = (body: unknown): Asked | null => {
    const params = paramsOf(body);
    const document = params && params.query.length <= LONGEST ? known.get(params.query) : undefined;
    if (!params || !document || params.extensions) return null;
    const { operationName, variables } = params;
    const kind = executor.kindOf({ document, operationName });
    return kind === 'query' || kind === 'mutation' ? { document, operationName, variables, kind } : null;
  };
  const askedOf = (body: unknown): Asked | null => {
    if (typeof body !== 'object' || body === null) return null;
    const found = taken.get(body);
    if (found) return found;
    const asked = read(body);
    if (asked?.kind !== 'query') return asked;
    const repeated = withVariables(asked, executor);
    if (repeated) taken.set(body, repeated);
    return repeated;
  };
  return {
    take({ req, requester, body, reply, notes, hungUp }, instead) {
      const type = MEDIA_TYPES.get(req.headers.accept);
      if (type === undefined || req.method !== 'POST' || req.url !== GRAPHQL_PATH) return false;
      const asked = askedOf(body);
      if (!asked) return false;
      const show = (answer: ExecutionResult | WrittenData): void =>
        'written' in answer ? reply.json(type, `{"data":${answer.written}}`, answer.nonAscii) : instead(answer);
      const { kind, ...operation } = asked;
      const answer = executor.answer({
        ...operation,
        requester,
        ...(kind === 'mutation' && { signal: hungUp(), notes }),
      });
      if (answer instanceof Promise) void answer.then(show);
      else show(answer);
      return true;
    },
    learn(query, document) {
      if (seen.get(query)) known.set(query, document);
      else seen.set(query, true);
    },
    knows: (body) => typeof body === 'object' && body !== null && taken.has(body),
  };
}

/**
 * Prepares a query for repeated use: its variables are parsed once and frozen, so that what is prepared from them is
 * cached. Null: as for `paramsOf`.
 */
function withVariables(asked: Asked, executor: Executor): Asked | null {
  if (!asked.variables) return asked;
  try {
    return { ...asked, variables: Object.freeze(executor.variablesOf(asked)) };
  } catch (error) {
    if (error instanceof CallboardError) return null;
    throw error;
  }
}

/** Null when the parameters are invalid; the regular path reports the error. */
function paramsOf(body: unknown): ReturnType<typeof checkParams> | null {
  try {
    return checkParams(body);
  } catch (error) {
    if (error instanceof CallboardError) return null;
    throw error;
  }
}
