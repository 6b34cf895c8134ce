/** Reads the names of commands, reads their records by key or by name, and counts them. */
import type { Command } from '../../../core/commands/command.ts';
import type { CommandLoad } from '../../../core/commands/command-store.ts';
import type { DeliveryFilter } from '../../../core/commands/delivery-inspector.ts';
import type { ClientKey, CommandKey } from '../../../core/ids.ts';
import type { PageRequest, Position } from '../../../core/page.ts';
import { liveIds, liveRead } from './link-transaction.ts';
import { nameArgs, type RedisDeps } from '../deps.ts';
import { decodeCommand, decodeCommandOr, retained } from './record.ts';
import { listOf, type ReadCommand, type Reply } from '../replies.ts';
import { inByteOrder, partitionsOf, scattered } from '../store-partitions.ts';
import type { Store } from '../store.ts';

/** The most records that one act reads as they are stored. Such a call takes 2 to 5 ms (see `read` in commands.lua). */
export const READ_BATCH = 256;

/**
 * The most clients whose commands one act counts. It is the most connections of a page. The limits of capacity scopes
 * bound how many commands these clients have together.
 */
const COUNT_BATCH = 250;

type ReadDeps = Pick<RedisDeps, 'store' | 'retentionMs'>;

/** Reads the records of commands, one answer per key, in the order of the keys. */
export function getCommands(deps: ReadDeps, keys: readonly CommandKey[]): Promise<readonly (Command | null)[]> {
  return readMatching(deps, keys, ANY_RECORD);
}

/**
 * A test of a record's text: the stage that it must have (null: any), and the texts that it must contain. `oneOf`: if
 * not empty, the record must contain at least one of these texts too.
 */
export type RecordTest = {
  readonly stage: string | null;
  readonly texts: readonly string[];
  readonly oneOf: readonly string[];
};

const ANY_RECORD: RecordTest = { stage: null, texts: [], oneOf: [] };

/**
 * Reads the records of commands, one answer per key, in the order of the keys; null if there is no record, or if it
 * fails the test. Redis leaves out records that fail, so that this process need not decode them.
 */
export function readMatching(
  deps: ReadDeps,
  keys: readonly CommandKey[],
  test: RecordTest,
): Promise<readonly (Command | null)[]> {
  return scattered(deps.store, keys, {
    most: READ_BATCH,
    ask: (partition, some) =>
      readNamed(
        deps,
        partition,
        some.map((key) => nameArgs(deps.store, key)),
        test,
      ),
  });
}

/** The name of a command in acts: its client's hash, its id, and its user's hash. */
export type CommandName = ReturnType<typeof nameArgs>;

