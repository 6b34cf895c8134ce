import {
  createSourceEventStream,
  executeSubscriptionEvent,
  validateSubscriptionArgs,
  type DocumentNode,
  type ExecutionResult,
  type GraphQLSchema,
  type ValidatedSubscriptionArgs,
} from 'graphql';
import type { Principal } from '../core/auth/principal.ts';
import type { Clock } from '../core/clock.ts';
import type { Core } from '../core/core.ts';
import { CallboardError } from '../core/errors.ts';
import { QUERY_MS } from '../core/limits.ts';
import type { Log } from '../core/log.ts';
import { refusalOf, withinTime, type Introspection } from './limits.ts';
import type { Mask } from './mask.ts';
import { createPlans, type Plan, type Variables } from './plan.ts';

/** What resolvers are given, made anew for each request and for each event of a subscription. */
export type MakeContext = (of: {
  readonly core: Core;
  readonly who: Principal | null;
  readonly log: Log;
  /** Aborted when the asker hangs up. */
  readonly signal?: AbortSignal | undefined;
}) => object;

/** A valid document, and who asks for it to be run. */
export type Operation = {
  readonly document: DocumentNode;
  readonly operationName?: string | null | undefined;
  readonly variables?: Variables | null | undefined;
  readonly who: Principal | null;
  readonly signal?: AbortSignal | undefined;
};

/** The results of a subscription, one at a time. `return` ends it and frees what it holds, without waiting for a pending `next`. */
export type Results = { next(): Promise<IteratorResult<ExecutionResult, undefined>>; return(): void };

/** Runs operations for every door of GraphQL, with the same limits and the same masking. Nothing here throws: failures stand in `errors`. */
export type Executor = {
  /** The kind of the operation; null when the document does not say which to run. */
  kindOf(operation: Pick<Operation, 'document' | 'operationName'>): Plan['operation'] | null;
  /** Queries and mutations. */
  execute(operation: Operation): Promise<ExecutionResult>;
  /** Subscriptions: their results, or the one answer that refuses them. */
  subscribe(operation: Operation): Promise<Results | ExecutionResult>;
  readonly mask: Mask;
};

export type ExecutorOptions = {
  readonly schema: GraphQLSchema;
  readonly core: Core;
  readonly log: Log;
  readonly introspection: Introspection;
  readonly mask: Mask;
  readonly makeContext: MakeContext;
};

export function createExecutor(options: ExecutorOptions): Executor {
  const { core, log, introspection, mask } = options;
  const clock: Clock = core.clock;
  const plans = createPlans(options.schema);
  const contextOf = ({ who, signal }: Operation): object => options.makeContext({ core, who, log, signal });
  const admit = (operation: Operation): Plan => {
    const plan = plans.of(operation.document, operation.operationName);
    if (!plan) throw new CallboardError('invalid_argument', 'The document does not say which operation to run.');
    const refused = refusalOf(plan, { who: operation.who, variables: operation.variables ?? {}, introspection });
    if (refused) throw refused;
    return plan;
  };
  const masked = (result: ExecutionResult): ExecutionResult => maskAll(result, mask);

  return {
    mask,
    kindOf: ({ document, operationName }) => plans.of(document, operationName)?.operation ?? null,
    async execute(operation) {
      try {
        const plan = admit(operation);
        const answer = plan.run(contextOf(operation), operation.variables);
        return masked(await (plan.operation === 'query' ? withinTime(answer, { clock, ms: QUERY_MS }) : answer));
      } catch (error) {
        return { errors: [mask(error)] };
      }
    },
    async subscribe(operation) {
      try {
        admit(operation);
        const args = subscriptionArgs(operation, { schema: options.schema, contextValue: contextOf(operation) });
        if (!('schema' in args)) return masked({ errors: args });
        const source = await createSourceEventStream(args);
        if (!(Symbol.asyncIterator in source)) return masked(source);
        return createResults(source, { args, masked, mask, freshContext: () => contextOf(operation) });
      } catch (error) {
        return { errors: [mask(error)] };
      }
    },
  };
}

function maskAll(result: ExecutionResult, mask: Mask): ExecutionResult {
  return result.errors ? { ...result, errors: result.errors.map(mask) } : result;
}

function subscriptionArgs(
  { document, operationName, variables }: Operation,
  { schema, contextValue }: { schema: GraphQLSchema; contextValue: object },
): ReturnType<typeof validateSubscriptionArgs> {
  return validateSubscriptionArgs({
    schema,
    document,
    contextValue,
    operationName: operationName ?? null,
    variableValues: variables ?? {},
    hideSuggestions: true,
  });
}

type ResultsOptions = {
  readonly args: ValidatedSubscriptionArgs;
  readonly masked: (result: ExecutionResult) => ExecutionResult;
  readonly mask: Mask;
  /** Loaders remember, so that each event needs its own. */
  readonly freshContext: () => object;
};

/**
 * One execution per event and subscriber. Fields that many subscribers may share are to be grouped here: one source and one execution
 * for all members of a group, with a context that belongs to none of them.
 */
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
      // A source that fails while it is closed has nobody left to tell.
      events.return?.().catch(() => {});
    },
  };
}
