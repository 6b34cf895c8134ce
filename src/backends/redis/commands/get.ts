/** Reads the records of commands by key or by name, and counts them. Changes nothing. */
import type { Command } from '../../../core/commands/command.ts';
import type { CommandLoad } from '../../../core/commands/stores.ts';
import type { ClientKey, CommandKey } from '../../../core/ids.ts';
import { liveIds, liveRead } from './link-words.ts';
import { nameArgs } from './parts.ts';
import type { RedisParts } from '../parts.ts';
import { decodeCommand, decodeCommandOr, retained } from './record.ts';
import { listOf, type ReadCommand, type Reply } from '../types.ts';
import { scattered, type Store } from '../store.ts';
/** The most records that one act reads as they are stored. Such a call takes 2 to 5 ms (see `read` in commands.lua). */
export const READ_BATCH = 256;

/**
 * The most clients whose commands one act counts: as many as a page of connections has. The limits of capacity scopes
 * bound how many commands these clients have together.
 */
const COUNT_BATCH = 250;

type ReadParts = Pick<RedisParts, 'store' | 'retentionMs'>;

/** Reads the records of commands, one answer per key, in the order of the keys. */
export function getCommands(parts: ReadParts, keys: readonly CommandKey[]): Promise<readonly (Command | null)[]> {
  return readMatching(parts, keys, ANY_RECORD);
}

/**
 * The stage (null: any) and the texts that the text of a record must have. `oneOf`: the record must also have at least
 * one of these texts, if there are any.
 */
export type RecordTest = {
  readonly stage: string | null;
  readonly texts: readonly string[];
  readonly oneOf: readonly string[];
};

const ANY_RECORD: RecordTest = { stage: null, texts: [], oneOf: [] };

/**
 * Reads the records of commands, one answer per key, in the order of the keys; null if there is none, or it fails the
 * test. Redis leaves out what fails, so this process does not decode it.
 */
export function readMatching(
  parts: ReadParts,
  keys: readonly CommandKey[],
  test: RecordTest,
): Promise<readonly (Command | null)[]> {
  return scattered(parts.store, keys, {
    most: READ_BATCH,
    ask: (partition, some) =>
      readNamed(
        parts,
        partition,
        some.map((key) => nameArgs(parts.store, key)),
        test,
      ),
  });
}

/** The name of a command in acts: the hash of its client, its id, and the hash of its user. */
export type CommandName = ReturnType<typeof nameArgs>;

/** Does the same as `readMatching`, for at most READ_BATCH names in one partition. */
export async function readNamed(
  { store, retentionMs }: ReadParts,
  partition: number,
  names: readonly CommandName[],
  test: RecordTest,
): Promise<readonly (Command | null)[]> {
  if (names.length === 0) return [];
  const { stage, texts, oneOf } = test;
  const tested = [stage, texts.length, oneOf.length, ...texts, ...oneOf];
  const [now, ...records] = listOf(await store.act(partition, 'commands-read', [...tested, ...names.flat()]));
  return names.map((_, i) => {
    const command = decodeCommandOr(records[i] ?? null);
    return command && retained(command, { now, retentionMs });
  });
}

/** Returns the Redis command that reads the state and the request of a live command in this partition. */
export function readOfLive(store: Store, partition: number, key: CommandKey): ReadCommand {
  const [client, commandId] = nameArgs(store, key);
  return ['HMGET', store.key(partition, 'client', client), `s${commandId}`, `a${commandId}`];
}

/** Decodes the command in a reply to `readOfLive`; null if it is not live. */
export function decodeLive(reply: Reply | undefined): Command | null {
  const [state, request] = listOf(reply);
  return typeof state === 'string' && typeof request === 'string' ? decodeCommand(state + request) : null;
}

/** Lists the keys of a client's commands that have not ended. */
export async function getLive(store: Store, { userId, clientId }: ClientKey): Promise<readonly CommandKey[]> {
  const client = store.key(store.partitionOfUser(userId), 'client', store.hash(userId, clientId));
  const [fields] = await store.read([liveRead(client)]);
  return liveIds(fields).map((commandId) => ({ userId, clientId, commandId }));
}

/** Counts the commands of each of these clients that have not ended. */
export function getLoads(store: Store, clients: readonly ClientKey[]): Promise<readonly CommandLoad[]> {
  return scattered(store, clients, {
    most: COUNT_BATCH,
    async ask(partition, some) {
      const hashes = some.map(({ userId, clientId }) => store.hash(userId, clientId));
      const counts: number[] = [];
      // One act may count only the first of these clients; the next act continues with the others.
      while (counts.length < 2 * hashes.length) {
        const left = hashes.slice(counts.length / 2);
        counts.push(...listOf(await store.act(partition, 'commands-loads', left)).map(Number));
      }
      return some.map((_, i) => ({ inFlight: counts[2 * i] ?? 0, queued: counts[2 * i + 1] ?? 0 }));
    },
  });
}
