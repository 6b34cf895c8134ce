/** Binds an operation to its variables and runs it. The executor checks the limits of the operation before. */
import { GraphQLError, execute, type ExecutionResult, type OperationDefinitionNode } from 'graphql';
import type { Principal } from '../../core/auth/principal.ts';
import type { MaybePromise } from '../../core/maybe-promise.ts';
import { restartBudget } from '../schema/page-budget.ts';
import { MAX_COERCION_ERRORS, refusedVariables } from '../variables/coerce-variables.ts';
import type { Variables } from '../variables/request-variables.ts';
import { createMutationWriter } from '../writer/mutation-writer.ts';
import type { TextInfo } from '../writer/values.ts';
import { createWriter, type Prepare, type Prepared, type WriterSource } from '../writer/writer.ts';
import { createCosts, type Costs } from './cost.ts';
import { createAsks } from './plan-asks.ts';

/** An operation with its variables. What follows from the variables is computed once, when it is needed. */
export interface Bound {
  readonly variables: Variables;
  /** The names of the fields that the operation may select. */
  readonly asks: ReadonlySet<string>;
  /** Returns the maximum cost of the operation. Invalid variables cost 0, because `run` refuses them. */
  cost(requester: Principal | null): number;
  /** Returns what to request instead so that the cost is at most `most`; null if no single change is enough. */
  advice(requester: Principal | null, most: number): string | null;
  /**
   * Checks large variables without running the operation. Returns their errors as `run` would, or null if it finds
   * none.
   */
  refused(): readonly GraphQLError[] | null;
  /**
   * Executes a query or a mutation. Never throws and never rejects: failures are in `errors`, unmasked. When the result
   * has no `data`, its errors carry `extensions.http.status` 400.
   */
  run(context: unknown): MaybePromise<ExecutionResult>;
  /**
   * Executes a query, or a direct mutation (cache-hints.ts), and returns its data as JSON text, identical to the text
   * of `run`'s data. Null when the result has an error or cannot be written here: call `run` with the same context
   * then. A mutation that `write` has resolved is not resolved again by `run`. Never throws and never rejects. `note`
   * receives what is known of the text.
   */
  write(context: unknown, note?: TextInfo): MaybePromise<string | null>;
}

type Run = (context: unknown, variables: Variables) => MaybePromise<ExecutionResult>;
type Ways = { readonly run: Run; readonly prepare: Prepare };

/** Creates the function that binds an operation to variables. `fast` false: `write` always returns null. */
export function createBinder(
  source: WriterSource,
  { fast }: { readonly fast: boolean },
): (variables: Variables) => Bound {
  const { schema, document, operation } = source;
  const operationWays = fast ? waysOf(source) : { run: runByJs(source), prepare: () => null };
  const shared: Shared = {
    asks: createAsks(document, operation),
    costs: createCosts(schema, document, operation),
    refused: (variables) => refusedVariables(schema, operation, variables),
    prepare: operationWays.prepare,
    run: settled(operationWays.run, operation),
  };
  return (variables) => new BoundOperation(shared, variables);
}

type Shared = {
  readonly asks: (variables: Variables) => ReadonlySet<string>;
  readonly costs: Costs;
  readonly refused: (variables: Variables) => readonly GraphQLError[] | null;
  readonly prepare: Prepare;
  readonly run: Run;
};

class BoundOperation implements Bound {
  readonly #shared: Shared;
  readonly variables: Variables;
  #cost: { readonly admin: boolean; readonly cost: number } | null = null;
  #asks: ReadonlySet<string> | null = null;
  #written: Prepared | null = null;

  constructor(shared: Shared, variables: Variables) {
    this.#shared = shared;
    this.variables = variables;
  }

  get asks(): ReadonlySet<string> {
    return (this.#asks ??= this.#shared.asks(this.variables));
  }

  cost(requester: Principal | null): number {
    const admin = requester?.kind === 'admin';
    if (this.#cost?.admin !== admin) this.#cost = { admin, cost: this.#shared.costs.of(this.variables, requester) };
    return this.#cost.cost;
  }

  advice(requester: Principal | null, most: number): string | null {
    return this.#shared.costs.advice(this.variables, requester, most);
  }

  refused(): readonly GraphQLError[] | null {
    return this.#shared.refused(this.variables);
  }

  run(context: unknown): MaybePromise<ExecutionResult> {
    return this.#shared.run(context, this.variables);
  }

  write(context: unknown, note: TextInfo = { nonAscii: false }): MaybePromise<string | null> {
    this.#written ??= this.#shared.prepare(this.variables);
    return this.#written?.(context, note) ?? null;
  }
}

/**
 * Creates the functions that execute and write an operation. A writer is created at the first run, because creating one
 * costs less than one execution by graphql-js.
 */
function waysOf(source: WriterSource): Ways {
  const run = runByJs(source);
  if (source.operation.operation !== 'mutation') {
    const writer = createLazy(() => createWriter(source));
    return { run, prepare: (variables) => writer()?.(variables) ?? null };
  }
  const direct = createLazy(() => createMutationWriter(source));
  return {
    run: (context, variables) => direct()?.replay(context, variables) ?? run(context, variables),
    prepare: (variables) => direct()?.prepare(variables) ?? null,
  };
}

function createLazy<T>(make: () => T): () => T {
  let made: { readonly value: T } | null = null;
  return () => (made ??= { value: make() }).value;
}

function runByJs({ schema, document, operation }: WriterSource): Run {
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
function settled(run: Run, operation: OperationDefinitionNode): Run {
  const failed = (error: unknown): ExecutionResult => ({
    data: null,
    errors: [
      error instanceof GraphQLError ? error : new GraphQLError('Execution failed.', { originalError: asError(error) }),
    ],
  });
  return (context, variables) => {
    restartBudget(context);
    try {
      const answer = run(context, variables);
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
