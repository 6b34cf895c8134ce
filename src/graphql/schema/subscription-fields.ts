/** What subscription fields declare and do: whether requesters share one execution, and what each event reads anew. */
import type { SharedSubscription, LiveEvent } from '../../core/live.ts';
import type { MaybePromise } from '../../core/maybe-promise.ts';
import type { Context } from './context.ts';

/**
 * The extension `share` of a subscription field whose events many requesters may receive from one execution. It
 * authorises each requester as `subscribe` does, and throws what `subscribe` would throw. Each event is then executed
 * once, with a context that has no requester.
 *
 * Only for fields that carry live events alone: a field that begins with the current state has no `share`, because a
 * requester who joins later would miss that state. The types of the field carry the extension `shareable`: each of
 * their fields is resolved synchronously from the event alone. A field to which this does not apply carries
 * `perViewer`.
 */
export type Share<Args, By = Context> = (args: Args, context: By) => MaybePromise<SharedSubscription<unknown>>;

/** Resolves one event of a subscription. What was loaded for an earlier event is forgotten, so that it is not shown. */
export function fresh<T>(live: LiveEvent<T>, _args: unknown, context: Context): LiveEvent<T> {
  context.forget();
  return live;
}
