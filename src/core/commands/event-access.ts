/** Decides who may listen to command events, and which ones each listener gets. */
import type { Requester } from '../auth/principal.ts';
import { readSight } from '../auth/sight.ts';
import type { GivenFilter } from '../cursors.ts';
import type { Deps } from '../deps.ts';
import { id, name } from '../ids.ts';
import type { Lifetime, SharedSubscription } from '../live.ts';
import type { Cancel } from '../ports.ts';
import { holderOf } from '../shares/holder.ts';
import { checkOutcomes } from './command-filter.ts';
import type { CommandEvent, CommandEventFilter } from './command-event.ts';

export type CommandEventQuery = GivenFilter<Omit<CommandEventFilter, 'seen'>>;

/** A lifetime that never ends. None is needed here, because the transport ends the streams of an expired token. */
const AS_LONG_AS_TOKEN: Lifetime = { endWith() {}, close() {} };

/**
 * Returns the feed of command events that match a query: of all users for an administrator, and of its own clients for
 * a user. Throws `invalid_argument` for an invalid member and `not_found` for another user. Listening throws what
 * `CommandEvents.listen` throws.
 */
export function commandEvents(
  { events, shares }: Deps,
  requester: Requester,
  query: CommandEventQuery,
): SharedSubscription<CommandEvent> {
  const { clientId, action, clientType = null, outcomes } = query;
  const { userId, actions } = readSight(requester, query.userId);
  const filter: CommandEventFilter = {
    userId,
    ...(actions && { seen: actions }),
    clientId: clientId == null ? null : id('client_id', clientId),
    action: action == null ? null : name('action', action),
    clientType,
    outcomes: outcomes == null ? null : checkOutcomes(outcomes),
  };
  const holdings = shares.of(holderOf(requester));
  const listen = (push: (event: CommandEvent) => void): Cancel => events.listen(filter, push, holdings);
  return { key: events.keyOf(filter), listen, lifetime: AS_LONG_AS_TOKEN };
}
