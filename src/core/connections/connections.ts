/** Reads the connections that a requester may see. */
import {
  knownUser,
  readScope,
  requireAdmin,
  requirePrincipal,
  subjectOf,
  type Principal,
  type Requester,
} from '../auth/principal.ts';
import type { ConnectionEvent } from '../backend.ts';
import type { Deps } from '../deps.ts';
import { invalid } from '../errors.ts';
import { id, type ClientKey } from '../ids.ts';
import { FLAPPING_MAX, RECONNECT_CLIENTS } from '../limits.ts';
import { createFeed, type Subscription } from '../live.ts';
import { both, type MaybePromise } from '../maybe-promise.ts';
import { completenessOf, type Listing, type ObservedSource, type Page, type PageArgs, type Summary } from '../page.ts';
import type { DocumentReading } from '../reading.ts';
import { holderOf } from '../shares/shares.ts';
import { silentSources, withGaps } from '../silence.ts';
import {
  checkFilter,
  cursorFilter,
  cursorFilterOfUser,
  type Connection,
  type ConnectionQuery,
  type FlappingSample,
} from './connection.ts';

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

// The interface for reading connections. Types only.

export interface Connections {
  /** Lists connections. Calls with the same `reading` share what they read of the store. */
  list(
    requester: Requester,
    query: ConnectionQuery,
    page: PageArgs,
    reading?: DocumentReading,
  ): Promise<Page<Connection>>;
  /** Returns a connection. Null if there is no such connection, or if it belongs to another user. */
  get(requester: Requester, key: ClientKey): Promise<Connection | null>;
  /**
   * Returns one connection per key, in order; null where there is no row. One round trip. For nested fields, after the
   * parent was authorized.
   */
  many(keys: readonly ClientKey[]): MaybePromise<readonly (Connection | null)[]>;
  /**
   * Returns for each user the page that `list` gives for `{ userId }`. For nested fields, after the parent was
   * authorized. `requester` only binds the cursors.
   */
  ofUsers(
    requester: Requester,
    userIds: readonly string[],
    first: number,
  ): MaybePromise<readonly Summary<Connection>[]>;
  /** Returns how often each client reconnected in the last hour. One round trip. For nested fields. */
  reconnects(keys: readonly ClientKey[]): MaybePromise<readonly number[]>;
  /** Lists the clients that reconnected most in the last hour. Admin only. */
  flapping(requester: Requester, first: number): Promise<FlappingSample>;
  /**
   * Subscribes to future changes of the connections of one user. `userId` null: of all users; for administrators only.
   */
  events(requester: Requester, userId: string | null): Subscription<ConnectionEvent>;
}

// Lists the clients that reconnect most, and notes each link that opens.

/** Lists the clients that reconnected most in the last hour. Administrators only. `first`: 1 to FLAPPING_MAX. */
async function flapping(deps: Deps, requester: Principal | null, first: number): Promise<FlappingSample> {
  requireAdmin(requester);
  if (!Number.isInteger(first) || first < 1 || first > FLAPPING_MAX) invalid('first', `expected 1 to ${FLAPPING_MAX}`);
  const [{ rows, complete }, silent] = await Promise.all([
    deps.backend.reconnects.top(first),
    silentSources(deps, 'connections'),
  ]);
  const bound = complete
    ? { limit: null, reason: null }
    : ({ limit: RECONNECT_CLIENTS, reason: 'limit_reached' } as const);
  const own = { source: 'connections', nodeId: null, complete, observed: rows.length, ...bound } as const;
  return { items: rows, complete, completeness: completenessOf([{ ...own, asOf: deps.clock.now() }, ...silent]) };
}

/** Notes that a link opened. An error is only logged, because a link must not fail for the sake of a count. */
export function noteOpened({ backend, log }: Deps, client: ClientKey, again: boolean): void {
  const noted = backend.reconnects.note(client, again);
  if (noted instanceof Promise)
    noted.catch((error: unknown) => log.debug({ err: error }, 'a reconnect was not counted'));
}
