/** Compiles the operations of a document once, and caches the result. It executes nothing itself. */
import {
  GraphQLError,
  Kind,
  execute,
  getOperationAST,
  visit,
  type DocumentNode,
  type ExecutionResult,
  type FieldNode,
  type GraphQLSchema,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from 'graphql';
import type { Principal } from '../../core/auth/principal.ts';
import { BoundedMap } from '../../core/collections.ts';
import type { MaybePromise } from '../../core/maybe-promise.ts';
import { restartBudget } from '../schema/page-budget.ts';
import {
  MAX_COERCION_ERRORS,
  VariablesText,
  createVariablesReader,
  refusedVariables,
  type GivenVariables,
  type RawVariables,
  type Variables,
} from '../variables.ts';
import { createWriter, type Prepare, type Prepared, type WriterSource } from '../writer/compile.ts';
import { createMutationWriter } from '../writer/mutation.ts';
import { createJsonCaches, type JsonCaches, type TextInfo } from '../writer/objects.ts';
import { createCosts, type Costs } from './cost.ts';

/** How one operation of one document is executed. Created once and kept as long as the document. */
export type Plan = {
  readonly operation: 'query' | 'mutation' | 'subscription';
  /** Whether the operation reads the schema (`__schema` or `__type`). */
  readonly introspects: boolean;
  /** Whether the operation reads only the schema and `__typename`. */
  readonly onlyMeta: boolean;
  /**
   * Returns the operation with the variables of a request, as the requester sent them. Throws `invalid_argument`. A
   * query whose variables have the same text as before is not bound again.
   */
  bind(given: GivenVariables): Bound;
};

export type Plans = {
  /**
   * Returns the plan of an operation. Null when the document has no such operation, or has several and no name was
   * given. The document must be valid.
   */
  of(document: DocumentNode, operationName?: string | null): Plan | null;
};

type PlansOptions = {
  /**
   * Whether results may be written as JSON text without graphql-js. Default true. If false, `write` always returns
   * null.
   */
  readonly fast?: boolean;
  /**
   * Whether the JSON text of entities is cached. Default true. Use false for a store that creates new entities at each
   * read, because the cache would never hit.
   */
  readonly keep?: boolean;
};

/**
 * The most characters of JSON text that all plans of one schema cache together. A character takes at most two bytes.
 */
const FRAGMENT_CHARS = 32 * 1024 * 1024;

/**
 * The most bound queries that all plans of one schema keep together, and the longest text of variables that is kept.
 */
const BOUND = { most: 500, longest: 4096 };

/**
 * Creates the plans of a schema. Every query and mutation is executed through a plan; a plan lives as long as its
 * document.
 */
export function createPlans(schema: GraphQLSchema, { fast = true, keep = true }: PlansOptions = {}): Plans {
  const fragments = keep ? createJsonCaches(FRAGMENT_CHARS) : null;
  const bound = new BoundedMap<string, Bound>({ most: BOUND.most, order: 'used' });
  const plans = new WeakMap<OperationDefinitionNode, Plan>();
  let number = 0;
  const create = (source: Source): Plan => createPlan(source, { fast, fragments, bound, number: number++ });
  return {
    of(document, operationName) {
      const operation = getOperationAST(document, operationName);
      if (!operation) return null;
      let plan = plans.get(operation);
      if (!plan) plans.set(operation, (plan = create({ schema, document, operation })));
      return plan;
    },
  };
}

type Source = {
  readonly schema: GraphQLSchema;
  readonly document: DocumentNode;
  readonly operation: OperationDefinitionNode;
};
type PlanParts = {
  readonly fast: boolean;
  readonly fragments: JsonCaches | null;
  /** The bound queries, by the number of their plan and the text of their variables. */
  readonly bound: BoundCache;
  readonly number: number;
};
type BoundCache = BoundedMap<string, Bound>;

function createPlan(source: Source, { bound, number, ...parts }: PlanParts): Plan {
  const { schema, document, operation } = source;
  const roots = rootFields(document, operation.selectionSet);
  const read = createVariablesReader(schema, operation);
  const binder = createBinder({ ...source, fragments: parts.fragments }, parts);
  const isQuery = operation.operation === 'query';
  return {
    operation: operation.operation,
    introspects: roots.has('__schema') || roots.has('__type'),
    onlyMeta: [...roots].every((name) => name.startsWith('__')),
    bind(given) {
      if (!isQuery || !(given instanceof VariablesText)) return binder(read(given));
      const key = `${number} ${given.text}`;
      const known = bound.get(key);
      if (known) return known;
      const made = binder(read(given));
      if (key.length <= BOUND.longest) bound.set(key, made);
      return made;
    },
  };
}

// Finds the names of the fields that an operation may select.

/**
 * Returns a function that gives the names of all fields an operation may select, anywhere in its document. A field with
 * the argument `include` counts only when that argument may be true. The document is analysed once; a call only looks
 * at the variables of `include`.
 */
function createAsks(
  document: DocumentNode,
  operation: OperationDefinitionNode,
): (variables: RawVariables) => ReadonlySet<string> {
  const plain = new Set<string>();
  const included = new Set<string>();
  const switches = new Set<string>();
  visit(document, {
    Field(node) {
      const name = node.name.value;
      const value = includeOf(node);
      if (value === undefined || (value.kind === Kind.BOOLEAN && value.value)) plain.add(name);
      else if (value.kind === Kind.VARIABLE) {
        included.add(name);
        switches.add(value.name.value);
      }
    },
  });
  if (switches.size === 0) return () => plain;
  const all = new Set([...plain, ...included]);
  const names = [...switches];
  const defaults = new Set(
    (operation.variableDefinitions ?? []).flatMap(({ variable, defaultValue }) =>
      defaultValue?.kind === Kind.BOOLEAN && defaultValue.value ? [variable.name.value] : [],
    ),
  );
  const isOn = (variables: RawVariables, name: string): boolean => {
    const value = variables[name];
    return value === true || (value === undefined && defaults.has(name));
  };
  return (variables) => (names.some((name) => isOn(variables, name)) ? all : plain);
}

function includeOf({ arguments: given = [] }: FieldNode) {
  return given.find(({ name }) => name.value === 'include')?.value;
}

// Finds the root fields of an operation.

/**
 * Returns the names of an operation's root fields, including those of its fragments. The document need not be valid.
 */
export function rootFields(document: DocumentNode, root: SelectionSetNode): ReadonlySet<string> {
  const fields = new Set<string>();
  const seen = new Set<SelectionSetNode>();
  const collect = (set: SelectionSetNode): void => {
    if (seen.has(set)) return;
    seen.add(set);
    for (const selection of set.selections) {
      if (selection.kind === Kind.FIELD) fields.add(selection.name.value);
      else if (selection.kind === Kind.INLINE_FRAGMENT) collect(selection.selectionSet);
      else fragmentOf(document, selection.name.value).forEach(collect);
    }
  };
  collect(root);
  return fields;
}

function fragmentOf(document: DocumentNode, name: string): readonly SelectionSetNode[] {
  return document.definitions.flatMap((node) =>
    node.kind === Kind.FRAGMENT_DEFINITION && node.name.value === name ? [node.selectionSet] : [],
  );
}

// Binds an operation to its variables and runs it. The executor checks the limits of the operation before.

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
function createBinder(source: WriterSource, { fast }: { readonly fast: boolean }): (variables: Variables) => Bound {
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
