/**
 * Executes operations for every GraphQL transport: decides who may run them, limits the time of queries, and compiles
 * each operation into a plan, which REST uses too. It knows no transport's format.
 */
import {
  GraphQLError,
  createSourceEventStream,
  executeRootSelectionSet,
  getOperationAST,
  validateExecutionArgs,
  type DocumentNode,
  type ExecutionResult,
  type GraphQLSchema,
  type OperationDefinitionNode,
  type ValidatedExecutionArgs,
  type ValidatedSubscriptionArgs,
  type VariableValues,
} from 'graphql';
import type { Principal } from '../../core/auth/principal.ts';
import { BoundedMap } from '../../core/collections.ts';
import type { Core, HangUp } from '../../core/core.ts';
import { CallboardError } from '../../core/errors.ts';
import { QUERY_COST_ADMIN, QUERY_COST_USER, QUERY_MS } from '../../core/limits.ts';
import { orElse, thenDo, type MaybePromise } from '../../core/maybe-promise.ts';
import type { Clock } from '../../core/ports.ts';
import { DocumentReading } from '../../core/document-reading.ts';
import type { TraceContext } from '../../core/trace-context.ts';
import type { Inserts } from '../../web/reply.ts';
import type { RequestNotes } from '../../web/request-notes.ts';
import type { Joining } from '../../web/sse-group.ts';
import { Context, type ContextOptions } from '../schema/context.ts';
import { createAsks, rootFields } from '../selection.ts';
import type { Values } from '../variables-coercion.ts';
import {
  MAX_COERCION_ERRORS,
  VariablesText,
  createVariablesReader,
  type CoercedVariables,
  type GivenVariables,
  type VariablesReader,
} from '../variables.ts';
import { createJsonCaches, type TextInfo } from '../writer/texts.ts';
import { createWriter, type WriterSource } from '../writer/compile.ts';
import { RootValue, type Prepare, type Prepared } from '../writer/objects.ts';
import { createCosts, type Costs } from './cost.ts';
import type { Introspection } from './anonymous-query.ts';
import { maskAll, type Mask } from './mask.ts';
import { createResults, createSharedSubscriptions, type ResultFrames, type Results } from './subscriptions.ts';

/** Creates the context of resolvers: a new one for each request and for each event of a subscription. */
export type MakeContext = (options: ContextOptions) => object;

/** An operation and the requester for whom it is executed. */
export type Operation = {
  /** The plan of the operation. Null: the document does not determine which of its operations to run. */
  readonly plan: OperationPlan | null;
  readonly variables?: GivenVariables;
  readonly requester: Principal | null;
  readonly signal?: HangUp | undefined;
  readonly notes?: RequestNotes | undefined;
  /** The trace context of the request. A command that a mutation admits continues this trace. */
  readonly trace?: TraceContext | undefined;
};

/** The data of a result as JSON text. `nonAscii`: whether the text may contain characters beyond ASCII. */
export type WrittenData = { readonly written: string; readonly nonAscii: boolean; readonly inserts: Inserts };

type ExecutorOptions = {
  readonly schema: GraphQLSchema;
  readonly core: Core;
  readonly introspection: Introspection;
  readonly mask: Mask;
  readonly makeContext: MakeContext;
  /**
   * Whether the JSON text of answers may be written without graphql-js, and whether one execution of a subscription may
   * serve all requesters that may share it. If false, graphql-js executes everything, for each requester separately.
   */
  readonly fast: boolean;
};

export type Executor = ReturnType<typeof createExecutor>;

/**
 * Executes the operations of every GraphQL transport with the same limits and the same masking. `execute`, `answer` and
 * `subscribe` never throw or reject: failures are in the result's `errors`.
 */
