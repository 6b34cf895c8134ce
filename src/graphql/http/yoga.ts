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
import type { Principal } from '../../core/auth/principal.ts';
import { CallboardError } from '../../core/errors.ts';
import { writeJson } from '../../core/json.ts';
import {
  QUERY_CACHE,
  QUERY_CACHE_CHARS,
  QUERY_CHARS,
  QUERY_FAULTS,
  QUERY_NESTING,
  QUERY_TOKENS,
} from '../../core/limits.ts';
import { createDocumentCache } from '../execution/document-cache.ts';
import type { Executor, WrittenData } from '../execution/executor.ts';
import { shapeFaults } from '../execution/limits-shape.ts';
import { isNestedDeeper } from '../execution/limits-nesting.ts';
import { shortened, toGraphQLError, type Mask } from '../execution/mask.ts';
import { GRAPHQL_PATH, type GraphqlParams } from './request.ts';
import type { RequestNotes } from '../../web/request-notes.ts';
import type { GivenVariables } from '../variables/request-variables.ts';

export type GraphqlServer = {
  /**
   * Answers POST and GET requests to the endpoint. For a POST, `req.body` holds the parsed JSON object. `asked.result`:
   * the result, when the operation has been executed already.
   */
  answer(req: IncomingMessage, res: ServerResponse, asked: YogaRequest): void;
  /**
   * The parsed and validated document of these parameters, or its errors, already masked. Cached; every limit on
   * documents applies.
   */
  read(params: GraphqlParams): DocumentNode | readonly GraphQLError[];
  close(): Promise<void>;
};

export type GraphqlServerOptions = {
  readonly schema: GraphQLSchema;
  readonly executor: Executor;
  readonly mask: Mask;
  /** Called for each operation that was valid and written without errors. */
  readonly onWritten: (query: string, document: DocumentNode) => void;
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
 * GraphiQL and event streams are our own and come before it. The executor executes the operations.
 */
export function createGraphqlServer(options: GraphqlServerOptions): GraphqlServer {
  const { schema, mask } = options;
  const yoga = createYoga<ServerContext>({
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
  const { length } = typeof source === 'string' ? source : source.body;
  if (length > QUERY_CHARS) {
    throw tooComplex(`A document has at most ${QUERY_CHARS} characters.`);
  }
  if (isNestedDeeper(source, QUERY_NESTING, QUERY_TOKENS)) {
    throw tooComplex(`A document nests braces, brackets and parentheses at most ${QUERY_NESTING} deep.`);
  }
  try {
    return parse(source, { maxTokens: QUERY_TOKENS });
  } catch (error) {
    if (!(error instanceof GraphQLError)) throw error;
    // graphql-js has no error code for this.
    if (error.message.includes('Document contains more than')) {
      throw tooComplex(`A document has at most ${QUERY_TOKENS} tokens.`, error);
    }
    throw new GraphQLError(shortened(error.message), {
      source: error.source,
      positions: error.positions,
      extensions: { code: 'GRAPHQL_PARSE_FAILED', http: { status: 400, spec: true } },
    });
  }
}

function tooComplex(message: string, at: GraphQLError | null = null): GraphQLError {
  return toGraphQLError(new CallboardError('too_complex', message), at);
}

function validateWithinLimits(
  schema: GraphQLSchema,
  document: DocumentNode,
  rules?: readonly ValidationRule[],
): readonly GraphQLError[] {
  const faults = shapeFaults(document);
  if (faults.length > 0) return faults.map((fault) => toGraphQLError(fault));
  const found = validate(schema, document, rules, { hideSuggestions: true, maxErrors: QUERY_FAULTS });
  return found.map((error) => new GraphQLError(shortened(error.message), { nodes: error.nodes }));
}

/** Yoga calls the member `stringify` of a result for its text, and passes the result as its own plugins left it. */
function asYogaTakesIt(answer: ExecutionResult | WrittenData): ExecutionResult {
  if (!('written' in answer)) return withText(answer, ({ stringify: _, ...shown }) => writeJson(shown) ?? 'null');
  return withText({ data: null }, () => `{"data":${answer.written}}`);
}

type Shown = ExecutionResult & { readonly stringify: (shown: Shown) => string };

function withText(result: ExecutionResult, stringify: Shown['stringify']): Shown {
  return { ...result, stringify };
}

function execution({ executor, onWritten }: GraphqlServerOptions): Plugin<ServerContext> {
  return {
    onExecute({ args, setExecuteFn }) {
      const { document, operationName, contextValue } = args;
      const { requester, request, params, result, variables, notes } = contextValue;
      if (result) return setExecuteFn(() => asYogaTakesIt(result));
      const operation = { document, operationName, variables, requester, notes };
      // Only mutations get the signal: queries do not wait, and the request's signal costs Yoga more than the rest of a
      // small request.
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
