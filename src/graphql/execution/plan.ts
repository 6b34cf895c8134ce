import {
  GraphQLError,
  execute,
  getOperationAST,
  type DocumentNode,
  type ExecutionResult,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from 'graphql';
import type { MaybePromise } from '../../core/maybe-promise.ts';
import { createCost } from './cost.ts';
import { restartBudget } from '../schema/page-budget.ts';
import { createAsks } from './plan-asks.ts';
import { createMutationWriter, type MutationWriter } from '../writer/mutation-writer.ts';
import { createJsonCaches, type JsonCaches } from '../writer/json-cache.ts';
import { createVariablesReader, type ReadVariables, type Variables } from '../variables/request-variables.ts';
import { MAX_COERCION_ERRORS, refusedVariables } from '../variables/coerce-variables.ts';
import { rootFields } from './plan-roots.ts';
import { createWriter, type Writer, type WriterSource } from '../writer/writer.ts';
import type { TextInfo } from '../writer/values.ts';

export type { Variables } from '../variables/request-variables.ts';

/** How one operation of one document is executed. Created once and kept as long as the document. */
export type Plan = {
  readonly operation: 'query' | 'mutation' | 'subscription';
  /** The operation reads the schema (`__schema` or `__type`). */
  readonly introspects: boolean;
  /** The operation reads only the schema and `__typename`. */
  readonly onlyMeta: boolean;
  /** Parses the variables of a request, for the other methods. Throws `invalid_argument`. */
  readonly read: ReadVariables;
  /** The names of the fields that the operation may select with these variables. */
  asks(variables: Variables): ReadonlySet<string>;
  /** The errors of large variables, as `run` would return them. Null: no error can be found without running. */
  refused(variables: Variables): readonly GraphQLError[] | null;
  /** The maximum cost of the operation with these variables. Invalid variables cost 0, because `run` refuses them. */
  cost(variables: Variables): number;
  /**
   * Executes a query or a mutation. Never throws and never rejects: failures are in `errors`, unmasked. When the result
   * has no `data`, its errors carry `extensions.http.status` 400. `variables` are as the requester sent them.
   */
  run(context: unknown, variables: Variables | null | undefined): MaybePromise<ExecutionResult>;
  /**
   * Executes a query, or a mutation marked as a deed (nature.ts), and returns its data as JSON text, identical to the
   * text of `run`'s data. Null when the result has an error or cannot be written here: call `run` with the same context
   * then. A mutation that `write` has resolved is not resolved again by `run`. Never throws and never rejects. `note`
   * receives what is known of the text.
   */
  write(context: unknown, variables: Variables | null | undefined, note?: TextInfo): MaybePromise<string | null>;
};

export type Plans = {
  /** Null when the document has no such operation, or has several and no name was given. The document must be valid. */
  of(document: DocumentNode, operationName?: string | null): Plan | null;
};

export type PlansOptions = {
  /**
   * Create the writer at the first run instead of the second: for the relay's own documents, which are certain to run
   * again. Default false: only for operations of a high cost.
   */
  readonly eager?: boolean;
  /** Default true. False: `write` always returns null. */
  readonly fast?: boolean;
  /**
   * Default true. False: no JSON text of an entity is cached. For a store that creates its entities anew at each read,
   * where a cache costs and never hits.
   */
  readonly keep?: boolean;
};

/**
 * The cost from which an operation is written at its first run: graphql-js would block the event loop for longer than
 * one request may. An operation of this cost takes it a few milliseconds.
 */
const WRITTEN_AT_ONCE = 10_000;

/** The characters of JSON text that all plans of one schema may cache together. A character takes at most two bytes. */
const FRAGMENT_CHARS = 32 * 1024 * 1024;

/**
 * Creates the plans of a schema. Every query and mutation is executed through a plan; a plan lives as long as its
 * document.
 */
export function createPlans(
  schema: GraphQLSchema,
  { eager = false, fast = true, keep = true }: PlansOptions = {},
): Plans {
  const fragments = keep ? createJsonCaches(FRAGMENT_CHARS) : null;
  const plans = new WeakMap<OperationDefinitionNode, Plan>();
  return {
    of(document, operationName) {
      const operation = getOperationAST(document, operationName);
      if (!operation) return null;
      const plan = plans.get(operation) ?? createPlan({ schema, document, operation }, { eager, fast, fragments });
      plans.set(operation, plan);
      return plan;
    },
  };
}

type Source = {
  readonly schema: GraphQLSchema;
  readonly document: DocumentNode;
  readonly operation: OperationDefinitionNode;
};
type Run = (context: unknown, variables: Variables) => MaybePromise<ExecutionResult>;

type Ways = { readonly eager: boolean; readonly fast: boolean; readonly fragments: JsonCaches | null };

function createPlan(source: Source, { eager, fast, fragments }: Ways): Plan {
  const { schema, document, operation } = source;
  const roots = rootFields(document, operation.selectionSet);
  const cost = createCost(schema, document, operation);
  const atOnce = (variables: Variables): boolean => eager || cost(variables) >= WRITTEN_AT_ONCE;
  const { run, write } = waysOf({ ...source, fragments }, { atOnce, fast });
  return {
    operation: operation.operation,
    introspects: roots.has('__schema') || roots.has('__type'),
    onlyMeta: [...roots].every((name) => name.startsWith('__')),
    read: createVariablesReader(schema, operation),
    asks: createAsks(document, operation),
    refused: (variables) => refusedVariables(schema, operation, variables),
    cost,
    run: settled(run, operation),
    write,
  };
}

type AtOnce = (variables: Variables) => boolean;

function waysOf(
  source: WriterSource,
  { atOnce, fast }: { readonly atOnce: AtOnce; readonly fast: boolean },
): { run: Run; write: Plan['write'] } {
  const run = runByJs(source);
  if (!fast) return { run, write: () => null };
  if (source.operation.operation !== 'mutation')
    return { run, write: writeFromSecond(() => createWriter(source), atOnce) };
  let deed: MutationWriter | null = null;
  const made = (): Writer | null => (deed = createMutationWriter(source))?.write ?? null;
  return {
    run: (context, variables) => deed?.replay(context, variables) ?? run(context, variables),
    write: writeFromSecond(made, atOnce),
  };
}

/**
 * Creates the writer at the second run, unless the first is to be written already: most documents that run once do not
 * repay the cost of a writer.
 */
function writeFromSecond(make: () => Writer | null, atOnce: AtOnce): Plan['write'] {
  let seen = false;
  let writer: Writer | null | undefined;
  return (context, variables, note) => {
    if (writer === undefined && (seen || atOnce(variables ?? {}))) writer = make();
    seen = true;
    return writer?.(context, variables ?? {}, note) ?? null;
  };
}

function runByJs({ schema, document, operation }: Source): Run {
  const operationName = operation.name?.value ?? null;
  const options = { maxCoercionErrors: MAX_COERCION_ERRORS };
  return (contextValue, variableValues) => {
    const errors = refusedVariables(schema, operation, variableValues);
    if (errors) return { errors };
    const args = { schema, document, operationName, contextValue, variableValues, options };
    return execute({ ...args, hideSuggestions: true });
  };
}

/**
 * Gives every failure one form: a thrown error becomes an entry of `errors`, and a result without data is marked as a
 * bad request.
 */
function settled(run: Run, operation: OperationDefinitionNode): Plan['run'] {
  const failed = (error: unknown): ExecutionResult => ({
    data: null,
    errors: [
      error instanceof GraphQLError ? error : new GraphQLError('Execution failed.', { originalError: asError(error) }),
    ],
  });
  return (context, variables) => {
    restartBudget(context);
    try {
      const answer = run(context, variables ?? {});
      if (answer instanceof Promise) return answer.then((result) => badRequest(result, operation), failed);
      return badRequest(answer, operation);
    } catch (error) {
      return failed(error);
    }
  };
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

function badRequest(result: ExecutionResult, operation: OperationDefinitionNode): ExecutionResult {
  if (!result.errors || 'data' in result) return result;
  const errors = result.errors.slice(0, MAX_COERCION_ERRORS).map(
    (error) =>
      new GraphQLError(error.message, {
        nodes: error.nodes ?? operation,
        originalError: error.originalError,
        extensions: { ...error.extensions, http: { status: 400, spec: true } },
      }),
  );
  return { errors };
}