export function createExecutor(options: ExecutorOptions) {
  const { core, introspection, mask, schema, fast } = options;
  const plans = createPlans(schema, { fast, keep: !core.capabilities.shared });
  /**
   * Creates the context of an operation. `reading`: remembers what the operation reads from the store, and refuses
   * further reads once the operation is abandoned.
   */
  const contextOf = (operation: Operation, { asks }: Bound, reading = new DocumentReading()): object => {
    const { requester, signal, notes, trace } = operation;
    return options.makeContext({ core, requester, signal, reading, notes, trace, asks });
  };
  /**
   * Creates the context of one event. It shares the audited reads of its subscription's context. Contexts of tests
   * (`MakeContext`) have none to share.
   */
  const eventContextOf = (operation: Operation, { asks }: Bound, subscriptionContext: object): object => {
    const { requester, signal, notes, trace } = operation;
    const subscription = subscriptionContext instanceof Context ? subscriptionContext : undefined;
    return options.makeContext({ core, requester, signal, notes, trace, asks, subscription });
  };
  /**
   * Runs an admitted query or mutation. A query may wait for its turn and has a time limit. A mutation starts at once
   * and may take as long as its resolver needs.
   */
  const run = <T>(operation: Operation, { plan, bound }: Admitted, work: (context: object) => MaybePromise<T>) => {
    const { requester, signal } = operation;
    if (plan.operation !== 'query') return work(contextOf(operation, bound));
    const request = { requester, signal, cost: bound.cost(requester) };
    return readDocument(core, request, (reading) => work(contextOf(operation, bound, reading)));
  };
  const admit = ({ plan, variables, requester }: Operation): Admitted => {
    if (!plan) throw new CallboardError('invalid_argument', 'The document does not say which operation to run.');
    const bound = plan.bind(variables);
    const refused = refusalOf({ plan, bound }, requester, introspection);
    if (refused) throw refused;
    return { plan, bound };
  };
  const anonymousContext = (): object => options.makeContext({ core, requester: null });
  const sharer = createSharedSubscriptions({ mask, anonymousContext, fast });
  return {
    mask,
    planOf: plans.of,
    /** Executes a query or a mutation. */
    async execute(operation: Operation): Promise<ExecutionResult> {
      try {
        const admitted = admit(operation);
        return maskAll(await run(operation, admitted, (context) => admitted.bound.run(context)), mask);
      } catch (error) {
        return { errors: [mask(error)] };
      }
    },
    /**
     * Like `execute`, but returns the data as JSON text if the result has no errors and a writer can write it.
     * `inserts`: whether the text may contain references to bytes (web/reply.ts).
     */
    answer(operation: Operation, inserts = false): MaybePromise<Answer> {
      const failed = (error: unknown): Answer => ({ errors: [mask(error)] });
      const shown = (answer: Answer): Answer => ('written' in answer ? answer : maskAll(answer, mask));
      try {
        const admitted = admit(operation);
        const answer = run(operation, admitted, (context) => answerOf(admitted.bound, context, inserts));
        return answer instanceof Promise ? answer.then(shown).catch(failed) : shown(answer);
      } catch (error) {
        return failed(error);
      }
    },
    /**
     * Starts a subscription. If other requesters may share its results, returns a group, in which `frames` encodes each
     * result once. Otherwise returns the operation's own results, or the single result that refuses the operation.
     */
    async subscribe(operation: Operation, frames: ResultFrames): Promise<Joining<unknown> | Results | ExecutionResult> {
      try {
        const { bound } = admit(operation);
        const context = contextOf(operation, bound);
        const args = bound.args(context);
        if (!('schema' in args)) return maskAll({ errors: args.slice(0, MAX_COERCION_ERRORS) }, mask);
        if (!isSubscription(args)) throw new GraphQLError('Expected subscription operation.');
        const joining = fast ? await sharer.of(args, frames) : null;
        if (joining) return joining;
        const source = await createSourceEventStream(args);
        if (!(Symbol.asyncIterator in source)) return maskAll(source, mask);
        const { requester } = operation;
        return createResults(source, {
          args,
          mask,
          freshContext: () => eventContextOf(operation, bound, context),
          inTurn: (work) => core.documents.event(requester, bound.cost(requester), work),
        });
      } catch (error) {
        return { errors: [mask(error)] };
      }
    },
  };
}

type Answer = ExecutionResult | WrittenData;
type Admitted = { readonly plan: OperationPlan; readonly bound: Bound };

function answerOf(bound: Bound, context: object, inserts: boolean): MaybePromise<Answer> {
  const note: TextInfo = inserts ? { nonAscii: false, inserts: [] } : { nonAscii: false };
  const shown = (text: string | null): MaybePromise<Answer> =>
    text === null ? bound.run(context) : { written: text, nonAscii: note.nonAscii, inserts: note.inserts ?? [] };
  const written = bound.write(context, note);
  return written instanceof Promise ? written.then(shown) : shown(written);
}

// Decides whether a requester may run an operation, and limits the time of queries.

/**
 * Returns why this requester may not run this operation; null if it may. Called before any part of the operation runs.
 */
