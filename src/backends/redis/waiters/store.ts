import type { NewWaiter } from '../../../core/delivery/commands.ts';
import type { AttachResult, Counted, CountedScan, PendingWait, WaiterStore } from '../../../core/delivery/waiters.ts';
import type { CommandKey } from '../../../core/ids.ts';
import { trustJson } from '../../../core/json.ts';
import { WAITERS_PER_COMMAND } from '../../../core/limits.ts';
import type { RedisParts } from '../parts.ts';
import type { KeyKind } from '../keys.ts';
import { nameArgs } from '../commands/parts.ts';
import { decodeCommand, retained } from '../commands/record.ts';
import type { Store } from '../store/store.ts';
import { listWaits, tallyWaits } from './list.ts';
import { decodeWaiter, decodeWaits, readOf, readPlaces, texts } from './rows.ts';
import type { Reply } from '../types.ts';

/** core's WaiterStore over the indexes that the acts on commands keep. */
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
      summaries(
        store,
        userIds.map((userId) => ({ userId, kind: 'userwaits', hash: store.hash(userId) })),
        first,
      ),
    ofClients: (keys, first) =>
      summaries(
        store,
        keys.map(({ userId, clientId }) => ({ userId, kind: 'clientwaits', hash: store.hash(userId, clientId) })),
        first,
      ),
    ofCommands: (keys) => ofCommands(store, keys),
  };
}

type Attaching = Pick<RedisParts, 'store' | 'retentionMs'>;

async function attach({ store, retentionMs }: Attaching, key: CommandKey, request: NewWaiter): Promise<AttachResult> {
  const { rpcId, callerNodeId, waitFor, withinMs } = request;
  const args = [...nameArgs(store, key), rpcId, callerNodeId, waitFor, withinMs, WAITERS_PER_COMMAND, retentionMs];
  const reply = await store.act(store.partitionOfUser(key.userId), 'waiters-attach', args);
  const [said, record = null, more = null, now] = Array.isArray(reply) ? (reply as readonly Reply[]) : [];
  if (said === 'full') return { kind: 'full' };
  if (said === 'unknown') return { kind: 'unknown' };
  const command = retained(decodeCommand(record), { now, retentionMs });
  if (said === 'satisfied')
    return { kind: 'satisfied', command, result: typeof more === 'string' ? trustJson(more) : null };
  return { kind: 'waiting', waiter: decodeWaiter(String(more), command), command };
}

type Asked = { readonly userId: string; readonly kind: KeyKind; readonly hash: string };

/** Two round trips, however many are asked for: their indexes, then their rows. */
async function summaries(store: Store, asked: readonly Asked[], first: number): Promise<readonly CountedScan[]> {
  const found = await inPartitions(store, asked, async (partition, own) => {
    const indexes = own.map(({ kind, hash }) => store.key(partition, kind, hash));
    const replies = await store.read(
      indexes.flatMap((index) => [
        ['ZCARD', index],
        ['ZRANGE', index, 0, first - 1],
      ]),
    );
    const heads = own.map((_, i) => ({ total: Number(replies[2 * i]), places: texts(replies[2 * i + 1]) }));
    const waits = (
      await readPlaces(
        store,
        partition,
        heads.flatMap(({ places }) => places),
      )
    ).values();
    return heads.map(({ total, places }) =>
      summary(
        total,
        places.map((place) => ({ place, wait: waits.next().value ?? null })),
      ),
    );
  });
  return found;
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

/** Asks each partition for its own at once; the answers stand in the order asked. */
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
