import type { Command } from '../../core/delivery/command.ts';
import type { ClientKey, CommandKey } from '../../core/ids.ts';
import { commandHash } from './commands-parts.ts';
import { decodeCommandOr, listOf } from './record.ts';
import type { Store } from './store.ts';

/** Records that one act reads: Redis serves nobody else meanwhile. */
const READ_BATCH = 64;

/** The records of commands, one answer per key, in the order asked: one round trip in each partition concerned. */
export async function getCommands(store: Store, keys: readonly CommandKey[]): Promise<readonly (Command | null)[]> {
  const found = new Array<Command | null>(keys.length).fill(null);
  const places = Map.groupBy(keys.keys(), (at) => store.partitionOfUser(keys[at]?.userId ?? ''));
  const read = async (partition: number, some: readonly number[]): Promise<void> => {
    const hashes = some.flatMap((at) => (keys[at] ? [commandHash(store, keys[at])] : []));
    const records = listOf(await store.act(partition, 'commands-get', hashes));
    some.forEach((at, i) => (found[at] = decodeCommandOr(records[i] ?? null)));
  };
  const reads: Promise<void>[] = [];
  for (const [partition, all] of places)
    for (let at = 0; at < all.length; at += READ_BATCH) reads.push(read(partition, all.slice(at, at + READ_BATCH)));
  await Promise.all(reads);
  return found;
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
