import {
  GraphQLError,
  parse,
  validate,
  type DocumentNode,
  type ExecutionResult,
  type GraphQLSchema,
  type ValidationRule,
  type Source,
} from 'graphql';
import { createYoga, type Plugin } from 'graphql-yoga';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Principal } from '../core/auth/principal.ts';
import { CallboardError } from '../core/errors.ts';
import { QUERY_CACHE, QUERY_CACHE_CHARS, QUERY_TOKENS } from '../core/limits.ts';
import { createDocumentCache } from './cache.ts';
import type { Executor, WrittenData } from './executor.ts';
import { shapeFaults } from './limits.ts';
import { toGraphQLError, type Mask } from './mask.ts';
import type { Params } from './request.ts';
import type { RequestNotes } from './request-notes.ts';

export type GraphqlServer = {
  /**
   * Answers POST and GET of the endpoint. Of a POST, `req.body` holds the parsed JSON object. `result`: what executing gave, where the
   * operation was executed before.
   */
  answer(req: IncomingMessage, res: ServerResponse, asked: Asked): void;
  /** The parsed and valid document of these parameters, or what is wrong with it. Cached, and with every limit on documents in force. */
  read(params: Params): DocumentNode | readonly GraphQLError[];
  close(): Promise<void>;
};

export type GraphqlServerOptions = {
  readonly schema: GraphQLSchema;
  readonly executor: Executor;
  readonly mask: Mask;
  /** Told of each query that was valid and written without errors. */
  readonly onWritten: (query: string, document: DocumentNode) => void;
  /** Where it is mounted, such as `/graphql`. */
  readonly endpoint: string;
};

export type Asked = {
  readonly who: Principal | null;
  readonly result?: ExecutionResult;
  readonly notes?: RequestNotes | undefined;
};

type ServerContext = Asked & { readonly req: IncomingMessage; readonly res: ServerResponse };

/**
 * Yoga, for what is HTTP about GraphQL: content types, statuses and GET. Size limits, CSRF, the page in the browser and event streams are ours
 * and come before it; executing is the executor's.
 */
export function createGraphqlServer(options: GraphqlServerOptions): GraphqlServer {
  const { schema, mask, endpoint } = options;
  const yoga = createYoga<ServerContext>({
    schema,
    graphqlEndpoint: endpoint,
    logging: false,
    cors: false,
    graphiql: false,
    landingPage: false,
    multipart: false,
    batching: false,
    maxRequestBodySize: false,
    healthCheckEndpoint: `${endpoint}/health`,
    maskedErrors: { maskError: mask },
    parserAndValidationCache: {
      documentCache: createDocumentCache<DocumentNode>({ most: QUERY_CACHE, longest: QUERY_CACHE_CHARS }),
      errorCache: createDocumentCache<Error>({ most: QUERY_CACHE, longest: QUERY_CACHE_CHARS }),
    },
    plugins: [documentLimits(), execution(options)],
  });
  const valid = createDocumentCache<DocumentNode>({ most: QUERY_CACHE, longest: QUERY_CACHE_CHARS });
  return {
    answer: (req, res, asked) => void yoga(req, res, asked),
    read(params) {
      const known = valid.get(params.query);
      if (known) return known;
      const enveloped = yoga.getEnveloped({ params });
      try {
        const document: DocumentNode = enveloped.parse(params.query);
        const faults = enveloped.validate(enveloped.schema, document);
        if (faults.length > 0) return faults.map(mask);
        valid.set(params.query, document);
        return document;
      } catch (error) {
        return [mask(error)];
      }
    },
    close: async () => void (await yoga.dispose()),
  };
}

function documentLimits(): Plugin {
  return {
    onParse: ({ setParseFn }) => setParseFn(parseWithinLimits),
    onValidate: ({ setValidationFn }) => setValidationFn(validateWithinLimits),
  };
}

function parseWithinLimits(source: string | Source): DocumentNode {
  try {
    return parse(source, { maxTokens: QUERY_TOKENS });
  } catch (error) {
    if (!(error instanceof GraphQLError)) throw error;
    // graphql-js has no code for it.
    if (error.message.includes('Document contains more than')) {
      throw toGraphQLError(new CallboardError('too_complex', `A document has at most ${QUERY_TOKENS} tokens.`), error);
    }
    throw new GraphQLError(error.message, {
      source: error.source,
      positions: error.positions,
      extensions: { code: 'GRAPHQL_PARSE_FAILED', http: { status: 400, spec: true } },
    });
  }
}

function validateWithinLimits(
  schema: GraphQLSchema,
  document: DocumentNode,
  rules?: readonly ValidationRule[],
): readonly GraphQLError[] {
  const faults = shapeFaults(document);
  if (faults.length > 0) return faults.map((fault) => toGraphQLError(fault));
  return validate(schema, document, rules, { hideSuggestions: true });
}

/** Yoga asks a result for its text only through this member; nothing is given it with errors, whose masking comes after. */
function asYogaTakesIt(answer: ExecutionResult | WrittenData): ExecutionResult {
  if (!('written' in answer)) return answer;
  const written = { data: null, stringify: () => `{"data":${answer.written}}` };
  return written;
}

function execution({ executor, onWritten }: GraphqlServerOptions): Plugin<ServerContext> {
  return {
    onExecute({ args, setExecuteFn }) {
      const { document, operationName, variableValues: variables, contextValue } = args;
      const { who, request, params, result, notes } = contextValue;
      if (result) return setExecuteFn(() => result);
      const operation = { document, operationName, variables, who, notes };
      // Queries do not wait, and being told of a hang-up costs Yoga more than the rest of a small request.
      const waits = executor.kindOf(operation) === 'mutation';
      setExecuteFn(async () => {
        const answer = await executor.answer({ ...operation, ...(waits && { signal: request.signal }) });
        if ('written' in answer && params.query) onWritten(params.query, document);
        return asYogaTakesIt(answer);
      });
    },
    onSubscribe({ setResultAndStopExecution }) {
      const refused = new CallboardError('not_acceptable', 'A subscription needs "accept: text/event-stream".');
      setResultAndStopExecution({ errors: [toGraphQLError(refused)] });
    },
  };
}
