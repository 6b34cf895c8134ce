/** Declares which subscriptions requesters may share, and makes each event forget what an earlier one has loaded. */
import type { SharedSubscription, LiveEvent } from '../../core/live.ts';
import type { MaybePromise } from '../../core/maybe-promise.ts';
import type { Context } from './context.ts';

/**
 * The extension `share` of a subscription field, which allows many requesters to receive events from one execution. It
 * must authorise each requester as the field's `subscribe` does, and throw the same errors. Each event is then executed
 * once, with a context that has no requester.
 *
 * Only for fields that send nothing but live events. A field that first sends the current state must not have `share`,
 * because a requester who joins later would miss that state. The field's types must have the extension `shareable`,
 * which means that each of their fields is resolved synchronously from the event alone. A field for which this is not
 * true must have the extension `perViewer`.
 */
export type Share<Args, By = Context> = (args: Args, context: By) => MaybePromise<SharedSubscription<unknown>>;

/**
 * Resolves one event of a subscription. Makes the context forget what was loaded for an earlier event, so that old
 * values are not shown.
 */
export function fresh<T>(live: LiveEvent<T>, _args: unknown, context: Context): LiveEvent<T> {
  context.forget();
  return live;
}
