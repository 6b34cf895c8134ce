import type { IncomingMessage } from 'node:http';
import type { DocumentNode, ExecutionResult } from 'graphql';
import type { Principal } from '../core/auth/principal.ts';
import type { HangUp } from '../core/core.ts';
import { CallboardError } from '../core/errors.ts';
import { createDocumentCache } from './cache.ts';
import type { Executor, Operation, WrittenData } from './executor.ts';
import type { Reply } from './reply.ts';
import { checkParams } from './request.ts';
import type { RequestNotes } from './request-notes.ts';

/** A request whose asker is known. `body`: the parsed JSON of a POST. */
export type HotRequest = {
  readonly req: IncomingMessage;
  readonly who: Principal | null;
  readonly body: unknown;
  readonly reply: Reply;
  readonly notes?: RequestNotes | undefined;
  /** Tells when the asker hangs up; asked for where the operation may wait. */
  readonly hungUp: () => HangUp;
};

/**
 * Answers queries, and mutations, whose text was found valid before without reading it again. Executing is the executor's as everywhere, so that limits,
 * refusals and masking are the same; the answer's bytes are those that Yoga would send.
 */
export type HotPath = {
  /** False: it is not for this path, and nothing was done. `instead` is given an answer that only Yoga knows how to put: run, but with errors. */
  take(request: HotRequest, instead: (result: ExecutionResult) => void): boolean;
  /** Notes a text whose document is valid and was written without errors. The second time it is kept. */
  learn(query: string, document: DocumentNode): void;
  /** Whether this very body was taken and asks for a query: nobody changes it, so it may be given again for the same bytes. */
  knows(body: unknown): boolean;
};

const DOCUMENTS = 500;
const LONGEST = 16 * 1024;

/** What Yoga chooses by these headers; whoever sends others is answered by Yoga. */
const MEDIA_TYPES: ReadonlyMap<string | undefined, string> = new Map([
  [undefined, 'application/json; charset=utf-8'],
  ['*/*', 'application/json; charset=utf-8'],
  ['application/json', 'application/json; charset=utf-8'],
  ['application/graphql-response+json', 'application/graphql-response+json; charset=utf-8'],
  ['application/graphql-response+json, application/json', 'application/graphql-response+json; charset=utf-8'],
]);

type Asked = Pick<Operation, 'document' | 'operationName' | 'variables'> & { readonly kind: 'query' | 'mutation' };

export function createHotPath(executor: Executor, endpoint: string): HotPath {
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
    // It may be asked again: what is made of its variables is kept with them.
    if (asked.variables) Object.freeze(asked.variables);
    taken.set(body, asked);
    return asked;
  };
  return {
    take({ req, who, body, reply, notes, hungUp }, instead) {
      const type = MEDIA_TYPES.get(req.headers.accept);
      if (type === undefined || req.method !== 'POST' || req.url !== endpoint) return false;
      const asked = askedOf(body);
      if (!asked) return false;
      const show = (answer: ExecutionResult | WrittenData): void =>
        'written' in answer ? reply.json(type, `{"data":${answer.written}}`, answer.wide) : instead(answer);
      const { kind, ...operation } = asked;
      const answer = executor.answer({ ...operation, who, ...(kind === 'mutation' && { signal: hungUp(), notes }) });
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

/** Null: they are wrong, and the long way says how. */
function paramsOf(body: unknown): ReturnType<typeof checkParams> | null {
  try {
    return checkParams(body);
  } catch (error) {
    if (error instanceof CallboardError) return null;
    throw error;
  }
}
