import type { CapacityScope, DeliveryInspector, DeliverySummary } from '../../../core/delivery/inspector.ts';
import { DELIVERY_SAMPLE, SCOPE_HOLDERS } from '../../../core/limits.ts';
import type { PageRequest, Scan } from '../../../core/page.ts';
import type { RedisParts } from '../parts.ts';
import { createInspectorList } from './list.ts';
import { decodeCommand } from '../commands/record.ts';
import { commandOf, readOf } from '../waiters/rows.ts';
import { listOf } from '../replies.ts';
import type { Store } from '../store/store.ts';
import type { Reply } from '../types.ts';

/** core's DeliveryInspector over Redis: all partitions as one, in order of the bytes of the names. */
export function createRedisInspector(parts: RedisParts): DeliveryInspector {
  const { store } = parts;
  return {
    summary: () => summary(store),
    scopes: (page) => scopes(store, page),
    getScopes: (scopeIds) => getScopes(store, scopeIds),
    list: createInspectorList(parts),
  };
}

const partitionsOf = ({ partitions }: Store): readonly number[] => [...Array(partitions).keys()];

type Due = { readonly partition: number; readonly client: string; readonly commandId: string; readonly at: number };
type Sampled = { readonly deadline: number; readonly queuedAt: number | null };

async function summary(store: Store): Promise<DeliverySummary> {
  const answers = await Promise.all(
    partitionsOf(store).map(async (partition) =>
      listOf(await store.act(partition, 'inspector-summary', [DELIVERY_SAMPLE])),
    ),
  );
  const now = Math.max(...answers.map(([at]) => Number(at)));
  const soonest = answers.flatMap(([, , , ...rest], partition) => dueOf(rest, partition));
  soonest.sort((a, b) => a.at - b.at);
  const sample = await sampleOf(store, soonest.slice(0, DELIVERY_SAMPLE));
  const since = least(sample.flatMap(({ queuedAt }) => (queuedAt === null ? [] : [queuedAt])));
  return {
    trackedCommands: sum(answers.map(([, tracked]) => Number(tracked))),
    dueCommands: sum(answers.map(([, , due]) => Number(due))),
    sampledOldestDeadline: least(sample.map(({ deadline }) => deadline)),
    sampledOldestQueuedAgeMs: since === null ? null : Math.max(0, now - since),
    sampleSize: sample.length,
    legacyCommandStreamDepth: null,
    pendingCommandDepth: null,
  };
}

function dueOf(flat: readonly Reply[], partition: number): readonly Due[] {
  const found: Due[] = [];
  for (let i = 0; i + 1 < flat.length; i += 2)
    found.push({ partition, ...commandOf(String(flat[i])), at: Number(flat[i + 1]) });
  return found;
}

/** The live ones of those; when each was queued, where it is queued now. */
async function sampleOf(store: Store, due: readonly Due[]): Promise<readonly Sampled[]> {
  const rows = await store.readAll((partition) =>
    due
      .filter((one) => one.partition === partition)
      .map(({ client, commandId }) => readOf(store, partition, client, commandId)),
  );
  return rows.flat().flatMap((row) => {
    const [, state, asked] = listOf(row);
    if (typeof state !== 'string' || typeof asked !== 'string') return [];
    const command = decodeCommand(state + asked);
    return [{ deadline: command.deadline, queuedAt: command.stage === 'queued' ? command.queuedAt : null }];
  });
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
  // One that was emptied meanwhile is none any more.
  return { rows: rows.filter(({ row }) => row.reservedCommands > 0), next, gaps: [] };
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

/** In the order given; one that was emptied meanwhile has no reservations. */
async function scopesNamed(store: Store, places: readonly ScopePlace[]): Promise<readonly CapacityScope[]> {
  const held = await store.readAll((partition) =>
    places
      .filter((one) => one.partition === partition)
      .map(({ scopeId }) => store.key(partition, 'reserved', store.hash(scopeId)))
      .flatMap((key) => [['ZCARD', key] as const, ['ZRANGE', key, 0, SCOPE_HOLDERS - 1, 'WITHSCORES'] as const]),
  );
  const queues = held.map((replies) => replies.values());
  return places.map(({ partition, scopeId }) => {
    const [count, holders] = queues[partition]?.take(2) ?? [];
    return scopeOf(scopeId, Number(count), listOf(holders));
  });
}

function scopeOf(scopeId: string, reservedCommands: number, flat: readonly Reply[]): CapacityScope {
  const holders: CapacityScope['holders'][number][] = [];
  for (let i = 0; i + 1 < flat.length; i += 2) {
    const [userId = '', clientId = '', commandId = ''] = String(flat[i]).split('\0');
    holders.push({ userId, clientId, commandId, deadline: Number(flat[i + 1]) });
  }
  return { scopeId, reservedCommands, oldestDeadline: holders[0]?.deadline ?? null, holders };
}

function least(numbers: readonly number[]): number | null {
  return numbers.length === 0 ? null : Math.min(...numbers);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
