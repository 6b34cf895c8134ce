/**
 * Executes subscriptions, for each requester separately or once for several. It must not share anything that differs by
 * requester.
 */
import {
  Kind,
  TypeInfo,
  executeSubscriptionEvent,
  getArgumentValues,
  locatedError,
  visit,
  visitWithTypeInfo,
  type DocumentNode,
  type ExecutionResult,
  type FieldNode,
  type GraphQLField,
  type OperationDefinitionNode,
  type ValidatedSubscriptionArgs,
} from 'graphql';
import type { LiveEvent, SharedSubscription } from '../../core/live.ts';
import type { MaybePromise } from '../../core/maybe-promise.ts';
import type { EventEncoder, Joining } from '../../web/sse-group.ts';
import type { Share } from '../schema/subscription-fields.ts';
import { createEventWriter, type EventWriter } from '../writer/compile.ts';
import { maskAll, type Mask } from './mask.ts';

// Executes a subscription for one requester.

/**
 * The results of a subscription, one at a time. `return` ends the subscription and frees its resources, and does not
 * wait for a pending `next`.
 */
export type Results = { next(): Promise<IteratorResult<ExecutionResult, undefined>>; return(): void };

type ResultsOptions = {
  readonly args: ValidatedSubscriptionArgs;
  readonly mask: Mask;
  /** Creates a context for one event. Each event needs its own, because data loaders cache what they load. */
  readonly freshContext: () => object;
  /** Runs the execution of an event when the subscriber has its turn. */
  readonly inTurn: <T>(work: () => MaybePromise<T>) => MaybePromise<T>;
};

/** Creates the results of one subscriber. Each event is executed for this subscriber alone. */
export function createResults(
  source: AsyncIterable<unknown>,
  { args, mask, freshContext, inTurn }: ResultsOptions,
): Results {
  const events = source[Symbol.asyncIterator]();
  let over = false;
  return {
    async next() {
      if (over) return { done: true, value: undefined };
      try {
        const event = await events.next();
        if (event.done) return { done: true, value: undefined };
        const execute = (): MaybePromise<ExecutionResult | null> =>
          over ? null : executeSubscriptionEvent({ ...args, rootValue: event.value, contextValue: freshContext() });
        const result = await inTurn(execute);
        return result === null ? { done: true, value: undefined } : { done: false, value: maskAll(result, mask) };
      } catch (error) {
        over = true;
        return { done: false, value: { errors: [mask(error)] } };
      }
    },
    return() {
      over = true;
      // A source may fail while it closes. The error is ignored, because no subscriber is left to receive it.
      events.return?.().catch(() => {});
    },
  };
}

// Executes a subscription once for several requesters.

/** How a transport writes the results of a subscription that many requesters share. */
export type ResultFrames = {
  /** Encodes a result as text, without its envelope. */
  readonly result: (result: ExecutionResult) => string;
  /** Encodes a result without errors as text, without its envelope. `data` is JSON text. */
  readonly written: (data: string) => string;
  readonly envelope: EventEncoder<unknown>['envelope'];
  /** Returns the last frames of one operation. `result`: is sent before `complete`; null: only `complete` is sent. */
  readonly last: (id: string | null, result: ExecutionResult | null) => string;
};

/** What is the same about a shared operation for every requester. */
type Sharing = {
  readonly number: number;
  readonly node: FieldNode;
  readonly field: GraphQLField<unknown, unknown>;
  readonly share: Share<unknown, unknown>;
  /**
   * The names of the variables that are used outside the field's arguments. `share` sees the other variables, because
   * it receives the arguments.
   */
  readonly besides: readonly string[];
};

type SharedSubscriptionsOptions = {
  readonly mask: Mask;
  /** Creates a context without a requester, because a shared event must not depend on one. */
  readonly anonymousContext: () => object;
  /** Whether the JSON text of events may be written without graphql-js. If false, graphql-js executes every event. */
  readonly fast: boolean;
};

