/** Core's WaiterStore over Redis: registers waits in Redis, and lists those of this process. */
import type { NewWaiter } from '../../../core/commands/command.ts';
import type { AttachResult, WaiterStore } from '../../../core/commands/stores.ts';
import type { ClientKey, CommandKey } from '../../../core/ids.ts';
import { WAITERS_PER_COMMAND } from '../../../core/limits.ts';
import type { RedisParts } from '../parts.ts';
import { nameArgs } from '../commands/parts.ts';
import { decodeCommand, retained } from '../commands/record.ts';
import { jsonOr, listOf } from '../types.ts';
import { listWaits, summarize, tallyWaits } from './list.ts';
import { createLocalWaits, type LocalWaits } from './local.ts';
import { readWaits } from './rows.ts';

type Waiting = Pick<RedisParts, 'store' | 'retentionMs'> & { readonly waits: LocalWaits };

/** Creates Core's WaiterStore over Redis. It lists only the waits of this process; listing them changes nothing. */
export function createRedisWaiters({
  store,
  retentionMs,
  waits = createLocalWaits(),
}: Pick<RedisParts, 'store' | 'retentionMs' | 'waits'>): WaiterStore {
  const parts: Waiting = { store, retentionMs, waits };
  return {
    attach: (key, request) => attach(parts, key, request),
    remove: (key, rpcId) => remove(parts, key, rpcId),
    list: (filter, page) => listWaits(parts, filter, page),
    countByNode: (filter) => tallyWaits(parts, filter),
    ofUsers: (userIds, first) => summarize(parts, userIds, { first, groupOf: ({ key }) => key.userId }),
    ofClients: (keys, first) =>
      summarize(parts, keys.map(clientName), { first, groupOf: ({ key }) => clientName(key) }),
    async ofCommands(keys) {
      const lists = keys.map((key) => waits.ofCommand(key));
      const read = (await readWaits(store, lists.flat())).values();
      return lists.map((list) => list.flatMap(() => read.next().value?.row ?? []));
    },
  };
}

async function attach(
  { store, retentionMs, waits }: Waiting,
  key: CommandKey,
  request: NewWaiter,
): Promise<AttachResult> {
  const { rpcId, callerNodeId, waitFor } = request;
  const wait = waits.begin(key, request);
  const known = wait.listed !== null;
  const args = [...nameArgs(store, key), wait.number, callerNodeId, waitFor, WAITERS_PER_COMMAND, retentionMs];
  try {
    const reply = listOf(await store.act(store.partitionOfUser(key.userId), 'waiters-attach', args));
    const [kind, record = null, more = null, last = null] = reply;
    if (kind === 'waiting') {
      const at = Number(more);
      const command = retained(decodeCommand(record), { now: more, retentionMs });
      return { kind, waiter: waits.register(wait, { command, at }), command };
    }
    waits.drop(rpcId);
    if (kind === 'full' || kind === 'unknown') return { kind };
    return {
      kind: 'satisfied',
      command: retained(decodeCommand(record), { now: last, retentionMs }),
      result: jsonOr(more),
    };
  } catch (error) {
    if (!known) waits.drop(rpcId);
    throw error;
  }
}

async function remove({ store, waits }: Waiting, key: CommandKey, rpcId: string): Promise<void> {
  const wait = waits.drop(rpcId);
  if (!wait) return;
  const [client, commandId] = nameArgs(store, key);
  const { callerNodeId, waitFor } = wait.request;
  const args = [client, commandId, wait.number, callerNodeId, waitFor];
  await store.act(store.partitionOfUser(key.userId), 'waiters-remove', args);
}

function clientName({ userId, clientId }: ClientKey): string {
  return `${userId}\0${clientId}`;
}