/** Does the same as `readMatching`, for at most READ_BATCH names in one partition. */
export async function readNamed(
  { store, retentionMs }: ReadDeps,
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

/** Lists the keys of a client's live commands. */
export async function getLive(store: Store, { userId, clientId }: ClientKey): Promise<readonly CommandKey[]> {
  const client = store.key(store.partitionOfUser(userId), 'client', store.hash(userId, clientId));
  const [fields] = await store.read([liveRead(client)]);
  return liveIds(fields).map((commandId) => ({ userId, clientId, commandId }));
}

/** Counts the live commands of each of these clients. */
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

// Reads the names of commands, live and ended, in byte order.

/** Whose commands are read: those of a client, of a user, or of all users. */
type Owner = Pick<DeliveryFilter, 'userId' | 'clientId'>;
type NamesPage = Pick<PageRequest, 'first' | 'after'>;

/**
 * Reads the next names of commands (user NUL client NUL command), merged over the partitions. Some of the commands may
 * no longer exist.
 */
export async function namesAfter(store: Store, owner: Owner, page: NamesPage): Promise<readonly string[]> {
  const { userId, clientId } = owner;
  const { first, after } = page;
  const found = await Promise.all(
    partitionsOf(store, userId).map(async (partition) => {
      if (userId === null) return namesOfAll(store, partition, page);
      const { min, max } = clientId === null ? EVERY_NAME : namesOfClient(clientId);
      const user = { userId, min: after === null ? min : afterName(after), max };
      return namesIn(store, await keysOf(store, partition, [user]), first);
    }),
  );
  return inByteOrder([...new Set(found.flat())], (name) => name).slice(0, first);
}

/**
 * The most users whose keys are read at once. With this number, a page over users with a few names each takes few round
 * trips.
 */
const USERS = 64;

/** Bounds for ZRANGEBYLEX of the names of one user, which have the form client NUL command. */
type NameBounds = { readonly min: string; readonly max: string };
const EVERY_NAME: NameBounds = { min: '-', max: '+' };

function namesOfClient(clientId: string): NameBounds {
  return { min: `[${clientId}\0`, max: `(${clientId}\u0001` };
}

/** Returns the lower bound for the names after a position. */
function afterName([, clientId = '', commandId = '']: Position): string {
  return `(${clientId}\0${commandId}`;
}

/** Reads the next names of all users of a partition: at least `first`, if there are so many. */
async function namesOfAll(store: Store, partition: number, { first, after }: NamesPage): Promise<readonly string[]> {
  const index = store.key(partition, 'cmdusers');
  const found = new Set<string>();
  for (let from = after === null ? '-' : `[${after[0] ?? ''}\0`; ;) {
    const [reply] = await store.read([['ZRANGEBYLEX', index, from, '+', 'LIMIT', 0, USERS]]);
    const members = listOf(reply).map(String);
    const users = members.map((member) => {
      const [userId = ''] = member.split('\0');
      return { userId, ...EVERY_NAME, ...(after?.[0] === userId && { min: afterName(after) }) };
    });
    let left = await keysOf(store, partition, users);
    while (left.length > 0 && found.size < first) {
      const enough = await usersWith(store, left, first - found.size);
      for (const name of await namesIn(store, left.slice(0, enough), first)) found.add(name);
      left = left.slice(enough);
    }
    if (users.length < USERS || found.size >= first) return [...found];
    from = `(${members.at(-1) ?? ''}`;
  }
}

type NamesOfUser = NameBounds & { readonly userId: string };
/** The keys that contain a user's names: one for each span with names (see lib-spans). A name may be in two spans. */
type KeysOfUser = NamesOfUser & { readonly keys: readonly string[] };

async function keysOf(store: Store, partition: number, users: readonly NamesOfUser[]): Promise<readonly KeysOfUser[]> {
  const hashes = users.map(({ userId }) => store.hash(userId));
  const spans = await store.read(hashes.map((hash) => ['ZRANGE', store.key(partition, 'spans', hash), 0, -1]));
  return users.map((user, i) => {
    const named = listOf(spans[i])
      .map(String)
      .filter((span) => span.startsWith('n'));
    return { ...user, keys: named.map((span) => store.key(partition, 'names', hashes[i] ?? '', span.slice(1))) };
  });
}

/** Returns how many of the first users have at least `wanted` names together; all users if there are fewer names. */
async function usersWith(store: Store, users: readonly KeysOfUser[], wanted: number): Promise<number> {
  const counts = await store.read(
    users.flatMap(({ keys, min, max }) => keys.map((key) => ['ZLEXCOUNT', key, min, max] as const)),
  );
  let [read, names] = [0, 0];
  for (const [i, { keys }] of users.entries()) {
    for (let k = 0; k < keys.length; k++) names += Number(counts[read++]);
    if (names >= wanted) return i + 1;
  }
  return users.length;
}

/** Reads the names of users, at most `first` from each key. */
async function namesIn(store: Store, users: readonly KeysOfUser[], first: number): Promise<readonly string[]> {
  const wanted = users.flatMap(({ keys, ...user }) => keys.map((key) => ({ ...user, key })));
  const names = await store.read(wanted.map(({ key, min, max }) => ['ZRANGEBYLEX', key, min, max, 'LIMIT', 0, first]));
  return wanted.flatMap(({ userId }, i) => listOf(names[i]).map((name) => `${userId}\0${String(name)}`));
}
