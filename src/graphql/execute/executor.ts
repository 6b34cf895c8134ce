/** Executes operations for every transport. It must not know the format of a transport. */
import {
  GraphQLError,
  Kind,
  OperationTypeNode,
  createSourceEventStream,
  executeSubscriptionEvent,
  parse,
  validateSubscriptionArgs,
  type DefinitionNode,
  type DocumentNode,
  type ExecutionResult,
  type GraphQLSchema,
  type ValidatedSubscriptionArgs,
} from 'graphql';
import type { Principal } from '../../core/auth/principal.ts';
import type { Core, HangUp } from '../../core/core.ts';
import { CallboardError, fail } from '../../core/errors.ts';
import {
  ANONYMOUS_INTROSPECTION_CHARS,
  ANONYMOUS_QUERY_CHARS,
  QUERY_COST_ADMIN,
  QUERY_COST_USER,
  QUERY_MS,
} from '../../core/limits.ts';
import { orElse, thenDo, type MaybePromise } from '../../core/maybe-promise.ts';
import type { Clock, Log } from '../../core/ports.ts';
import { DocumentReading } from '../../core/reading.ts';
import type { TraceContext } from '../../core/trace-context.ts';
import type { Inserts, RequestNotes } from '../../web/reply.ts';
import type { Joining } from '../../web/sse-group.ts';
import { MAX_COERCION_ERRORS, type GivenVariables, type Variables } from '../variables.ts';
import type { TextInfo } from '../writer/objects.ts';
import type { Mask } from './mask.ts';
import { createPlans, rootFields, type Bound, type Plan } from './plan.ts';
import { createSharedSubscriptions, type ResultFrames } from './shared.ts';

/** Creates the context of resolvers: a new one for each request and for each event of a subscription. */
export type MakeContext = (of: {
  readonly core: Core;
  readonly requester: Principal | null;
  readonly log: Log;
  /** The signal that is aborted when the requester hangs up. */
  readonly signal?: HangUp | undefined;
  /** What the operation reads. */
  readonly reading?: DocumentReading | undefined;
  /** The names of the fields that the operation may select; absent: not known. */
  readonly asks?: ReadonlySet<string> | undefined;
  readonly notes?: RequestNotes | undefined;
  readonly trace?: TraceContext | undefined;
}) => object;

/** A valid document, and the requester it is executed for. */
export type Operation = {
  readonly document: DocumentNode;
  readonly operationName?: string | null | undefined;
  readonly variables?: GivenVariables;
  readonly requester: Principal | null;
  readonly signal?: HangUp | undefined;
  readonly notes?: RequestNotes | undefined;
  /** The trace context of the request, for the commands that a mutation admits. */
  readonly trace?: TraceContext | undefined;
};

/** Data as JSON text. `nonAscii`: the text may contain characters beyond ASCII. */
export type WrittenData = { readonly written: string; readonly nonAscii: boolean; readonly inserts: Inserts };

/**
 * The results of a subscription, one at a time. `return` ends the subscription and frees its resources without waiting
 * for a pending `next`.
 */
export type Results = { next(): Promise<IteratorResult<ExecutionResult, undefined>>; return(): void };

/**
 * Executes the operations of every GraphQL transport, with the same limits and the same masking. Except where stated,
 * nothing here throws or rejects: failures are in `errors`.
 */
export type Executor = {
  /** Returns the kind of the operation; null when the document does not determine which operation to run. */
  kindOf(operation: Pick<Operation, 'document' | 'operationName'>): Plan['operation'] | null;
  /** Executes a query or a mutation. */
  execute(operation: Operation): Promise<ExecutionResult>;
  /**
   * Does the same as `execute`, but returns the data as JSON text if the result has no errors and a writer can write
   * it. `inserts`: whether the text may contain references to bytes (web/reply.ts).
   */
  answer(operation: Operation, inserts?: boolean): MaybePromise<ExecutionResult | WrittenData>;
  /**
   * Starts a subscription. Returns a group if other requesters may share the results; `frames` then encodes each result
   * once for the whole group. Otherwise returns the operation's own results, or the one result that refuses it.
   */
  subscribe(operation: Operation, frames: ResultFrames): Promise<Joining<unknown> | Results | ExecutionResult>;
  readonly mask: Mask;
};

