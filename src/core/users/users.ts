/** Lists and describes users. A user exists through its connections and streams only. */
import { knownUser } from '../auth/sight.ts';
import { requireAdmin, requirePrincipal, type Requester } from '../auth/principal.ts';
import type { Deps } from '../deps.ts';
import { filterText } from '../ids.ts';
import { PAGE_MAX } from '../limits.ts';
import { both, thenDo, type MaybePromise } from '../maybe-promise.ts';
import { completenessOf, observed, type Completeness, type ObservedSource } from '../completeness.ts';
import { listingOf, type PageArgs } from '../cursors.ts';
import { silentSources, withGaps } from '../silent-nodes.ts';
import { comparePositions, nearerEnd, type Page, type PageRequest, type Scan } from '../page.ts';

export type Users = ReturnType<typeof createUsers>;

const NONE: readonly ObservedSource[] = [];

/** Creates the API of users: those that have a connection or a stream. */
export function createUsers(deps: Deps) {
  const { backend, clock, cursors } = deps;
  const { connections, history } = backend;
  /** Returns the views of users that the requester may see, in the order of the ids. */
  const read = (requester: Requester, ids: readonly string[]): MaybePromise<readonly (UserView | null)[]> => {
    const asksForItself = requirePrincipal(requester).kind === 'user';
    const view = (
      row: UserRow,
      gaps: readonly ObservedSource[],
      silent: readonly ObservedSource[],
    ): UserView | null => {
      const isObserved = row.connections > 0 || row.streams > 0 || gaps.length > 0;
      if (!isObserved && !asksForItself) return null;
      return viewOf(row, silent.length === 0 ? gaps : [...gaps, ...silent], clock.now());
    };
    const found = both(connections.ofUsers(ids, 1), history.ofUsers(ids, 1), (byConnection, byStream) =>
      ids.map((userId, i) => {
        const { total: streams = 0, gaps = NONE } = byStream[i] ?? {};
        return { row: { userId, connections: byConnection[i]?.total ?? 0, streams }, gaps };
      }),
    );
    return both(found, silentSources(deps, 'connections'), (rows, silent) =>
      rows.map(({ row, gaps }) => view(row, gaps, silent)),
    );
  };
  return {
    /**
     * Lists the users that have a connection or a stream, ordered by user id. `text`: only users whose id contains this
     * text; a page may then be empty although more pages follow. Admin only.
     */
    async list(requester: Requester, args: PageArgs, text: string | null = null): Promise<Page<UserView>> {
      const part = text === null ? null : filterText(text);
      const listing = listingOf('users', requireAdmin(requester), part);
      const asked = cursors.request(listing, args);
      const request = part === null ? asked : { ...asked, first: PAGE_MAX };
      const silent = silentSources(deps, 'connections');
      const stores = [connections.users(request), history.users(request), silent] as const;
      const [byConnection, byStream, late] = await Promise.all(stores);
      const asOf = clock.now();
      const scan = withGaps(containing(part, asked.first, merge(request, byConnection, byStream)), late);
      const page = cursors.page(listing, scan, ['connections', asOf], (user) => viewOf(user, scan.gaps, asOf));
      return { ...page, completeness: completenessOf(sourcesOf(totals(page.nodes), scan.gaps, asOf)) };
    },
    /**
     * Returns the view of a user, for an administrator or the user itself. Null if the requester is another user. For
     * an administrator, null also means that nothing is known of the user.
     */
    get(requester: Requester, given: string): MaybePromise<UserView | null> {
      const userId = knownUser(requester, given);
      return userId === null ? null : thenDo(read(requester, [userId]), (views) => views[0] ?? null);
    },
    /** Returns the views of several users, like `get`, in order. Reads all of them together. */
    many(requester: Requester, given: readonly string[]): MaybePromise<readonly (UserView | null)[]> {
      const known = given.map((user) => knownUser(requester, user));
      const ids = [...new Set(known.filter((userId) => userId !== null))];
      if (ids.length === 0) return known.map(() => null);
      return thenDo(read(requester, ids), (views) =>
        known.map((userId) => (userId === null ? null : (views[ids.indexOf(userId)] ?? null))),
      );
    },
  };
}

export type UserView = {
  readonly id: string;
  readonly connectionCount: number;
  readonly streamCount: number;
  readonly completeness: Completeness;
};

type Counts = { readonly connections: number; readonly streams: number };
type UserRow = Counts & { readonly userId: string };
type Counted = { readonly userId: string; readonly count: number };

/**
 * Merges a page of connections and a page of streams into one page of users. A page that does not reach the end of its
 * rows says nothing about users after its own end. So the merged page ends at the earlier of the two ends. Before that
 * point, each user that a source has is in its page.
 */
function merge(page: PageRequest, byConnection: Scan<Counted>, byStream: Scan<Counted>): Scan<UserRow> {
  const horizon = nearerEnd(byConnection.next, byStream.next);
  const users = new Map<string, UserRow>();
  for (const [counted, { rows }] of [['connections', byConnection] as const, ['streams', byStream] as const])
    for (const { row, position } of rows) {
      if (horizon !== null && comparePositions(position, horizon) > 0) continue;
      const user = users.get(row.userId) ?? { userId: row.userId, connections: 0, streams: 0 };
      users.set(row.userId, { ...user, [counted]: row.count });
    }
  const merged = [...users.values()]
    .map((row) => ({ row, position: [row.userId] }))
    .sort((a, b) => comparePositions(a.position, b.position));
  const rows = merged.slice(0, page.first);
  const next = merged.length > rows.length ? (rows.at(-1)?.position ?? null) : horizon;
  return { rows, next, gaps: [...byConnection.gaps, ...byStream.gaps] };
}

/** Keeps only users whose id contains a text (null: all), and at most the first `first` of them. */
function containing(text: string | null, first: number, scan: Scan<UserRow>): Scan<UserRow> {
  if (text === null) return scan;
  const found = scan.rows.filter(({ row }) => row.userId.toLowerCase().includes(text));
  const rows = found.slice(0, first);
  return { ...scan, rows, next: found.length > first ? (rows.at(-1)?.position ?? null) : scan.next };
}

function viewOf(row: UserRow, gaps: readonly ObservedSource[], asOf: number): UserView {
  return {
    id: row.userId,
    connectionCount: row.connections,
    streamCount: row.streams,
    completeness: completenessOf(sourcesOf(row, gaps, asOf)),
  };
}

function totals(users: readonly UserView[]): Counts {
  return {
    connections: users.reduce((sum, { connectionCount }) => sum + connectionCount, 0),
    streams: users.reduce((sum, { streamCount }) => sum + streamCount, 0),
  };
}

/**
 * Returns one source for connections and one for streams, plus one for each silent node. The stores count all rows, so
 * a count is incomplete only if its source has a gap.
 */
function sourcesOf({ connections, streams }: Counts, gaps: readonly ObservedSource[], asOf: number): ObservedSource[] {
  const own = (source: 'connections' | 'streams', count: number): ObservedSource => {
    const gap = gaps.find((one) => one.source === source && one.nodeId === null);
    return gap ? { ...gap, observed: count } : observed(source, asOf, count);
  };
  return [own('connections', connections), own('streams', streams), ...gaps.filter(({ nodeId }) => nodeId !== null)];
}
