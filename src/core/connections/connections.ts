/** Lists the connections that a requester may see, reports their changes, and counts how often clients reconnect. */
import { requireAdmin, type Requester } from '../auth/principal.ts';
import { knownInSight, readSight, seenActions } from '../auth/sight.ts';
import type { ConnectionEvent } from '../backend.ts';
import type { Deps } from '../deps.ts';
import { invalid } from '../errors.ts';
import { id, type ClientKey } from '../ids.ts';
import { RECONNECT_CLIENTS, TOP_CLIENTS_MAX } from '../limits.ts';
import { createFeed, type Subscription } from '../live.ts';
import { both, thenDo, type MaybePromise } from '../maybe-promise.ts';
import { completenessOf, observed } from '../completeness.ts';
import { listingOf, type Listing, type PageArgs } from '../cursors.ts';
import type { DocumentReading } from '../document-reading.ts';
import { silentSources, withGaps } from '../silent-nodes.ts';
import { SCAN_BUDGET, type FirstRows, type Summary } from '../page.ts';
import { holderOf } from '../shares/holder.ts';
import { checkFilter, cursorFilter, cursorFilterOfUser, type ConnectionQuery } from './connection-filter.ts';
import type { Leading } from './connection-store.ts';
import type { Connection } from './connection.ts';
import type { ClientMeasure, ClientSample, FlappingSample } from './reconnects.ts';
import { seenConnection } from './seen-clients.ts';

export type Connections = ReturnType<typeof createConnections>;

/** Creates the API for reading connections. */
export function createConnections(deps: Deps) {
  const { backend, clock, cursors, readTurns } = deps;
  const store = backend.connections;
  const listing = (requester: Requester, filter: object): Listing => listingOf('connections', requester, filter);
  const many = (requester: Requester, keys: readonly ClientKey[]): MaybePromise<readonly (Connection | null)[]> => {
    const sight = seenActions(requester);
    const rows = store.get(keys);
    if (sight.actions === undefined) return rows;
    return thenDo(rows, (found) => found.map((row) => row && seenConnection(sight, row)));
  };
  return {
    /** Lists connections. Calls with the same `reading` share what they read from the store. */
    async list(requester: Requester, query: ConnectionQuery, page: PageArgs, reading?: DocumentReading) {
      const checked = checkFilter(requester, query);
      const onSilentNodes = query.onSilentNodes === true;
      const listed = listing(requester, { ...cursorFilter(checked), ...(onSilentNodes && { onSilentNodes }) });
      const request = cursors.request(listed, page);
      const filter = onSilentNodes ? { ...checked, nodeIds: await backend.nodes.silent() } : checked;
      const silent = silentSources(deps, 'connections', filter.nodeId);
      const found = readTurns.run(holderOf(requester), () => store.list(filter, request, reading));
      const scan = withGaps(...(await Promise.all([found, silent])));
      const listedPage = cursors.page(listed, scan, ['connections', clock.now()], (row) => row);
      const { seen: actions } = filter;
      if (actions === undefined) return listedPage;
      return { ...listedPage, nodes: listedPage.nodes.map((row) => seenConnection({ actions }, row) ?? row) };
    },
    /** Returns a connection. Null if there is no such connection, or if the requester may not see it. */
    async get(requester: Requester, { userId, clientId }: ClientKey): Promise<Connection | null> {
      const known = knownInSight(requester, userId);
      if (known === null) return null;
      const [connection] = await many(requester, [{ userId: known, clientId: id('client_id', clientId) }]);
      return connection ?? null;
    },
    /**
     * Returns one connection per key, in order; null if there is no row, or if the requester's token may not see it.
     * Reads all keys together. For nested fields, after the parent was authorized.
     */
    many,
    /** Returns how often each client reconnected in the last hour. Reads all clients together. For nested fields. */
    reconnects: (keys: readonly ClientKey[]) => backend.reconnects.counts(keys),
    /** Lists the clients that reconnected most in the last hour. Admin only. `first`: 1 to TOP_CLIENTS_MAX. */
    async flapping(requester: Requester, first: number): Promise<FlappingSample> {
      checkTop(requester, first);
      return sampleOf(deps, await backend.reconnects.top(first), RECONNECT_CLIENTS);
    },
    /** Lists the clients with the highest values of a measure. Admin only. `first`: 1 to TOP_CLIENTS_MAX. */
    async top(requester: Requester, by: ClientMeasure, first: number): Promise<ClientSample> {
      checkTop(requester, first);
      if (by === 'backlog') return sampleOf(deps, await backend.inspector.busiest(first), SCAN_BUDGET);
      if (by === 'reconnects') return sampleOf(deps, await backend.reconnects.top(first), RECONNECT_CLIENTS);
      return sampleOf(deps, await store.quietest(first), null);
    },
    /**
     * Returns for each user the page that `list` gives for `{ userId }`. For nested fields, after the parent was
     * authorized. `requester` is only used for the cursors.
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
     * Subscribes to future changes of connections. `userId`: the user whose connections are reported; null: the
     * requester's own, or for an administrator those of all users.
     */
    events(requester: Requester, userId: string | null): Subscription<ConnectionEvent> {
      const sight = readSight(requester, userId);
      const feed = createFeed<ConnectionEvent>(() => cancel());
      let lost = 0;
      const cancel = backend.bus.subscribe(
        'connections',
        (event) => {
          if (sight.userId !== null && event.connection.userId !== sight.userId) return;
          const connection = seenConnection(sight, event.connection);
          if (connection === null) return;
          feed.push({ ...event, connection }, lost);
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

/** Builds the answer from these clients. `limit`: the bound that was reached if not all clients were compared. */
async function sampleOf<Row extends ClientKey>(
  deps: Deps,
  { rows, complete, gaps = [] }: Leading<Row>,
  limit: number | null,
) {
  const own = observed('connections', deps.clock.now(), rows.length, complete ? null : limit);
  const silent = await silentSources(deps, 'connections');
  return { items: rows, complete, completeness: completenessOf([own, ...gaps, ...silent]) };
}

/**
 * Counts the opening of a link. If this fails, the error is only logged, because a link must not fail because of a
 * counter.
 */
export function noteOpened({ backend, log }: Deps, client: ClientKey, again: boolean): void {
  const noted = backend.reconnects.note(client, again);
  if (noted instanceof Promise)
    noted.catch((error: unknown) => log.debug({ err: error }, 'a reconnect was not counted'));
}