export function createSharedSubscriptions(options: SharedSubscriptionsOptions) {
  const known = new WeakMap<OperationDefinitionNode, Sharing | null>();
  let numbers = 0;
  const sharingOf = (args: ValidatedSubscriptionArgs): Sharing | null => {
    const found = known.get(args.operation);
    if (found !== undefined) return found;
    const sharing = findSharing(args, ++numbers);
    known.set(args.operation, sharing);
    return sharing;
  };
  return {
    /**
     * Authorises the requester and returns the group to join. Null if the operation cannot be shared; then the
     * requester has not been authorised. Rejects with an error if the requester is refused.
     */
    async of(args: ValidatedSubscriptionArgs, frames: ResultFrames): Promise<Joining<unknown> | null> {
      const sharing = sharingOf(args);
      if (!sharing) return null;
      const shared = await authorise(sharing, args);
      const { coerced } = args.variableValues;
      const besides = sharing.besides.map((name) => (name in coerced ? [coerced[name]] : []));
      const key = JSON.stringify([sharing.number, shared.key, besides]);
      return { shared: { ...shared, key }, encoder: () => createEncoder(args, { ...options, frames }) };
    },
  };
}

async function authorise(
  { field, node, share }: Sharing,
  args: ValidatedSubscriptionArgs,
): Promise<SharedSubscription<unknown>> {
  try {
    return await share(getArgumentValues(field, node, args.variableValues, null, true), args.contextValue);
  } catch (error) {
    throw locatedError(error, [node], [(node.alias ?? node.name).value]);
  }
}

/**
 * Creates the encoder of a group's events. `args` come from the requester that opens the group. Of them, only the
 * document and its variables affect the encoded events.
 */
function createEncoder(
  { contextValue: _viewer, ...args }: ValidatedSubscriptionArgs,
  { mask, anonymousContext, fast, frames }: SharedSubscriptionsOptions & { readonly frames: ResultFrames },
): EventEncoder<unknown> {
  const write = fast ? fromSecond(() => createEventWriter(args)) : () => null;
  return {
    encode(live: LiveEvent<unknown>) {
      const written = write(live, anonymousContext());
      if (typeof written === 'string') return frames.written(written);
      const result = executeSubscriptionEvent({ ...args, rootValue: live, contextValue: anonymousContext() });
      if (result instanceof Promise) throw new TypeError('A field of a shareable type was not resolved synchronously.');
      return frames.result(maskAll(result, mask));
    },
    envelope: frames.envelope,
    last: (id, error) => frames.last(id, error === null ? null : { errors: [mask(error)] }),
  };
}

/**
 * Creates the writer at the second event: creating one costs more than it saves for a group that receives a single
 * event.
 */
function fromSecond(make: () => EventWriter | null): EventWriter {
  let heard = false;
  let writer: EventWriter | null | undefined;
  return (event, context) => {
    if (heard && writer === undefined) writer = make();
    heard = true;
    return writer?.(event, context) ?? null;
  };
}

/**
 * Finds how a subscription can be shared. Null if the field has no `share`, or if a part of the document may differ
 * between requesters.
 */
function findSharing(args: ValidatedSubscriptionArgs, number: number): Sharing | null {
  const { schema, operation } = args;
  const [node, ...others] = operation.selectionSet.selections;
  if (node?.kind !== Kind.FIELD || others.length > 0 || node.directives?.length) return null;
  const field = schema.getSubscriptionType()?.getFields()[node.name.value];
  const share = field?.extensions['share'];
  if (!field || !isShare(share)) return null;
  const besides = variablesBeside(args, node);
  return besides && { number, node, field, share, besides };
}

/**
 * Returns the names of the variables that are used outside the field's arguments, sorted. Null if a field of the
 * selection belongs to a type that is not `shareable`, or is itself `perViewer`.
 */
function variablesBeside(
  { schema, document, operation }: ValidatedSubscriptionArgs,
  node: FieldNode,
): readonly string[] | null {
  const fragments = document.definitions.filter(({ kind }) => kind === Kind.FRAGMENT_DEFINITION);
  const alone: DocumentNode = { kind: Kind.DOCUMENT, definitions: [operation, ...fragments] };
  const info = new TypeInfo(schema);
  const names = new Set<string>();
  let alike = true;
  const look = {
    VariableDefinition: () => false,
    Argument: (_: unknown, __: unknown, at: unknown) => (at === node.arguments ? false : undefined),
    Variable: ({ name }: { readonly name: { readonly value: string } }) => void names.add(name.value),
    Field(found: FieldNode) {
      if (found !== node && !isAlike(info)) alike = false;
    },
  };
  visit(alone, visitWithTypeInfo(info, look));
  return alike ? [...names].sort() : null;
}

function isAlike(info: TypeInfo): boolean {
  const field = info.getFieldDef();
  if (field?.name === '__typename') return true;
  return info.getParentType()?.extensions['shareable'] === true && field?.extensions['perViewer'] !== true;
}

function isShare(value: unknown): value is Share<unknown, unknown> {
  return typeof value === 'function';
}
