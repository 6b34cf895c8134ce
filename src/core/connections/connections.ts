/** Reads the connections that a requester may see. */
import { knownUser, readScope, requirePrincipal, subjectOf } from '../auth/principal.ts';
import type { ConnectionEvent } from '../bus.ts';
import type { Connections, Summary, Requester } from '../core.ts';
import type { Listing } from '../cursor.ts';
import type { Deps } from '../deps.ts';
import { id } from '../ids.ts';
import { createFeed } from '../live.ts';
import { both } from '../maybe-promise.ts';
import type { ObservedSource } from '../page.ts';
import { holderOf } from '../shares/holders.ts';
import { silentSources, withGaps } from '../silence.ts';
import type { Connection } from './connection.ts';
import { flapping } from './flapping.ts';
import { checkFilter, cursorFilter, cursorFilterOfUser } from './filter.ts';

/** Creates the API of connections. */
export function createConnections(deps: Deps): Connections {
  const { backend, clock, cursors, readTurns } = deps;
  const store = backend.connections;
  return {
    async list(requester, query, page, reading) {
      const filter = checkFilter(requester, query);
      const listing = listingOf(requester, cursorFilter(filter));
      const request = cursors.request(listing, page);
      const silent = silentSources(deps, 'connections', filter.nodeId);
      const found = readTurns.run(holderOf(requester), () => store.list(filter, request, reading));
      const scan = withGaps(...(await Promise.all([found, silent])));
      return cursors.page(listing, scan, sourceNow(clock.now()), (row) => row);
    },
    async get(requester, { userId, clientId }) {
      const known = knownUser(requester, userId);
      if (known === null) return null;
      const [connection] = await store.get([{ userId: known, clientId: id('client_id', clientId) }]);
      return connection ?? null;
    },
    many: (keys) => store.get(keys),
    reconnects: (keys) => backend.reconnects.counts(keys),
    flapping: (requester, first) => flapping(deps, requester, first),
    ofUsers(requester, userIds, first) {
      type Found = { readonly total: number; readonly rows: readonly Connection[] };
      const pageOf = (userId: string, found: Found, gaps: readonly ObservedSource[]): Summary<Connection> => {
        const listing = listingOf(requester, cursorFilterOfUser(userId));
        const seen = gaps.length === 0 ? found : { ...found, gaps };
        return cursors.firstPage(listing, seen, sourceNow(clock.now()), (row) => [row.userId, row.clientId]);
      };
      return both(store.ofUsers(userIds, first), silentSources(deps, 'connections'), (found, silent) =>
        found.map((summary, i) => pageOf(userIds[i] ?? '', summary, silent)),
      );
    },
    events(requester, userId) {
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

function listingOf(requester: Requester, filter: object): Listing {
  return { name: 'connections', filter, requester: subjectOf(requirePrincipal(requester)) };
}

function sourceNow(asOf: number): Pick<ObservedSource, 'source' | 'nodeId' | 'asOf'> {
  return { source: 'connections', nodeId: null, asOf };
}
