/** Reads the connections that a requester may see, their changes, and how often clients reconnect. */
import { knownUser, readScope, requireAdmin, type Requester } from '../auth/principal.ts';
import type { ConnectionEvent } from '../backend.ts';
import type { Deps } from '../deps.ts';
import { invalid } from '../errors.ts';
import { id, type ClientKey } from '../ids.ts';
import { RECONNECT_CLIENTS, TOP_CLIENTS_MAX } from '../limits.ts';
import { createFeed, type Subscription } from '../live.ts';
import { both } from '../maybe-promise.ts';
import {
  SCAN_BUDGET,
  completenessOf,
  listingOf,
  observed,
  silentSources,
  withGaps,
  type FirstRows,
  type Listing,
  type PageArgs,
  type Summary,
} from '../page.ts';
import type { DocumentReading } from '../reading.ts';
import { holderOf } from '../shares/shares.ts';
import {
  checkFilter,
  cursorFilter,
  cursorFilterOfUser,
  type ClientMeasure,
  type ClientSample,
  type Connection,
  type ConnectionQuery,
  type FlappingSample,
} from './connection.ts';

export type Connections = ReturnType<typeof createConnections>;

/** Creates the API for reading connections. */
export function createConnections(deps: Deps) {
  const { backend, clock, cursors, readTurns } = deps;
  const store = backend.connections;
  const listing = (requester: Requester, filter: object): Listing => listingOf('connections', requester, filter);
  return {
    /** Lists connections. Calls with the same `reading` share what they read of the store. */
    async list(requester: Requester, query: ConnectionQuery, page: PageArgs, reading?: DocumentReading) {
      const checked = checkFilter(requester, query);
      const onSilentNodes = query.onSilentNodes === true;
      const listed = listing(requester, { ...cursorFilter(checked), ...(onSilentNodes && { onSilentNodes }) });
      const request = cursors.request(listed, page);
      const filter = onSilentNodes ? { ...checked, nodeIds: await backend.nodes.silent() } : checked;
      const silent = silentSources(deps, 'connections', filter.nodeId);
      const found = readTurns.run(holderOf(requester), () => store.list(filter, request, reading));
      const scan = withGaps(...(await Promise.all([found, silent])));
      return cursors.page(listed, scan, ['connections', clock.now()], (row) => row);
    },
    /** Returns a connection. Null if there is no such connection, or if it belongs to another user. */
    async get(requester: Requester, { userId, clientId }: ClientKey): Promise<Connection | null> {
      const known = knownUser(requester, userId);
      if (known === null) return null;
      const [connection] = await store.get([{ userId: known, clientId: id('client_id', clientId) }]);
      return connection ?? null;
    },
    /**
     * Returns one connection per key, in order; null where there is no row. Reads all keys together. For nested fields,
     * after the parent was authorized.
     */
    many: (keys: readonly ClientKey[]) => store.get(keys),
    /** Returns how often each client reconnected in the last hour. Reads all clients together. For nested fields. */
    reconnects: (keys: readonly ClientKey[]) => backend.reconnects.counts(keys),
    /** Lists the clients that reconnected most in the last hour. Admin only. `first`: 1 to TOP_CLIENTS_MAX. */
    async flapping(requester: Requester, first: number): Promise<FlappingSample> {
      checkTop(requester, first);
      return sampleOf(deps, await backend.reconnects.top(first), RECONNECT_CLIENTS);
    },
    /** Lists the clients that lead by a measure. Admin only. `first`: 1 to TOP_CLIENTS_MAX. */
    async top(requester: Requester, by: ClientMeasure, first: number): Promise<ClientSample> {
      checkTop(requester, first);
      if (by === 'backlog') return sampleOf(deps, await backend.inspector.busiest(first), SCAN_BUDGET);
      if (by === 'reconnects') return sampleOf(deps, await backend.reconnects.top(first), RECONNECT_CLIENTS);
      return sampleOf(deps, { rows: await store.quietest(first), complete: true }, null);
    },
    /**
     * Returns for each user the page that `list` gives for `{ userId }`. For nested fields, after the parent was
     * authorized. `requester` only binds the cursors.
     */
    ofUsers(requester: Requester, userIds: readonly string[], first: number) {
      const pageOf = (userId: string, found: FirstRows<Connection>): Summary<Connection> => {
        const listed = listing(requester, cursorFilterOfUser(userId));
        return cursors.firstPage(listed, found, ['connections', clock.now()], (row) => [row.userId, row.clientId]);
      };
      return both(store.ofUsers(userIds, first), silentSources(deps, 'connections'), (found, gaps) =>
        found.map((rows, i) => pageOf(userIds[i] ?? '', gaps.length === 0 ? rows : { ...rows, gaps })),
      );
    },
    /**
     * Subscribes to future changes of the connections of one user. `userId` null: the requester's own connections; for
     * an administrator, those of all users.
     */
    events(requester: Requester, userId: string | null): Subscription<ConnectionEvent> {
      const scope = readScope(requester, userId);
      const feed = createFeed<ConnectionEvent>(() => cancel());
      let lost = 0;
      const cancel = backend.bus.subscribe(
        'connections',
        (event) => {
          if (scope !== null && event.connection.userId !== scope) return;
          feed.push(event, lost);
          lost = 0;
        },
        () => (lost = 1),
      );
      return feed.subscription;
    },
  };
}

function checkTop(requester: Requester, first: number): void {
  requireAdmin(requester);
  if (!Number.isInteger(first) || first < 1 || first > TOP_CLIENTS_MAX)
    invalid('first', `expected 1 to ${TOP_CLIENTS_MAX}`);
}

type Found<Row> = { readonly rows: readonly Row[]; readonly complete: boolean };

/** Builds the sample of these clients. `limit`: the bound that was reached if they are not complete. */
async function sampleOf<Row extends ClientKey>(deps: Deps, { rows, complete }: Found<Row>, limit: number | null) {
  const own = observed('connections', deps.clock.now(), rows.length, complete ? null : limit);
  const silent = await silentSources(deps, 'connections');
  return { items: rows, complete, completeness: completenessOf([own, ...silent]) };
}

/** Notes that a link opened. An error is only logged, because a link must not fail for the sake of a count. */
export function noteOpened({ backend, log }: Deps, client: ClientKey, again: boolean): void {
  const noted = backend.reconnects.note(client, again);
  if (noted instanceof Promise)
    noted.catch((error: unknown) => log.debug({ err: error }, 'a reconnect was not counted'));
}
