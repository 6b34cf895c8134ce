/** Reads capacity scopes with their reservations, and finds the clients with the most reservations. */
import type { CapacityScope, DeliveryInspector, ReservedScope } from '../../core/commands/delivery-inspector.ts';
import { busiestOf } from '../../core/connections/reconnects.ts';
import { SCOPE_HOLDERS } from '../../core/limits.ts';
import { SCAN_BUDGET, type PageRequest, type Scan } from '../../core/page.ts';
import { keyOfName } from './inspector-pages.ts';
import { listOf, numbersOf, type ReadCommand, type Reply } from './replies.ts';
import { inByteOrder } from './store-partitions.ts';
import type { Store } from './store.ts';

export async function scopes(store: Store, page: PageRequest): Promise<Scan<CapacityScope>> {
  const after = page.after?.[0];
  const from = after === undefined ? '-' : `(${after}`;
  const found = await store.readAll((partition) => [
    ['ZRANGEBYLEX', store.key(partition, 'scopes'), from, '+', 'LIMIT', 0, page.first + 1],
  ]);
  const names = inByteOrder(placesIn(found), ({ scopeId }) => scopeId);
  const shown = await scopesNamed(store, names.slice(0, page.first));
  const rows = shown.map((row) => ({ row, position: [row.scopeId] }));
  const last = rows.at(-1);
  const next = names.length > page.first && last ? last.position : null;
  // A scope whose last reservation ended after its name was read is left out.
  return { rows: rows.filter(({ row }) => row.reservedCommands > 0), next, gaps: [] };
}

type PlacedScope = ReservedScope & { readonly partition: number };

/** Reads the scopes that have reservations, at most SCAN_BUDGET of each partition. */
export async function reservedScopes(store: Store): Promise<readonly PlacedScope[]> {
  const names = await store.readAll((partition) => [
    ['ZRANGEBYLEX', store.key(partition, 'scopes'), '-', '+', 'LIMIT', 0, SCAN_BUDGET],
  ]);
  const places = placesIn(names);
  const reserved = await ofEachScope(store, places, (key) => [
    ['ZCARD', key],
    ['ZRANGE', key, 0, 0],
  ]);
  const scopes = places.map(({ scopeId, partition }, i): PlacedScope => {
    const [count, holders] = reserved[i] ?? [];
    const [userId = ''] = String(listOf(holders)[0] ?? '').split('\0');
    return { partition, scopeId, reservedCommands: Number(count), userId };
  });
  return scopes.filter(({ reservedCommands }) => reservedCommands > 0);
}

/** Counts the reservations of each client. Reads the scopes with the most reservations first. */
export async function busiest(store: Store, first: number): Promise<Awaited<ReturnType<DeliveryInspector['busiest']>>> {
  const scopes = (await reservedScopes(store))
    .map(({ partition, scopeId, reservedCommands: count }) => {
      return { partition, key: store.key(partition, 'reserved', store.hash(scopeId)), count };
    })
    .sort((a, b) => b.count - a.count);
  const names = (await readHolders(store, allot(scopes, SCAN_BUDGET))).flat();
  const complete = scopes.reduce((sum, { count }) => sum + count, 0) <= SCAN_BUDGET;
  return { rows: busiestOf(names.map(keyOfName), first), complete };
}

/** A scope's reservations, with the number of names to read from their start. */
type Allotted = { readonly partition: number; readonly key: string; readonly most: number };

/** Divides `names` among the scopes, in order: each scope gets as many names as it has, until none is left. */
export function allot(
  scopes: readonly (Omit<Allotted, 'most'> & { readonly count: number })[],
  names: number,
): Allotted[] {
  let left = names;
  return scopes.flatMap(({ partition, key, count }) => {
    const most = Math.min(count, left);
    left -= most;
    return most > 0 ? [{ partition, key, most }] : [];
  });
}

/** Reads the names of reservations, in each scope earliest deadline first. Returns one list for each partition. */
export async function readHolders(store: Store, chosen: readonly Allotted[]): Promise<readonly (readonly string[])[]> {
  const holders = await store.readAll((partition) =>
    chosen.filter((one) => one.partition === partition).map(({ key, most }) => ['ZRANGE', key, 0, most - 1] as const),
  );
  return holders.map((lists) => lists.flatMap((list) => listOf(list).map(String)));
}

export async function getScopes(store: Store, scopeIds: readonly string[]): Promise<readonly (CapacityScope | null)[]> {
  const found = await store.readAll((partition) =>
    scopeIds.map((id) => ['ZRANGEBYLEX', store.key(partition, 'scopes'), `[${id}`, `[${id}`] as const),
  );
  const places = placesIn(found);
  const held = new Map((await scopesNamed(store, places)).map((scope) => [scope.scopeId, scope]));
  return scopeIds.map((id) => {
    const scope = held.get(id);
    return scope && scope.reservedCommands > 0 ? scope : null;
  });
}

type ScopePlace = { readonly partition: number; readonly scopeId: string };

/**
 * Returns the partition and the id of each scope that the indexes name. `found`: the replies of the index reads, by
 * partition.
 */
function placesIn(found: readonly (readonly Reply[])[]): readonly ScopePlace[] {
  return found.flatMap((replies, partition) =>
    replies.flatMap((names) => listOf(names).map((name) => ({ partition, scopeId: String(name) }))),
  );
}

/**
 * Reads the scopes, in the given order. A scope whose reservations have ended since its name was read is shown with
 * none.
 */
async function scopesNamed(store: Store, places: readonly ScopePlace[]): Promise<readonly CapacityScope[]> {
  const held = await ofEachScope(store, places, (key) => [
    ['ZCARD', key],
    ['ZRANGE', key, 0, SCOPE_HOLDERS - 1, 'WITHSCORES'],
  ]);
  return places.map(({ scopeId }, i) => {
    const [count, holders] = held[i] ?? [];
    return scopeOf(scopeId, Number(count), listOf(holders));
  });
}

/** Sends two reads on the reservations of each scope, and returns the replies in the order of the scopes. */
async function ofEachScope(
  store: Store,
  places: readonly ScopePlace[],
  readsOf: (key: string) => readonly [ReadCommand, ReadCommand],
): Promise<readonly (readonly Reply[])[]> {
  const replies = await store.readAll((partition) =>
    places
      .filter((one) => one.partition === partition)
      .flatMap(({ scopeId }) => readsOf(store.key(partition, 'reserved', store.hash(scopeId)))),
  );
  const queues = replies.map((ofPartition) => ofPartition.values());
  return places.map(({ partition }) => [...(queues[partition]?.take(2) ?? [])]);
}

function scopeOf(scopeId: string, reservedCommands: number, flat: readonly Reply[]): CapacityScope {
  const holders = [...numbersOf(flat)].map(([name, deadline]) => ({ ...keyOfName(name), deadline }));
  return { scopeId, reservedCommands, oldestDeadline: holders[0]?.deadline ?? null, holders };
}
