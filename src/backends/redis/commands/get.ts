import type { Command } from '../../../core/delivery/command.ts';
import type { ClientKey, CommandKey } from '../../../core/ids.ts';
import { nameArgs } from './parts.ts';
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
      const names = some.flatMap((key) => nameArgs(store, key));
      const [now, ...records] = listOf(await store.act(partition, 'commands-get', names));
      return some.map((_, i) => {
        const command = decodeCommandOr(records[i] ?? null);
        return command && retained(command, { now, retentionMs });
      });
    },
  });
}

/** The keys of a client's commands that have not ended. */
export async function getLive(store: Store, { userId, clientId }: ClientKey): Promise<readonly CommandKey[]> {
  const ids = await store.act(store.partitionOfUser(userId), 'commands-live', [store.hash(userId, clientId)]);
  return listOf(ids).map((commandId) => ({ userId, clientId, commandId: String(commandId) }));
}
