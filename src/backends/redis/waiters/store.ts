/** Core's WaiterStore over Redis: registers, removes and lists the waits of callers for commands. */
import type { NewWaiter } from '../../../core/delivery/commands.ts';
import type { AttachResult, Counted, CountedScan, PendingWait, WaiterStore } from '../../../core/delivery/waiters.ts';
import type { ClientKey, CommandKey } from '../../../core/ids.ts';
import { trustJson } from '../../../core/json.ts';
import { WAITERS_PER_COMMAND } from '../../../core/limits.ts';
import type { RedisParts } from '../parts.ts';
import { nameArgs } from '../commands/parts.ts';
import { decodeCommand, retained } from '../commands/record.ts';
import type { Store } from '../store/store.ts';
import { listWaits, tallyWaits } from './list.ts';
import { clientIn, decodeWaiter, decodeWaits, readOf, readPlaces, texts, type Place } from './rows.ts';
import type { Reply } from '../types.ts';

/** Creates Core's WaiterStore over Redis. The acts on commands change the indexes of waits too. */
export function createRedisWaiters({ store, retentionMs }: Pick<RedisParts, 'store' | 'retentionMs'>): WaiterStore {
  return {
    attach: (key, request) => attach({ store, retentionMs }, key, request),
    async remove(key, rpcId) {
      const [client, commandId] = nameArgs(store, key);
      await store.act(store.partitionOfUser(key.userId), 'waiters-remove', [client, commandId, rpcId]);
    },
    list: (filter, page) => listWaits(store, filter, page),
    async count(filter): Promise<Counted> {
      const { counts, complete } = await tallyWaits(store, filter);
      return { count: [...counts.values()].reduce((sum, count) => sum + count, 0), complete };
    },
    countByNode: (filter) => tallyWaits(store, filter),
    ofUsers: (userIds, first) =>
      inPartitions(
        store,
        userIds.map((userId) => ({ userId })),
        (partition, own) => ofUsers(store, { partition, own, first }),
      ),
    ofClients: (keys, first) =>
      inPartitions(store, keys, (partition, own) => ofClients(store, { partition, own, first })),
    ofCommands: (keys) => ofCommands(store, keys),
  };
}

type Attaching = Pick<RedisParts, 'store' | 'retentionMs'>;

async function attach({ store, retentionMs }: Attaching, key: CommandKey, request: NewWaiter): Promise<AttachResult> {
  const { rpcId, callerNodeId, waitFor, withinMs } = request;
  const args = [...nameArgs(store, key), rpcId, callerNodeId, waitFor, withinMs, WAITERS_PER_COMMAND, retentionMs];
  const reply = await store.act(store.partitionOfUser(key.userId), 'waiters-attach', args);
  const [kind, record = null, more = null, now] = Array.isArray(reply) ? (reply as readonly Reply[]) : [];
  if (kind === 'full') return { kind: 'full' };
  if (kind === 'unknown') return { kind: 'unknown' };
  const command = retained(decodeCommand(record), { now, retentionMs });
  if (kind === 'satisfied')
    return { kind: 'satisfied', command, result: typeof more === 'string' ? trustJson(more) : null };
  return { kind: 'waiting', waiter: decodeWaiter(String(more), command), command };
}

type Asked<A> = { readonly partition: number; readonly own: readonly A[]; readonly first: number };
/** The first places of an index, and how many places it has. */
type Head = { readonly total: number; readonly places: readonly Place[] };

/** Lists the waits of any number of users in two round trips: their indexes, then their rows. */
async function ofUsers(
  store: Store,
  { partition, own, first }: Asked<{ readonly userId: string }>,
): Promise<readonly CountedScan[]> {
  const indexes = own.map(({ userId }) => store.key(partition, 'userwaits', store.hash(userId)));
  const replies = await store.read(
    indexes.flatMap((index) => [
      ['ZCARD', index],
      ['ZRANGE', index, 0, first - 1],
    ]),
  );
  const heads = own.map((_, i) => ({ total: Number(replies[2 * i]), places: texts(replies[2 * i + 1]) }));
  return summaries(store, partition, heads);
}

/** Lists the waits of clients as `ofUsers` does. The waits of a client are found among those of its user. */
async function ofClients(store: Store, { partition, own, first }: Asked<ClientKey>): Promise<readonly CountedScan[]> {
  const users = [...new Set(own.map(({ userId }) => userId))];
  const replies = await store.read(
    users.map((userId) => ['ZRANGE', store.key(partition, 'userwaits', store.hash(userId)), 0, -1]),
  );
  const clients = new Map<string, Place[]>(own.map(({ userId, clientId }) => [store.hash(userId, clientId), []]));
  for (const place of replies.flatMap(texts)) clients.get(clientIn(place))?.push(place);
  const heads = own.map(({ userId, clientId }) => {
    const places = clients.get(store.hash(userId, clientId)) ?? [];
    return { total: places.length, places: places.slice(0, first) };
  });
  return summaries(store, partition, heads);
}

async function summaries(store: Store, partition: number, heads: readonly Head[]): Promise<readonly CountedScan[]> {
  const all = heads.flatMap(({ places }) => places);
  const waits = (await readPlaces(store, partition, all)).values();
  return heads.map(({ total, places }) =>
    summary(
      total,
      places.map((place) => ({ place, wait: waits.next().value ?? null })),
    ),
  );
}

function summary(
  total: number,
  seen: readonly { readonly place: string; readonly wait: PendingWait | null }[],
): CountedScan {
  const rows = seen.flatMap(({ place, wait }) => (wait ? [{ row: wait, position: [place] }] : []));
  const last = seen.at(-1);
  return { total, scan: { rows, next: last && total > seen.length ? [last.place] : null, gaps: [] } };
}

function ofCommands(store: Store, keys: readonly CommandKey[]): Promise<readonly (readonly PendingWait[])[]> {
  return inPartitions(store, keys, async (partition, own) => {
    const replies = await store.read(
      own.map((key) => {
        const [client, commandId] = nameArgs(store, key);
        return readOf(store, partition, client, commandId);
      }),
    );
    return own.map((_, i) => decodeWaits(replies[i]));
  });
}

/** Reads from each partition at the same time. Returns one answer per key, in the order of the keys. */
async function inPartitions<A extends { readonly userId: string }, R>(
  store: Store,
  asked: readonly A[],
  ask: (partition: number, own: readonly A[]) => Promise<readonly R[]>,
): Promise<readonly R[]> {
  const groups = Map.groupBy(asked.entries(), ([, one]) => store.partitionOfUser(one.userId));
  const answers = await Promise.all(
    [...groups].map(async ([partition, own]) => {
      const got = await ask(
        partition,
        own.map(([, one]) => one),
      );
      return got.map((answer, i) => ({ answer, at: own[i]?.[0] ?? 0 }));
    }),
  );
  return answers
    .flat()
    .sort((a, b) => a.at - b.at)
    .map(({ answer }) => answer);
}
