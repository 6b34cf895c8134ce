/** Answers all REST requests: finds routes, sends problems, and describes the routes as an OpenAPI document. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { GraphQLSchema } from 'graphql';
import type { CallboardError } from '../core/errors.ts';
import type { Mask } from '../graphql/execution/mask.ts';
import type { Plans } from '../graphql/execution/plan.ts';
import { compileRoutes, type Route } from './compile.ts';
import type { Access, Method } from './directive.ts';
import { readOperations, type DocumentText } from './documents.ts';
import { createExplain } from './explain.ts';
import type { Described } from './openapi/described.ts';
import type { OpenApiDocument } from './openapi/document.ts';
import { explainError, problem } from './problem.ts';
import { createRouter } from './router.ts';
import { send, serve, type RestExchange, type Serving } from './serve.ts';

export type RestOperation = {
  readonly method: Method;
  readonly path: string;
  readonly id: string;
  readonly access: Access;
  readonly forUsers: string | null;
};

export type RestHandler = {
  /**
   * Returns false when no route has this path; nothing was sent then. Answers every other request, including 405 for a
   * method that the path does not have. Never throws.
   */
  handle(req: IncomingMessage, res: ServerResponse, exchange: RestExchange): boolean;
  /** Sends an error that the HTTP layer found, in the problem format of the routes. */
  refuse(res: ServerResponse, error: CallboardError): void;
  /**
   * Resolves with the OpenAPI 3.1 document of every route and of the operations in `besides`. The document is created,
   * and the code for it loaded, at the first call.
   */
  openapi(): Promise<OpenApiDocument>;
  readonly operations: readonly RestOperation[];
};

export type RestOptions = {
  /** The schema that returns enums as wire words. */
  readonly schema: GraphQLSchema;
  /** Compiles operations for the same schema. */
  readonly plans: Plans;
  /** Maps errors of execution to what the requester may see, and logs the rest. */
  readonly mask: Mask;
  readonly contextOf: Serving['contextOf'];
  readonly read: Serving['read'];
  /**
   * The prefix of every path in the OpenAPI document: empty, or `/...` without a trailing slash. Requests come without
   * it.
   */
  readonly basePath?: string;
  readonly version?: string;
  readonly documents?: readonly DocumentText[];
  /** The operations that other handlers serve under the same base path. Used only in the OpenAPI document. */
  readonly besides?: readonly Described[];
};

/** Serves the documents as routes. Throws `internal` with every fault when a document does not fit the schema. */
export function createRestHandler(options: RestOptions): RestHandler {
  const routes = routesOf(options);
  const { contextOf, read } = options;
  const serving: Serving = { contextOf, read, explain: createExplain(options.mask) };
  const find = createRouter(routes);
  let openapi: Promise<OpenApiDocument> | null = null;
  return {
    handle(req, res, exchange) {
      const match = find(exchange.path);
      if (match !== null) serve(serving, { req, res, exchange }, match);
      return match !== null;
    },
    refuse: (res, error) => send(res, problem(explainError(error))),
    openapi: () => (openapi ??= describe(routes, options)),
    operations: routes.map(({ method, path, id, access, forUsers }) => ({ method, path, id, access, forUsers })),
  };
}

async function describe(routes: readonly Route[], options: RestOptions): Promise<OpenApiDocument> {
  const { basePath = '', version = '0.0.0', besides = [], documents } = options;
  const [{ describeRoutes }, { readExamples, NO_EXAMPLES }] = await Promise.all([
    import('./openapi/document.ts'),
    import('./openapi/examples.ts'),
  ]);
  const examples = documents ? NO_EXAMPLES : readExamples();
  return describeRoutes(routes, { title: 'callboard', version, basePath, besides, examples });
}

/** The routes that ship with callboard, compiled once per process and schema, however many handlers are created. */
const shipped = new WeakMap<GraphQLSchema, readonly Route[]>();

function routesOf({ schema, plans, documents }: RestOptions): readonly Route[] {
  if (documents) return compileRoutes(schema, documents, plans);
  const routes = shipped.get(schema) ?? compileRoutes(schema, readOperations(), plans);
  shipped.set(schema, routes);
  return routes;
}
