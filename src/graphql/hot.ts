import type { IncomingMessage, ServerResponse } from 'node:http';
import type { DocumentNode, ExecutionResult } from 'graphql';
import type { Principal } from '../core/auth/principal.ts';
import { createDocumentCache } from './cache.ts';
import type { Executor } from './executor.ts';
import type { Params } from './request.ts';

/** A request of the endpoint whose asker is known and whose parameters have their types. */
export type HotRequest = {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly who: Principal | null;
  readonly params: Params;
};

/**
 * Answers queries whose text was found valid before without reading it again. Executing is the executor's as everywhere, so that limits,
 * refusals and masking are the same; the answer's bytes are those that Yoga would send.
 */
export type HotPath = {
  /** False: it is not for this path, and nothing was done. `instead` is given an answer that only Yoga knows how to put: run, but with errors. */
  take(request: HotRequest, instead: (result: ExecutionResult) => void): boolean;
  /** Notes a text whose document is valid and was written without errors. The second time it is kept. */
  learn(query: string, document: DocumentNode): void;
};

const DOCUMENTS = 500;
const LONGEST = 16 * 1024;

/** What Yoga chooses by these headers; whoever sends others is answered by Yoga. */
const MEDIA_TYPES: ReadonlyMap<string | undefined, string> = new Map([
  [undefined, 'application/json'],
  ['*/*', 'application/json'],
  ['application/json', 'application/json'],
  ['application/graphql-response+json', 'application/graphql-response+json'],
  ['application/graphql-response+json, application/json', 'application/graphql-response+json'],
]);

export function createHotPath(executor: Executor): HotPath {
  const seen = createDocumentCache<true>({ most: DOCUMENTS, longest: LONGEST });
  const known = createDocumentCache<DocumentNode>({ most: DOCUMENTS, longest: LONGEST });
  return {
    take({ req, res, who, params }, instead) {
      const { query, operationName, variables, extensions } = params;
      const type = MEDIA_TYPES.get(req.headers.accept);
      if (type === undefined || req.method !== 'POST' || extensions || req.url?.includes('?')) return false;
      const document = query.length > LONGEST ? undefined : known.get(query);
      if (!document || executor.kindOf({ document, operationName }) !== 'query') return false;
      void executor.answer({ document, operationName, variables, who }).then((answer) => {
        if ('written' in answer) send(res, type, answer.written);
        else instead(answer);
      });
      return true;
    },
    learn(query, document) {
      if (seen.get(query)) known.set(query, document);
      else seen.set(query, true);
    },
  };
}

function send(res: ServerResponse, type: string, data: string): void {
  if (res.destroyed) return;
  const text = `{"data":${data}}`;
  res.writeHead(200, { 'Content-Type': `${type}; charset=utf-8`, 'content-length': Buffer.byteLength(text) });
  res.end(text);
}
