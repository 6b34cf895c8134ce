import type { Command } from '../../../core/delivery/command.ts';
import type { ClientKey, CommandKey } from '../../../core/ids.ts';
import { commandHash } from './parts.ts';
import type { RedisParts } from '../parts.ts';
import { decodeCommandOr, retained } from './record.ts';
import { listOf } from '../replies.ts';
import { scattered } from '../store/scatter.ts';
import type { Store } from '../store/store.ts';

/** Records that one act reads: Redis serves nobody else meanwhile. */
const READ_BATCH = 64;

/** The records of commands, one answer per key, in the order asked: one round trip in each partition concerned. */
export function getCommands(
  { store, retentionMs }: Pick<RedisParts, 'store' | 'retentionMs'>,
  keys: readonly CommandKey[],
): Promise<readonly (Command | null)[]> {
  return scattered(store, keys, {
    most: READ_BATCH,
    async ask(partition, some) {
      const hashes = some.map((key) => commandHash(store, key));
      const [now, ...records] = listOf(await store.act(partition, 'commands-get', hashes));
      return some.map((_, i) => {
        const command = decodeCommandOr(records[i] ?? null);
        return command && retained(command, { now, retentionMs });
      });
    },
  });
}

/** The keys of a client's commands that have not ended: two round trips. */
export async function getLive(store: Store, { userId, clientId }: ClientKey): Promise<readonly CommandKey[]> {
  const partition = store.partitionOfUser(userId);
  const client = store.hash(userId, clientId);
  const sets = (['waiting', 'running'] as const).map((kind) => store.key(partition, kind, client));
  const members = await store.read(sets.map((key) => ['ZRANGE', key, 0, -1] as const));
  const hashes = members.flatMap((reply) => listOf(reply));
  const records = await store.read(hashes.map((hash) => ['GET', store.key(partition, 'cmd', String(hash))] as const));
  return records.flatMap((record) => {
    const command = decodeCommandOr(record);
    return command ? [{ userId, clientId, commandId: command.commandId }] : [];
  });
}
