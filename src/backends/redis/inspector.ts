/** Core's DeliveryInspector over Redis: lists and counts commands and capacity scopes. Changes no command. */
import type { CapacityScope, DeliveryInspector, ReservedScope } from '../../../core/delivery/inspector.ts';
import { SCOPE_HOLDERS } from '../../../core/limits.ts';
import { SCAN_BUDGET, type PageRequest, type Scan } from '../../../core/page.ts';
import type { RedisParts } from '../parts.ts';
import { createInspectorList, type InspectorListParts } from './list.ts';
import { readSummary } from './summary.ts';
import { listOf } from '../replies.ts';
import type { Store } from '../store/store.ts';
import type { ReadCommand, Reply } from '../types.ts';

/** Creates Core's DeliveryInspector. Its listings are merged over all partitions, in byte order of the names. */
export function createRedisInspector(
  parts: RedisParts,
  connections: InspectorListParts['connections'],
): DeliveryInspector {
  const { store } = parts;
  return {
    summary: () => readSummary(store),
    scopes: (page) => scopes(store, page),
    getScopes: (scopeIds) => getScopes(store, scopeIds),
    reservedScopes: () => reservedScopes(store),
    list: createInspectorList({ ...parts, connections }),
  };
}

async function scopes(store: Store, page: PageRequest): Promise<Scan<CapacityScope>> {
  const after = page.after?.[0];
  const from = after === undefined ? '-' : `(${after}`;
  const found = await store.readAll((partition) => [
    ['ZRANGEBYLEX', store.key(partition, 'scopes'), from, '+', 'LIMIT', 0, page.first + 1],
  ]);
  const names = found.flatMap(([list], partition) =>
    listOf(list).map((name) => ({ partition, scopeId: String(name), bytes: Buffer.from(String(name)) })),
  );
  names.sort((a, b) => Buffer.compare(a.bytes, b.bytes));
  const shown = await scopesNamed(store, names.slice(0, page.first));
  const rows = shown.map((row) => ({ row, position: [row.scopeId] }));
  const last = rows.at(-1);
  const next = names.length > page.first && last ? last.position : null;
  // A scope that was emptied after its name was read is left out.
  return { rows: rows.filter(({ row }) => row.reservedCommands > 0), next, gaps: [] };
}

async function reservedScopes(store: Store): Promise<readonly ReservedScope[]> {
  const names = await store.readAll((partition) => [
    ['ZRANGEBYLEX', store.key(partition, 'scopes'), '-', '+', 'LIMIT', 0, SCAN_BUDGET],
  ]);
  const places = names.flatMap(([list], partition) =>
    listOf(list).map((name) => ({ partition, scopeId: String(name) })),
  );
  const reserved = await ofEachScope(store, places, (key) => [
    ['ZCARD', key],
    ['ZRANGE', key, 0, 0],
  ]);
  const scopes = places.map(({ scopeId }, i): ReservedScope => {
    const [count, holders] = reserved[i] ?? [];
    const [userId = ''] = String(listOf(holders)[0] ?? '').split('\0');
    return { scopeId, reservedCommands: Number(count), userId };
  });
  return scopes.filter(({ reservedCommands }) => reservedCommands > 0).slice(0, SCAN_BUDGET);
}

async function getScopes(store: Store, scopeIds: readonly string[]): Promise<readonly (CapacityScope | null)[]> {
  const found = await store.readAll((partition) =>
    scopeIds.map((id) => ['ZRANGEBYLEX', store.key(partition, 'scopes'), `[${id}`, `[${id}`] as const),
  );
  const places = found.flatMap((replies, partition) =>
    replies.flatMap((reply) => listOf(reply).map((name) => ({ partition, scopeId: String(name) }))),
  );
  const held = new Map((await scopesNamed(store, places)).map((scope) => [scope.scopeId, scope]));
  return scopeIds.map((id) => {
    const scope = held.get(id);
    return scope && scope.reservedCommands > 0 ? scope : null;
  });
}

type ScopePlace = { readonly partition: number; readonly scopeId: string };

/** Reads the scopes in the order given. A scope that was emptied since its name was read has no reservations. */
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

/** Runs two reads on the reservations of each scope, and returns the replies in the order of the scopes. */
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
  const holders: CapacityScope['holders'][number][] = [];
  for (let i = 0; i + 1 < flat.length; i += 2) {
    const [userId = '', clientId = '', commandId = ''] = String(flat[i]).split('\0');
    holders.push({ userId, clientId, commandId, deadline: Number(flat[i + 1]) });
  }
  return { scopeId, reservedCommands, oldestDeadline: holders[0]?.deadline ?? null, holders };
}