function refusalOf(
  { plan, bound }: Admitted,
  requester: Principal | null,
  introspection: Introspection,
): CallboardError | null {
  if (!requester && !plan.onlyMeta) return new CallboardError('unauthenticated', 'A bearer token is needed.');
  if (plan.introspects) {
    const refused = introspectionRefusal(requester, introspection);
    if (refused) return refused;
  }
  const most = requester?.kind === 'admin' ? QUERY_COST_ADMIN : QUERY_COST_USER;
  const cost = bound.cost(requester);
  if (cost <= most) return null;
  const fault = Number.isFinite(cost) ? null : bound.fault(requester);
  if (fault !== null) return new CallboardError('invalid_argument', fault.message);
  const advice = bound.advice(requester, most) ?? 'Ask for shorter lists.';
  return new CallboardError('too_complex', `The operation may cost ${cost}; at most ${most}. ${advice}`);
}

function introspectionRefusal(requester: Principal | null, introspection: Introspection): CallboardError | null {
  if (introspection === 'all') return null;
  if (introspection === 'off') return new CallboardError('forbidden', 'Introspection is switched off.');
  if (!requester) return new CallboardError('unauthenticated', 'Introspection needs the token of an administrator.');
  return requester.kind === 'admin'
    ? null
    : new CallboardError('forbidden', 'Only an administrator may read the schema.');
}

export type ReadingRequest = {
  readonly requester: Principal | null;
  readonly cost: number;
  /** Aborted when the requester hangs up. */
  readonly signal?: HangUp | undefined;
};

/**
 * Runs a document that only reads, when its requester has its turn. Waiting and running may take QUERY_MS together.
 * `run` receives the document's reading, which ends when the requester hangs up or the time is over. Throws
 * `share_exceeded` if the requester has too many documents in progress. Rejects with `store_unavailable` when the time
 * is over.
 */
export function readDocument<T>(
  { documents, clock }: Pick<Core, 'documents' | 'clock'>,
  { requester, cost, signal }: ReadingRequest,
  run: (reading: DocumentReading) => MaybePromise<T>,
): MaybePromise<T> {
  const reading = new DocumentReading(signal);
  const answer = documents.run(requester, { cost, reading }, () => run(reading));
  return withinTime(answer, { clock, ms: QUERY_MS, reading });
}

/**
 * Returns the answer, or rejects with `store_unavailable` after `ms` milliseconds. The cost of a query is limited
 * before it runs, so only a slow store or the turns of others can delay an answer this long. A late answer is dropped,
 * and `reading` ends, so that the query reads no more from the store.
 */
function withinTime<T>(
  answer: MaybePromise<T>,
  { clock, ms, reading }: { clock: Clock; ms: number; reading: DocumentReading },
): MaybePromise<T> {
  if (!(answer instanceof Promise)) return answer;
  return new Promise((resolve, reject) => {
    const late = (): CallboardError =>
      new CallboardError('store_unavailable', `The query was not answered within ${ms} ms.`);
    const cancel = clock.after(ms, () => {
      reading.end();
      reject(late());
    });
    const settled = <V>(settle: (value: V) => void) => {
      return (value: V): void => (cancel(), settle(value));
    };
    answer.then(settled(resolve), settled(reject));
  });
}

// Compiles the operations of a document once, and caches the result.

type PlansOptions = {
  /**
   * Whether the JSON text of results may be written without graphql-js. Default true. If false, `write` always returns
   * null.
   */
  readonly fast?: boolean;
  /**
   * Whether the JSON text of entities is cached. Default true. Use false if the store creates new entities at each
   * read, because the cache would never have a hit.
   */
  readonly keep?: boolean;
};

/**
 * The maximum number of characters of JSON text that all plans of one schema cache together. A character takes at most
 * two bytes.
 */
const FRAGMENT_CHARS = 32 * 1024 * 1024;

/**
 * `most`: the maximum number of queries that are cached with their variables for all plans of one schema. `longest`:
 * the maximum length of the variables' text for which a query is cached.
 */
const BOUND = { most: 500, longest: 4096 };

export type Plans = ReturnType<typeof createPlans>;

/**
 * Creates the plans of a schema. Each query and mutation is executed through a plan, which is kept as long as its
 * document.
 */
