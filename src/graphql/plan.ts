import {
  GraphQLError,
  execute,
  getOperationAST,
  type DocumentNode,
  type ExecutionResult,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from 'graphql';
import type { Maybe } from '../core/maybe.ts';
import { createCost } from './cost.ts';
import { restartBudget } from './page-budget.ts';
import { createAsks } from './plan-asks.ts';
import { createDeedWriter, type DeedWriter } from './writer-deed.ts';
import { createFragmentStores, type FragmentStores } from './fragments.ts';
import { createVariablesReader, type ReadVariables, type Variables } from './request-variables.ts';
import { MAX_COERCION_ERRORS, refusedVariables } from './plan-variables.ts';
import { rootFields } from './plan-roots.ts';
import { createWriter, type Writer, type WriterSource } from './writer.ts';
import type { Note } from './writer-values.ts';

export type { Variables } from './request-variables.ts';

/** How one operation of one document is run. Made once and kept with the document. */
export type Plan = {
  readonly operation: 'query' | 'mutation' | 'subscription';
  /** It reads the schema (`__schema` or `__type`). */
  readonly introspects: boolean;
  /** It reads nothing but the schema and `__typename`. */
  readonly onlyMeta: boolean;
  /** The variables of a request, for what follows. Throws `invalid_argument`. */
  readonly read: ReadVariables;
  /** The fields that it may ask for with these variables, by name. */
  asks(variables: Variables): ReadonlySet<string>;
  /** What is wrong with large variables, as `run` would answer it; null: nothing that could be told without running. */
  refused(variables: Variables): readonly GraphQLError[] | null;
  /** The most that it may cost with these variables. Bad variables cost 0: running refuses them. */
  cost(variables: Variables): number;
  /**
   * Runs a query or a mutation. Never throws and never rejects: whatever fails stands in `errors`, unmasked. An answer without `data`
   * carries `extensions.http.status` 400 on its errors. `variables` are as the asker sent them.
   */
  run(context: unknown, variables: Variables | null | undefined): Maybe<ExecutionResult>;
  /**
   * The data of a query, or of a mutation that is a deed (nature.ts), as JSON text, where it comes without any error: the very text of `run`'s.
   * Null: ask `run`, with the same context: what was resolved is not resolved again. Never throws and never rejects. `note` is told of what was written.
   */
  write(context: unknown, variables: Variables | null | undefined, note?: Note): Maybe<string | null>;
};

export type Plans = {
  /** Null: the document has no such operation, or several and no name was given. The document must be valid. */
  of(document: DocumentNode, operationName?: string | null): Plan | null;
};

export type PlansOptions = {
  /** Make the writer at once instead of at the second run: for documents of our own, which are sure to come again. */
  readonly eager?: boolean;
  /** Default true. False: nothing is written as text. */
  readonly fast?: boolean;
  /**
   * Default true. False: no text of an entity is kept. For a store that makes its entities anew each time that they are read, where keeping
   * costs and is never of use.
   */
  readonly keep?: boolean;
};

/** Texts of entities, kept by all plans over one schema; at two bytes a character in the worst case. */
const FRAGMENT_CHARS = 32 * 1024 * 1024;

/** The only way to execute a document. Plans live as long as their document. */
export function createPlans(
  schema: GraphQLSchema,
  { eager = false, fast = true, keep = true }: PlansOptions = {},
): Plans {
  const fragments = keep ? createFragmentStores(FRAGMENT_CHARS) : null;
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
type Run = (context: unknown, variables: Variables) => Maybe<ExecutionResult>;

type Ways = { readonly eager: boolean; readonly fast: boolean; readonly fragments: FragmentStores | null };

function createPlan(source: Source, { eager, fast, fragments }: Ways): Plan {
  const { schema, document, operation } = source;
  const roots = rootFields(document, operation.selectionSet);
  const { run, write } = waysOf({ ...source, fragments }, { eager, fast });
  return {
    operation: operation.operation,
    introspects: roots.has('__schema') || roots.has('__type'),
    onlyMeta: [...roots].every((name) => name.startsWith('__')),
    read: createVariablesReader(schema, operation),
    asks: createAsks(document, operation),
    refused: (variables) => refusedVariables(schema, operation, variables),
    cost: createCost(schema, document, operation),
    run: settled(run, operation),
    write,
  };
}

function waysOf(source: WriterSource, { eager, fast }: Omit<Ways, 'fragments'>): { run: Run; write: Plan['write'] } {
  const run = runByJs(source);
  if (!fast) return { run, write: () => null };
  if (source.operation.operation !== 'mutation')
    return { run, write: writeFromSecond(() => createWriter(source), eager) };
  let deed: DeedWriter | null = null;
  const made = (): Writer | null => (deed = createDeedWriter(source))?.write ?? null;
  return {
    run: (context, variables) => deed?.replay(context, variables) ?? run(context, variables),
    write: writeFromSecond(made, eager),
  };
}

/** A document that comes only once is not worth the making of its writer. */
function writeFromSecond(make: () => Writer | null, eager: boolean): Plan['write'] {
  let seen = eager;
  let writer: Writer | null | undefined;
  return (context, variables, note) => {
    if (seen && writer === undefined) writer = make();
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

/** One form for every failure: a thrown one becomes an error, and an answer without data says that the request was at fault. */
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
