/** Lists users, which exist only through their connections and streams. */
import { knownUser, requireAdmin, requirePrincipal, subjectOf, type Requester } from '../auth/principal.ts';
import type { Deps } from '../deps.ts';
import { both, thenDo, type MaybePromise } from '../maybe-promise.ts';
import {
  comparePositions,
  completenessOf,
  type Completeness,
  type ObservedSource,
  type Page,
  type PageArgs,
  type PageRequest,
  type Position,
  type Scan,
} from '../page.ts';
import { silentSources, withGaps } from '../silence.ts';

/** Creates the API of users: those that have a connection or a stream. */
export function createUsers(deps: Deps): Users {
  const { backend, clock, cursors } = deps;
  const { connections, history } = backend;
  const many = (requester: Requester, given: readonly string[]): MaybePromise<readonly (UserView | null)[]> => {
    const known = given.map((user) => knownUser(requester, user));
    const ids = [...new Set(known.filter((userId) => userId !== null))];
    if (ids.length === 0) return known.map(() => null);
    const asksForItself = requirePrincipal(requester).kind === 'user';
    const found = both(connections.ofUsers(ids, 1), history.ofUsers(ids, 1), (byConnection, byStream) =>
      ids.map((userId, i) => ({ userId, live: byConnection[i]?.total ?? 0, streams: byStream[i] })),
    );
    return both(found, silentSources(deps, 'connections'), (users, silent) => {
      const views = users.map(({ userId, live, streams }): UserView | null => {
        const user = { userId, connections: live, streams: streams?.total ?? 0 };
        const gaps = streams?.gaps ?? [];
        const observed = user.connections > 0 || user.streams > 0 || gaps.length > 0;
        return observed || asksForItself ? viewOf(user, [...gaps, ...silent], clock.now()) : null;
      });
      return known.map((userId) => (userId === null ? null : (views[ids.indexOf(userId)] ?? null)));
    });
  };
  return {
    async list(requester, args) {
      const listing = { name: 'users', filter: null, requester: subjectOf(requireAdmin(requester)) };
      const request = cursors.request(listing, args);
      const silent = silentSources(deps, 'connections');
      const [byConnection, byStream, late] = await Promise.all([
        connections.users(request),
        history.users(request),
        silent,
      ]);
      const asOf = clock.now();
      const scan = withGaps(merge(request, byConnection, byStream), late);
      const page = cursors.page(listing, scan, { source: 'connections', nodeId: null, asOf }, (user) =>
        viewOf(user, scan.gaps, asOf),
      );
      return { ...page, completeness: completenessOf(sourcesOf(totals(page.nodes), scan.gaps, asOf)) };
    },
    get: (requester, given) => thenDo(many(requester, [given]), ([user = null]) => user),
    many,
  };
}

type Counts = { readonly connections: number; readonly streams: number };
type UserRow = Counts & { readonly userId: string };
type Counted = { readonly userId: string; readonly count: number };

/**
 * Merges two pages into one. A page that is not the last of its source says nothing about users after its end, so the
 * merge stops at the nearer of the two ends. Before that point, a user who is not in a source's page is not in that
 * source.
 */
function merge(page: PageRequest, byConnection: Scan<Counted>, byStream: Scan<Counted>): Scan<UserRow> {
  const horizon = nearest(byConnection.next, byStream.next);
  const users = new Map<string, UserRow>();
  for (const { row, position } of [...byConnection.rows, ...byStream.rows]) {
    const seen = horizon === null || comparePositions(position, horizon) <= 0;
    if (seen) users.set(row.userId, { userId: row.userId, connections: 0, streams: 0 });
  }
  add(users, byConnection, (user, connections) => ({ ...user, connections }));
  add(users, byStream, (user, streams) => ({ ...user, streams }));
  const merged = [...users.values()]
    .map((row) => ({ row, position: [row.userId] }))
    .sort((a, b) => comparePositions(a.position, b.position));
  const rows = merged.slice(0, page.first);
  const next = merged.length > rows.length ? (rows.at(-1)?.position ?? null) : horizon;
  return { rows, next, gaps: [...byConnection.gaps, ...byStream.gaps] };
}

function add(users: Map<string, UserRow>, scan: Scan<Counted>, put: (user: UserRow, count: number) => UserRow): void {
  for (const { row } of scan.rows) {
    const user = users.get(row.userId);
    if (user) users.set(row.userId, put(user, row.count));
  }
}

function nearest(a: Position | null, b: Position | null): Position | null {
  if (a === null || b === null) return a ?? b;
  return comparePositions(a, b) <= 0 ? a : b;
}

function viewOf({ userId, ...counts }: UserRow, gaps: readonly ObservedSource[], asOf: number): UserView {
  return {
    id: userId,
    connectionCount: counts.connections,
    streamCount: counts.streams,
    completeness: completenessOf(sourcesOf(counts, gaps, asOf)),
  };
}

function totals(users: readonly UserView[]): Counts {
  return {
    connections: users.reduce((sum, { connectionCount }) => sum + connectionCount, 0),
    streams: users.reduce((sum, { streamCount }) => sum + streamCount, 0),
  };
}

/**
 * Returns one source for connections and one for streams. The stores count all rows, so a count is incomplete only if
 * its source has a gap. Each silent node is one more source.
 */
function sourcesOf(counts: Counts, gaps: readonly ObservedSource[], asOf: number): ObservedSource[] {
  const own = (['connections', 'streams'] as const).map((source) => {
    const gap = gaps.find((one) => one.source === source && one.nodeId === null);
    const whole = { source, nodeId: null, complete: true, limit: null, reason: null, asOf };
    return { ...(gap ?? whole), observed: counts[source] };
  });
  return [...own, ...gaps.filter(({ nodeId }) => nodeId !== null)];
}

// The interface of users. Types only.

export type UserView = {
  readonly id: string;
  readonly connectionCount: number;
  readonly streamCount: number;
  readonly completeness: Completeness;
};

export interface Users {
  /** Lists the users that have a connection or a stream, in order of user id. Admin only. */
  list(requester: Requester, page: PageArgs): Promise<Page<UserView>>;
  /**
   * Returns the summary of a user, for an administrator or the user itself. Null if the requester is another user. For
   * an administrator null also means that nothing is known of the user.
   */
  get(requester: Requester, userId: string): MaybePromise<UserView | null>;
  /** Does the same as `get`, for several users, in order. One round trip. */
  many(requester: Requester, userIds: readonly string[]): MaybePromise<readonly (UserView | null)[]>;
}
