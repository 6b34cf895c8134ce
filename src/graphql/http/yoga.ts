/** The HTTP side of GraphQL by graphql-yoga. It must not execute an operation except through the executor. */
import type { DocumentNode, ExecutionResult, GraphQLSchema, Source } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Principal } from '../../core/auth/principal.ts';
import { CallboardError } from '../../core/errors.ts';
import { writeJson } from '../../core/json.ts';
import { traceContextOf } from '../../core/trace-context.ts';
import type { Documents } from '../execution/documents.ts';
import type { Executor, WrittenData } from '../execution/executor.ts';
import { toGraphQLError, type Mask } from '../execution/mask.ts';
import { GRAPHQL_PATH } from './request.ts';
import { HangUpSignal } from '../../web/hang-up.ts';
import type { RequestNotes } from '../../web/request-notes.ts';
import type { GivenVariables } from '../variables/request-variables.ts';

export type GraphqlServer = {
  /**
   * Answers POST and GET requests to the endpoint. For a POST, `req.body` holds the parsed JSON object.
   * `request.result`: the result, when the operation has been executed already.
   */
  answer(req: IncomingMessage, res: ServerResponse, request: YogaRequest): Promise<void>;
  close(): Promise<void>;
};

export type GraphqlServerOptions = {
  readonly schema: GraphQLSchema;
  readonly documents: Documents;
  readonly executor: Executor;
  readonly mask: Mask;
};

export type YogaRequest = {
  readonly requester: Principal | null;
  readonly result?: ExecutionResult;
  readonly notes?: RequestNotes | undefined;
  /** The variables of the request; absent when there is a result. */
  readonly variables?: GivenVariables;
};

type ServerContext = YogaRequest & { readonly req: IncomingMessage; readonly res: ServerResponse };

/**
 * Creates a Yoga server for the HTTP side of GraphQL: content types, statuses and GET. Size limits, CSRF checks,
 * GraphiQL and event streams are our own and come before Yoga. The executor executes the operations. Yoga is loaded for
 * the first request that needs it: the fast path answers most of them.
 */
export function createGraphqlServer(options: GraphqlServerOptions): GraphqlServer {
  let opened: ReturnType<typeof openYoga> | null = null;
  return {
    async answer(req, res, request) {
      const yoga = await (opened ??= openYoga(options));
      await yoga(req, res, request);
    },
    close: async () => void (await (await opened)?.dispose()),
  };
}

async function openYoga(options: GraphqlServerOptions) {
  const { createYoga } = await import('graphql-yoga');
  const { schema, mask } = options;
  return createYoga<ServerContext>({
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
}

function reading({ documents }: GraphqlServerOptions): Plugin {
  return {
    onParse: ({ setParseFn }) =>
      setParseFn((source: string | Source) => documents.parse(typeof source === 'string' ? source : source.body)),
    onValidate: ({ setValidationFn }) =>
      setValidationFn((_schema: GraphQLSchema, document: DocumentNode) => documents.faults(document)),
  };
}

/** Returns the result in the form that Yoga expects. Yoga calls the member `stringify` of a result to get its text. */
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
      const operation = { document, operationName, variables, requester, notes, trace: traceContextOf(req.headers) };
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
