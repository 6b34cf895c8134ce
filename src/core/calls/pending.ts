/** Lists and counts the callers that wait for commands. */
import { readScope, requirePrincipal, subjectOf } from '../auth/principal.ts';
import { isLive, type Connection } from '../connections/connection.ts';
import type { InstanceMismatch, PendingQuery, PendingRpc, Rpc, Summary, Requester } from '../core.ts';
import { completenessOf, type Listing } from '../cursor.ts';
import type { CountedScan, PendingWait, WaiterFilter } from '../delivery/waiters.ts';
import type { Deps } from '../deps.ts';
import { id } from '../ids.ts';
import { COUNT_SCAN, MIN_AGE_MS } from '../limits.ts';
import { thenDo, type MaybePromise } from '../maybe-promise.ts';
import type { Completeness, ObservedSource, Page, Scan } from '../page.ts';
import { within } from '../range.ts';
import type { Waits } from './waits.ts';

type PendingRooms = Pick<Rpc, 'pending' | 'count' | 'countByNode' | 'ofUsers' | 'ofClients' | 'ofCommands'>;

/** Creates the API for observing callers that still wait. It changes no waiter. */
export function createPending(deps: Deps, waits: Waits): PendingRooms {
  return {
    async pending(requester, query, args) {
      const filter = filterOf(requester, query);
      const check = query.checkInstance ?? null;
      if (check !== null) id('check_instance', check);
      const listing = listingOf(requester, filter);
      const request = deps.cursors.request(listing, args);
      const scan = await waits.list(filter, request);
      return pageOf(deps, { listing, scan, rows: await describe(deps, rowsOf(scan), check) });
    },
    async count(requester, query) {
      const { counts, complete, gaps } = await waits.counts(filterOf(requester, query));
      const count = [...counts.values()].reduce((sum, each) => sum + each, 0);
      return { count, complete, completeness: countCompleteness(deps, { observed: count, complete, gaps }) };
    },
    async countByNode(requester, query) {
      const { counts, complete, gaps } = await waits.counts(filterOf(requester, query));
      const items = [...counts]
        .map(([nodeId, count]) => ({ nodeId, count }))
        .sort((a, b) => ((a.nodeId ?? '') < (b.nodeId ?? '') ? -1 : 1));
      return { items, completeness: countCompleteness(deps, { observed: items.length, complete, gaps }) };
    },
    ofUsers(requester, userIds, first) {
      const filters = userIds.map((userId) => ({ ...NO_FILTER, userId }));
      return thenDo(waits.ofUsers(userIds, first), (found) => summaries(deps, requester, filters, found));
    },
    ofClients(requester, keys, first) {
      const filters = keys.map(({ userId, clientId }) => ({ ...NO_FILTER, userId, clientId }));
      return thenDo(waits.ofClients(keys, first), (found) => summaries(deps, requester, filters, found));
    },
    ofCommands(keys) {
      return thenDo(waits.ofCommands(keys), (lists) =>
        thenDo(describe(deps, lists.flat(), null), (rows) => {
          let from = 0;
          return lists.map((list) => rows.slice(from, (from += list.length)));
        }),
      );
    },
  };
}

const NO_FILTER: WaiterFilter = { userId: null, clientId: null, nodeId: null, callerNodeId: null, minAgeMs: null };

function filterOf(requester: Requester, query: PendingQuery): WaiterFilter {
  const { clientId, nodeId, callerNodeId, minAgeMs } = query;
  return {
    userId: readScope(requester, query.userId),
    clientId: clientId == null ? null : id('client_id', clientId),
    nodeId: nodeId == null ? null : id('node_id', nodeId),
    callerNodeId: callerNodeId == null ? null : id('caller_node_id', callerNodeId),
    minAgeMs: minAgeMs == null ? null : within('min_age_ms', minAgeMs, MIN_AGE_MS),
  };
}

function listingOf(requester: Requester, filter: WaiterFilter): Listing {
  return { name: 'pending', filter, requester: subjectOf(requirePrincipal(requester)) };
}

/**
 * Reads the connections of all rows in one call, to compare the instance that each waiter's target runs now with the
 * expected one.
 */
function describe(deps: Deps, waits: readonly PendingWait[], checkInstance: string | null): MaybePromise<PendingRpc[]> {
  if (waits.length === 0) return [];
  const now = deps.clock.now();
  return thenDo(deps.backend.connections.get(waits.map(({ waiter }) => waiter)), (connections) =>
    waits.map((wait, i) => ({
      ...wait,
      ageMs: Math.max(0, now - wait.waiter.createdAt),
      instanceMismatch: mismatch({ wait, connection: connections[i] ?? null, checkInstance, now }),
    })),
  );
}

type Beside = {
  readonly wait: PendingWait;
  readonly connection: Connection | null;
  readonly checkInstance: string | null;
  readonly now: number;
};

/**
 * Compares the instance that a waiter's target runs with the expected one, and returns the difference. If
 * `checkInstance` is given, it counts as the instance that runs. Null: the two are the same, or one of them is not
 * known.
 */
function mismatch({ wait, connection, checkInstance, now }: Beside): InstanceMismatch | null {
  const { boundInstanceId, expectedInstanceId } = wait.command;
  const expected = boundInstanceId ?? expectedInstanceId;
  const observed = checkInstance ?? (isLive(connection, now) ? connection.instanceId : null);
  if (expected === null || observed === null || observed === expected) return null;
  return { expectedInstanceId: expected, observedInstanceId: observed, observedAt: now };
}

function rowsOf(scan: Scan<PendingWait>): PendingWait[] {
  return scan.rows.map(({ row }) => row);
}

type Described = { readonly listing: Listing; readonly scan: Scan<PendingWait>; readonly rows: readonly PendingRpc[] };

function pageOf(deps: Deps, { listing, scan, rows }: Described): Page<PendingRpc> {
  const seen = new Map(scan.rows.map(({ row }, i) => [row, rows[i]]));
  const source = { source: 'pending_rpcs', nodeId: null, asOf: deps.clock.now() } as const;
  const page = deps.cursors.page(listing, scan, source, (row) => seen.get(row));
  return { ...page, nodes: rows };
}

function summaries(
  deps: Deps,
  requester: Requester,
  filters: readonly WaiterFilter[],
  found: readonly CountedScan[],
): MaybePromise<Summary<PendingRpc>[]> {
  const waits = found.flatMap(({ scan }) => rowsOf(scan));
  return thenDo(describe(deps, waits, null), (rows) => {
    let from = 0;
    return found.map(({ total, scan }, i) => {
      const own = rows.slice(from, (from += scan.rows.length));
      const listing = listingOf(requester, filters[i] ?? NO_FILTER);
      return { ...pageOf(deps, { listing, scan, rows: own }), total };
    });
  });
}

type Tallied = { readonly observed: number; readonly complete: boolean; readonly gaps: readonly ObservedSource[] };

function countCompleteness({ clock }: Deps, { observed, complete, gaps }: Tallied): Completeness {
  const limits = complete ? { limit: null, reason: null } : ({ limit: COUNT_SCAN, reason: 'limit_reached' } as const);
  const own = { source: 'pending_rpcs', nodeId: null, complete, observed, asOf: clock.now(), ...limits } as const;
  return completenessOf([own, ...gaps]);
}