export function createPlans(schema: GraphQLSchema, { fast = true, keep = true }: PlansOptions = {}) {
  const fragments = keep ? createJsonCaches(FRAGMENT_CHARS) : null;
  const bound = new BoundedMap<string, Bound>({ most: BOUND.most, order: 'used' });
  const plans = new WeakMap<OperationDefinitionNode, OperationPlan>();
  let number = 0;
  return {
    /**
     * Returns the plan of an operation. Null if the document has no operation of this name, or has several and no name
     * was given. The document must be valid.
     */
    of(document: DocumentNode, operationName?: string | null): OperationPlan | null {
      const operation = getOperationAST(document, operationName);
      if (!operation) return null;
      let plan = plans.get(operation);
      if (!plan) {
        plan = new OperationPlan({ schema, document, operation, fragments }, { fast, bound, number: number++ });
        plans.set(operation, plan);
      }
      return plan;
    },
  };
}

type PlanOptions = {
  readonly fast: boolean;
  /** Cached queries with their variables, by the number of the plan and the text of the variables. */
  readonly bound: BoundedMap<string, Bound>;
  readonly number: number;
};

/** The part of a plan that transports use. */
export type Plan = Pick<OperationPlan, 'operation' | 'introspects' | 'onlyMeta' | 'bind' | 'bindValues'>;

/** Knows how to execute one operation of one document. Created once, and kept as long as the document. */
class OperationPlan {
  readonly operation: 'query' | 'mutation' | 'subscription';
  /** Whether the operation reads the schema (`__schema` or `__type`). */
  readonly introspects: boolean;
  /** Whether the operation reads only the schema and `__typename`. */
  readonly onlyMeta: boolean;
  readonly costs: Costs;
  /** Returns the names of the fields that the operation may select with these variables. */
  readonly asks: (variables: Values) => ReadonlySet<string>;
  readonly source: WriterSource;
  readonly #parts: PlanOptions;
  readonly #variables: VariablesReader;
  /**
   * Created at the first execution, because creating a writer costs less than one execution by graphql-js. Null:
   * graphql-js must execute the operation.
   */
  #writer: Prepare | null | undefined;
  #args: ReturnType<typeof validateExecutionArgs> | null = null;

  constructor(source: WriterSource, parts: PlanOptions) {
    const { schema, document, operation } = source;
    const roots = rootFields(document, operation.selectionSet);
    this.operation = operation.operation;
    this.introspects = roots.has('__schema') || roots.has('__type');
    this.onlyMeta = [...roots].every((name) => name.startsWith('__'));
    this.source = source;
    this.costs = createCosts(schema, document, operation);
    this.asks = createAsks(document);
    this.#parts = parts;
    this.#variables = createVariablesReader(schema, operation);
    this.#writer = parts.fast ? undefined : null;
  }

