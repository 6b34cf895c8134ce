/** Executes operations for every transport. It must not know the format of a transport. */
import {
  createSourceEventStream,
  executeSubscriptionEvent,
  validateSubscriptionArgs,
  type DocumentNode,
  type ExecutionResult,
  type GraphQLSchema,
  type ValidatedSubscriptionArgs,
} from 'graphql';
import type { Principal } from '../../core/auth/principal.ts';
import type { Core, HangUp } from '../../core/core.ts';
import { CallboardError } from '../../core/errors.ts';
import type { Log } from '../../core/log.ts';
import { DocumentReading } from '../../core/reading.ts';
import type { TraceContext } from '../../core/trace-context.ts';
import { thenDo, orElse, type MaybePromise } from '../../core/maybe-promise.ts';
import { createSharedSubscriptions, type ResultFrames } from './shared-subscription.ts';
import { readDocument, refusalOf, type Introspection } from './limits.ts';
import type { Mask } from './mask.ts';
import type { Bound } from './bound.ts';
import { createPlans, type Plan } from './plan.ts';
import type { Inserts } from '../../web/json-text.ts';
import type { RequestNotes } from '../../web/request-notes.ts';
import type { TextInfo } from '../writer/values.ts';
import type { GivenVariables, Variables } from '../variables/request-variables.ts';
import type { Joining } from '../../web/sse-group.ts';
import { MAX_COERCION_ERRORS } from '../variables/coerce-variables.ts';

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
   * it. `inserts`: whether the text may contain references to bytes (web/json-text.ts).
   */
  answer(operation: Operation, inserts?: boolean): MaybePromise<ExecutionResult | WrittenData>;
  /**
   * Starts a subscription. Returns a group if other requesters may share the results; `frames` then encodes each result
   * once for the whole group. Otherwise returns the operation's own results, or the one result that refuses it.
   */
  subscribe(operation: Operation, frames: ResultFrames): Promise<Joining<unknown> | Results | ExecutionResult>;
  readonly mask: Mask;
};

export type ExecutorOptions = {
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
