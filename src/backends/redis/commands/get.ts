/** Reads the records of commands by key or by name, and counts them. Changes nothing. */
import type { Command } from '../../../core/delivery/command.ts';
import type { CommandLoad } from '../../../core/delivery/commands.ts';
import type { ClientKey, CommandKey } from '../../../core/ids.ts';
import { nameArgs } from './parts.ts';
import type { RedisParts } from '../parts.ts';
import { decodeCommandOr, retained } from './record.ts';
import { listOf } from '../replies.ts';
import { scattered } from '../store/scatter.ts';
import type { Store } from '../store/store.ts';

/** The most records that one act reads. Redis answers no other request while an act runs. */
const READ_BATCH = 64;

/**
 * The most clients whose commands one act counts: as many as a page of connections has. The limits of capacity scopes
 * bound how many commands these clients have together.
 */
const COUNT_BATCH = 250;

/**
 * Reads the records of commands, one answer per key, in the order of the keys. Takes one round trip in each partition
 * concerned.
 */
export function getCommands(
  { store, retentionMs }: Pick<RedisParts, 'store' | 'retentionMs'>,
  keys: readonly CommandKey[],
): Promise<readonly (Command | null)[]> {
  return scattered(store, keys, {
    most: READ_BATCH,
    ask: (partition, some) =>
      getNamed(
        { store, retentionMs },
        partition,
        some.map((key) => nameArgs(store, key)),
      ),
  });
}

/** The name of a command in acts: the hash of its client, its id, and the hash of its user. */
export type CommandName = ReturnType<typeof nameArgs>;

/**
 * Reads records in one partition, one answer per name, in the order of the names. Each act reads at most READ_BATCH
 * records.
 */
export async function getNamed(
  { store, retentionMs }: Pick<RedisParts, 'store' | 'retentionMs'>,
  partition: number,
  names: readonly CommandName[],
): Promise<(Command | null)[]> {
  const parts = Array.from({ length: Math.ceil(names.length / READ_BATCH) }, (_, i) =>
    names.slice(i * READ_BATCH, (i + 1) * READ_BATCH),
  );
  const read = async (some: readonly CommandName[]): Promise<(Command | null)[]> => {
    const [now, ...records] = listOf(await store.act(partition, 'commands-get', some.flat()));
    return some.map((_, i) => {
      const command = decodeCommandOr(records[i] ?? null);
      return command && retained(command, { now, retentionMs });
    });
  };
  return (await Promise.all(parts.map(read))).flat();
}

/** Lists the keys of a client's commands that have not ended. */
export async function getLive(store: Store, { userId, clientId }: ClientKey): Promise<readonly CommandKey[]> {
  const ids = await store.act(store.partitionOfUser(userId), 'commands-live', [store.hash(userId, clientId)]);
  return listOf(ids).map((commandId) => ({ userId, clientId, commandId: String(commandId) }));
}

/** Counts the commands of each of these clients that have not ended. */
export function getLoads(store: Store, clients: readonly ClientKey[]): Promise<readonly CommandLoad[]> {
  return scattered(store, clients, {
    most: COUNT_BATCH,
    async ask(partition, some) {
      const hashes = some.map(({ userId, clientId }) => store.hash(userId, clientId));
      const counts = listOf(await store.act(partition, 'commands-loads', hashes)).map(Number);
      return some.map((_, i) => ({ inFlight: counts[2 * i] ?? 0, queued: counts[2 * i + 1] ?? 0 }));
    },
  });
}
