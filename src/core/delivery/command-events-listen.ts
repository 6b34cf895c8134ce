/** Decides who may listen to the events of commands, and to which of them. */
import { readScope, type Principal } from '../auth/principal.ts';
import type { Cancel } from '../clock.ts';
import type { Deps } from '../deps.ts';
import { invalid } from '../errors.ts';
import { id, name } from '../ids.ts';
import type { Lifetime, SharedSubscription } from '../live.ts';
import { holderOf } from '../shares/holders.ts';
import type { Outcome } from './command.ts';
import type { CommandEvent, CommandEventFilter } from './command-event.ts';

/** A filter of events as a request gives it. Members that are absent or null match every event. */
export type CommandEventQuery = { readonly [Name in keyof CommandEventFilter]?: CommandEventFilter[Name] | undefined };

/** A lifetime that never ends by itself. The transport ends the streams of an expired token. */
const AS_LONG_AS_TOKEN: Lifetime = { endWith() {}, close() {} };

/**
 * Returns the feed of events of commands that match a query: of all users for an administrator, of its own clients for
 * a user. Throws `invalid_argument` for an invalid member, `not_found` for a foreign user, and on `listen` as
 * `CommandEvents.listen`.
 */
export function commandEvents(
  { events, shares }: Deps,
  requester: Principal | null,
  query: CommandEventQuery,
): SharedSubscription<CommandEvent> {
  const { clientId, action, clientType = null, outcomes } = query;
  const filter: CommandEventFilter = {
    userId: readScope(requester, query.userId),
    clientId: clientId == null ? null : id('client_id', clientId),
    action: action == null ? null : name('action', action),
    clientType,
    outcomes: outcomes == null ? null : checkOutcomes(outcomes),
  };
  const holdings = shares.of(holderOf(requester));
  const listen = (push: (event: CommandEvent) => void): Cancel => events.listen(filter, push, holdings);
  return { key: events.keyOf(filter), listen, lifetime: AS_LONG_AS_TOKEN };
}

/** Returns each outcome once and in a fixed order, so that equal filters share one feed. */
function checkOutcomes(outcomes: readonly Outcome[]): readonly Outcome[] {
  return outcomes.length === 0 ? invalid('outcomes', 'expected at least one') : [...new Set(outcomes)].sort();
}