  /**
   * Combines the operation with the variables of a request, as the requester sent them. Throws `invalid_argument`. A
   * query whose variables have the same text as before is taken from the cache.
   */
  bind(given: GivenVariables): Bound {
    if (this.operation !== 'query' || !(given instanceof VariablesText))
      return new BoundOperation(this, this.#variables.read(given));
    const { bound, number } = this.#parts;
    const key = `${number} ${given.text}`;
    const known = bound.get(key);
    if (known) return known;
    const made = new BoundOperation(this, this.#variables.read(given));
    if (key.length <= BOUND.longest) bound.set(key, made);
    return made;
  }

  /** Combines the operation with variables that were already checked and have the form that resolvers receive. */
  bindValues(values: Values): Bound {
    return new BoundOperation(this, { values: this.#variables.of(values) });
  }

  /** Prepares the writer for these variables; null: graphql-js must execute the operation. */
  prepare(variables: VariableValues, root: RootValue): Prepared | null {
    if (this.#writer === undefined) this.#writer = createWriter(this.source);
    return this.#writer?.(variables, root) ?? null;
  }

  /** Returns what graphql-js needs to execute the operation with these variables, or the document's errors. */
  argsOf(variableValues: VariableValues): ValidatedExecutionArgs | readonly GraphQLError[] {
    const { schema, document, operation } = this.source;
    // graphql-js would coerce the variables a second time, so the validated copy of the operation declares no
    // variables.
    const bare = { ...operation, variableDefinitions: [] };
    this.#args ??= validateExecutionArgs({
      schema,
      hideSuggestions: true,
      operationName: operation.name?.value ?? null,
      document: { ...document, definitions: document.definitions.map((one) => (one === operation ? bare : one)) },
    });
    return 'schema' in this.#args ? { ...this.#args, document, operation, variableValues } : this.#args;
  }
}

/** An operation combined with its variables. */
export type Bound = Pick<BoundOperation, keyof BoundOperation>;

/**
 * An operation combined with its variables. Everything that is derived from the two is computed once, when it is first
 * needed.
 */
class BoundOperation {
  readonly #plan: OperationPlan;
  readonly #variables: CoercedVariables;
  /**
   * The root value for `write` and `run`. In a mutation, it stores the outcome of the resolver that `write` has called.
   * When `run` executes the same mutation, the field's resolver returns this outcome instead of running again
   * (`resolverOnce`). Requests never share an outcome, because only queries are shared between requests (`bind`), and
   * queries store none.
   */
  readonly #root = new RootValue();
  #cost: { readonly admin: boolean; readonly cost: number } | null = null;
  #asks: ReadonlySet<string> | null = null;
  #write: Prepared | null = null;

  constructor(plan: OperationPlan, variables: CoercedVariables) {
    this.#plan = plan;
    this.#variables = variables;
  }

  /** The names of the fields that the operation may select. */
  get asks(): ReadonlySet<string> {
    return (this.#asks ??= this.#plan.asks(this.#variables.values?.coerced ?? {}));
  }

  /** Returns the maximum cost of the operation. It is 0 for variables that do not fit, because `run` refuses them. */
  cost(requester: Principal | null): number {
    const { values } = this.#variables;
    const admin = requester?.kind === 'admin';
    if (this.#cost?.admin !== admin) this.#cost = { admin, cost: values ? this.#plan.costs.of(values, requester) : 0 };
    return this.#cost.cost;
  }

  /** Returns the error of an argument that prevents computing the cost; null if there is none. */
  fault(requester: Principal | null): GraphQLError | null {
    const { values } = this.#variables;
    return values ? this.#plan.costs.fault(values, requester) : null;
  }

  /** Returns what to request instead so that the cost is at most `most`; null if no single change suffices. */
  advice(requester: Principal | null, most: number): string | null {
    const { values } = this.#variables;
    return values ? this.#plan.costs.advice(values, requester, most) : null;
  }

  /** Returns what graphql-js needs to execute the operation, or the errors for which its variables are refused. */
  args(contextValue: unknown): ValidatedExecutionArgs | readonly GraphQLError[] {
    const { values, errors } = this.#variables;
    const args = values ? this.#plan.argsOf(values) : errors;
    return 'schema' in args ? { ...args, contextValue, rootValue: this.#root } : args;
  }

  /**
   * Executes a query or a mutation with graphql-js. Never throws and never rejects: failures are in the result's
   * `errors`, unmasked. If the result has no `data`, its errors have the status 400 in `extensions.http.status`.
   */
  run(contextValue: unknown): MaybePromise<ExecutionResult> {
    const { operation } = this.#plan.source;
    // A previous `write` that gave up may have used a part of the budget.
    if (contextValue instanceof Context) contextValue.restart();
    const executed = (): MaybePromise<ExecutionResult> => {
      const args = this.args(contextValue);
      return 'schema' in args ? executeRootSelectionSet(args) : { errors: args };
    };
    return orElse(
      () => thenDo(executed(), (result) => badRequest(result, operation)),
      (error) => ({ data: null, errors: [asGraphQLError(error)] }),
    );
  }

  /**
   * The function that executes a query, or a mutation of one field, and returns its data as JSON text, identical to the
   * text of `run`'s data. It returns null if the result has an error or cannot be written. Then call `run` with the
   * same context, which does not resolve a mutation a second time (`#root`). The function never throws and never
   * rejects.
   */
  get write(): Prepared {
    return (this.#write ??= this.#prepared() ?? NOT_WRITTEN);
  }

  #prepared(): Prepared | null {
    const { values } = this.#variables;
    return values ? this.#plan.prepare(values, this.#root) : null;
  }
}

const NOT_WRITTEN: Prepared = () => null;

function isSubscription(args: ValidatedExecutionArgs): args is ValidatedSubscriptionArgs {
  return args.operation.operation === 'subscription';
}

function asGraphQLError(error: unknown): GraphQLError {
  if (error instanceof GraphQLError) return error;
  const cause = error instanceof Error ? error : new Error(String(error));
  return new GraphQLError('Execution failed.', { cause });
}

/** Gives the errors of a result without data the HTTP status of a bad request. */
function badRequest(result: ExecutionResult, operation: OperationDefinitionNode): ExecutionResult {
  if (!result.errors || 'data' in result) return result;
  const errors = result.errors.slice(0, MAX_COERCION_ERRORS).map(
    (error) =>
      new GraphQLError(error.message, {
        nodes: error.nodes ?? operation,
        cause: error.cause,
        extensions: { ...error.extensions, http: { status: 400, spec: true } },
      }),
  );
  return { errors };
}
