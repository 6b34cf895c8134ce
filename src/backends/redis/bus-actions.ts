/**
 * Leaves large lists of actions out of bus messages, and adds them again at the receiver, because every node receives
 * every event of a connection and most nodes have no listener for it.
 */
import type { ConnectionEvent } from '../../core/backend.ts';
import type { Connection } from '../../core/connections/connection.ts';
import type { ClientKey } from '../../core/ids.ts';
import { advertisedChars, revisionOf } from './connections-actions.ts';
import type { Store } from './store.ts';

/** The most characters that the JSON of a connection's actions may have in a message. */
const CARRIED = 16 * 1024;

/**
 * An event as it is sent. If `revision` is given, the list of actions was left out; this is the revision of the list.
 */
type SentEvent = ConnectionEvent & { readonly revision?: string };

/** Returns the event in the form that is sent: with an empty list of actions if the list is large. */
export function lightEvent(store: Store, event: ConnectionEvent): SentEvent {
  const { actions } = event.connection;
  if (advertisedChars(store, actions) <= CARRIED) return event;
  return { ...event, connection: { ...event.connection, actions: [] }, revision: revisionOf(store, actions) };
}

type WholeEventsOptions = {
  readonly store: Store;
  /** Reads the current row of a client; null if there is none. */
  readonly read: (key: ClientKey) => Promise<Connection | null>;
  readonly deliver: (event: ConnectionEvent) => void;
};

/**
 * Returns a function that takes arriving events, and delivers them in order with their actions. It reads actions that
 * were left out. It drops an event if its actions cannot be read, which has three possible causes: the client is gone;
 * the client has advertised other actions since, so a later event follows; or Redis is unavailable.
 */
export function createWholeEvents({ store, read, deliver }: WholeEventsOptions): (event: SentEvent) => void {
  let last: Promise<void> | null = null;
  const complete = async ({ revision, ...event }: SentEvent): Promise<void> => {
    if (revision === undefined) return deliver(event);
    const row = await read(event.connection);
    if (row === null || revisionOf(store, row.actions) !== revision) return;
    deliver({ ...event, connection: { ...event.connection, actions: row.actions } });
  };
  return (event) => {
    if (last === null && event.revision === undefined) return deliver(event);
    const done = (last ?? Promise.resolve()).then(() => complete(event)).catch(() => {});
    last = done;
    void done.then(() => {
      if (last === done) last = null;
    });
  };
}