type ExecutorOptions = {
  readonly schema: GraphQLSchema;
  readonly core: Core;
  readonly log: Log;
  readonly introspection: Introspection;
  readonly mask: Mask;
  readonly makeContext: MakeContext;
  /** Whether a subscription that may be shared is executed once for all its requesters. Default true. */
  readonly sharing?: boolean;
  /** Whether the fast path may be used; default true. If false, graphql-js executes everything. */
  readonly fast?: boolean;
};

export function createExecutor(options: ExecutorOptions): Executor {
  const { core, log, introspection, mask, schema, sharing = true, fast = true } = options;
  const plans = createPlans(schema, { fast, keep: !core.capabilities.shared });
  const contextOf = (operation: Operation, { asks }: Bound, reading = new DocumentReading()): object => {
    const { requester, signal, notes, trace } = operation;
    return options.makeContext({ core, requester, log, signal, reading, notes, trace, asks });
  };
  /** Runs an operation within its limits. Only a query takes turns; a mutation waits for what it does. */
  const run = <T>(operation: Operation, { plan, bound }: Admitted, work: (context: object) => MaybePromise<T>) => {
    const { requester, signal } = operation;
    if (plan.operation !== 'query') return work(contextOf(operation, bound));
    const request = { requester, signal, cost: bound.cost(requester) };
    return readDocument(core, request, (reading) => work(contextOf(operation, bound, reading)));
  };
  const admit = (operation: Operation): Admitted => {
    const plan = plans.of(operation.document, operation.operationName);
    if (!plan) throw new CallboardError('invalid_argument', 'The document does not say which operation to run.');
    const bound = plan.bind(operation.variables);
    const refused = refusalOf(plan, { requester: operation.requester, bound, introspection });
    if (refused) throw refused;
    return { plan, bound };
  };
  const masked = (result: ExecutionResult): ExecutionResult => maskAll(result, mask);
  const anonymousContext = (): object => options.makeContext({ core, requester: null, log });
  const sharer = createSharedSubscriptions({ schema, mask, masked, anonymousContext, fast });

  return {
    mask,
    kindOf: ({ document, operationName }) => plans.of(document, operationName)?.operation ?? null,
    async execute(operation) {
      try {
        const admitted = admit(operation);
        return masked(await run(operation, admitted, (context) => admitted.bound.run(context)));
      } catch (error) {
        return { errors: [mask(error)] };
      }
    },
    answer(operation, inserts = false) {
      return orElse<Answer, Answer>(
        () => {
          const admitted = admit(operation);
          const answer = run(operation, admitted, (context) => answerOf(admitted.bound, context, inserts));
          return thenDo<Answer, Answer>(answer, (done) => ('written' in done ? done : masked(done)));
        },
        (error) => ({ errors: [mask(error)] }),
      );
    },
    async subscribe(operation, frames) {
      try {
        const { bound } = admit(operation);
        const wrong = bound.refused();
        if (wrong) return masked({ errors: wrong });
        const contextValue = contextOf(operation, bound);
        const args = subscriptionArgs({ ...operation, variables: bound.variables }, { schema, contextValue });
        if (!('schema' in args)) return masked({ errors: args.slice(0, MAX_COERCION_ERRORS) });
        const joining = sharing ? await sharer.of(args, frames) : null;
        if (joining) return joining;
        const source = await createSourceEventStream(args);
        if (!(Symbol.asyncIterator in source)) return masked(source);
        return createResults(source, { args, masked, mask, freshContext: () => contextOf(operation, bound) });
      } catch (error) {
        return { errors: [mask(error)] };
      }
    },
  };
}

type Answer = ExecutionResult | WrittenData;
type Admitted = { readonly plan: Plan; readonly bound: Bound };

function answerOf(bound: Bound, context: object, inserts: boolean): MaybePromise<Answer> {
  const note: TextInfo = inserts ? { nonAscii: false, inserts: [] } : { nonAscii: false };
  return thenDo<string | null, Answer>(bound.write(context, note), (written) =>
    written === null ? bound.run(context) : { written, nonAscii: note.nonAscii, inserts: note.inserts ?? [] },
  );
}

function maskAll(result: ExecutionResult, mask: Mask): ExecutionResult {
  return result.errors ? { ...result, errors: result.errors.map(mask) } : result;
}

