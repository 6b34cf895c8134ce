/** Defines how subscriptions declare that several requesters may share one execution. */
import type { SharedSubscription } from '../../core/live.ts';
import type { MaybePromise } from '../../core/maybe-promise.ts';

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
export type Share<Args, Context> = (args: Args, context: Context) => MaybePromise<SharedSubscription<unknown>>;