function subscriptionArgs(
  { document, operationName, variables }: Operation & { readonly variables: Variables },
  { schema, contextValue }: { schema: GraphQLSchema; contextValue: object },
): ReturnType<typeof validateSubscriptionArgs> {
  return validateSubscriptionArgs({
    schema,
    document,
    contextValue,
    operationName: operationName ?? null,
    variableValues: variables,
    hideSuggestions: true,
    options: { maxCoercionErrors: MAX_COERCION_ERRORS },
  });
}

type ResultsOptions = {
  readonly args: ValidatedSubscriptionArgs;
  readonly masked: (result: ExecutionResult) => ExecutionResult;
  readonly mask: Mask;
  /** Creates a context for one event. Data loaders cache what they load, so each event needs a context of its own. */
  readonly freshContext: () => object;
};

/** Creates the results of one subscriber. Each event is executed for this subscriber alone. */
function createResults(source: AsyncIterable<unknown>, { args, masked, mask, freshContext }: ResultsOptions): Results {
  const events = source[Symbol.asyncIterator]();
  let over = false;
  return {
    async next() {
      if (over) return { done: true, value: undefined };
      try {
        const event = await events.next();
        if (event.done) return { done: true, value: undefined };
        const result = await executeSubscriptionEvent({
          ...args,
          rootValue: event.value,
          contextValue: freshContext(),
        });
        return { done: false, value: masked(result) };
      } catch (error) {
        over = true;
        return { done: false, value: { errors: [mask(error)] } };
      }
    },
    return() {
      over = true;
      // No subscriber is left to receive an error of a source that fails while it closes.
      events.return?.().catch(() => {});
    },
  };
}

// Decides whether a requester may run an operation, and bounds the time of queries.

/** Who may read the schema through introspection. */
export type Introspection = 'admin' | 'all' | 'off';

type Admission = {
  readonly requester: Principal | null;
  readonly bound: Bound;
  readonly introspection: Introspection;
};

/**
 * Returns the reason why this requester may not run this operation, checked before anything of it runs. Null when the
 * requester may.
 */
function refusalOf(plan: Plan, { requester, bound, introspection }: Admission): CallboardError | null {
  if (!requester && !plan.onlyMeta) return new CallboardError('unauthenticated', 'A bearer token is needed.');
  if (plan.introspects) {
    const refused = introspectionRefusal(requester, introspection);
    if (refused) return refused;
  }
  const most = requester?.kind === 'admin' ? QUERY_COST_ADMIN : QUERY_COST_USER;
  const cost = bound.cost(requester);
  if (cost <= most) return null;
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
 * Runs a document that only reads, when it is its requester's turn and for at most QUERY_MS. `run` gets the reading of
 * the document, which ends when the requester hangs up or the time is over. Throws `share_exceeded` if the requester has
 * too many documents in progress; rejects with `store_unavailable` when the time is over.
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
 * Returns the answer, or rejects with `store_unavailable` after `ms` milliseconds. The cost of a query is bounded
 * before it runs, so only a slow store and the turns of others can delay its answer this long. A late answer is dropped,
 * and `reading` ends, so that the store is not read any further.
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

// Limits what may be executed without a token.

/**
 * Checks that a document may be executed without a token: a query of `__typename` and, where introspection is open to
 * all, of the schema. Throws `unauthenticated` for every other text, valid or not. The document is not validated, and a
 * text longer than such a query needs is not parsed.
 */
export function requireAnonymousQuery(query: string, introspection: Introspection): void {
  const longest = introspection === 'all' ? ANONYMOUS_INTROSPECTION_CHARS : ANONYMOUS_QUERY_CHARS;
  const document = query.length <= longest ? parseQuietly(query) : null;
  const isOpen = document?.definitions.every((node) => isOpenDefinition(document, node, introspection));
  if (!isOpen) fail('unauthenticated', 'A bearer token is needed.');
}

function isOpenDefinition(document: DocumentNode, node: DefinitionNode, introspection: Introspection): boolean {
  if (node.kind === Kind.FRAGMENT_DEFINITION) return true;
  if (node.kind !== Kind.OPERATION_DEFINITION || node.operation !== OperationTypeNode.QUERY) return false;
  const isOpen = (name: string): boolean =>
    name === '__typename' || (introspection === 'all' && (name === '__schema' || name === '__type'));
  return [...rootFields(document, node.selectionSet)].every(isOpen);
}

function parseQuietly(query: string): DocumentNode | null {
  try {
    return parse(query, { maxTokens: 1000, noLocation: true });
  } catch (error) {
    if (error instanceof GraphQLError) return null;
    throw error;
  }
}
