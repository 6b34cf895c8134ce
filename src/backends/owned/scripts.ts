/**
 * The scripts by which processes agree through Redis. Each compares a text first and writes nothing if it differs; the
 * found value comes back. They run in a Redis without room too, because ends must be recorded.
 */
import { createHash } from 'node:crypto';
import { CallboardError } from '../../core/errors.ts';
import { isCluster, unavailable, type Client } from '../redis/client.ts';
import { fenceText, type Fence } from './fence.ts';
import type { PartitionKeys } from './keys.ts';

const HEAD = '#!lua flags=allow-oom\n';

/**
 * Appends the facts of one turn to the logs of a slot group, and publishes what depends on them. KEYS: the map; for each
 * append a fence and a log; for each check a fence. ARGV: the map, the numbers of appends and of checks; for each append
 * the fence that must be there, the one to set, the number and the batch; for each check the fence that must be there;
 * then channels and messages. Returns 0, or which key differs (0: the map) and its value.
 */
const turnScript = (publish: 'PUBLISH' | 'SPUBLISH'): string => `${HEAD}
local appends, checks = tonumber(ARGV[2]), tonumber(ARGV[3])
local map = redis.call('GET', KEYS[1])
if map ~= ARGV[1] then return {0, map} end
for i = 1, appends do
  local found = redis.call('GET', KEYS[2 * i])
  if found ~= ARGV[4 * i] then return {i, found} end
end
for i = 1, checks do
  local found = redis.call('GET', KEYS[1 + 2 * appends + i])
  if found ~= ARGV[3 + 4 * appends + i] then return {appends + i, found} end
end
for i = 1, appends do
  redis.call('XADD', KEYS[2 * i + 1], ARGV[4 * i + 2] .. '-0', 'b', ARGV[4 * i + 3])
  redis.call('SET', KEYS[2 * i], ARGV[4 * i + 1])
end
for i = 4 + 4 * appends + checks, #ARGV, 2 do redis.call('${publish}', ARGV[i], ARGV[i + 1]) end
return 0`;

/** A cluster sends what PUBLISH publishes to each of its nodes; what SPUBLISH publishes stays where the slot is. */
const [TURN, SHARDED_TURN] = [turnScript('PUBLISH'), turnScript('SPUBLISH')];

/**
 * Sets a fence. KEYS: fence, map, then keys of processes. ARGV: the fence that must be there ('': none), the one to set,
 * the map, how many of the processes must be alive; the others must be dead. Returns 1, or 0. A call that runs twice,
 * because its first answer was lost, returns 1 twice.
 */
const SET_FENCE = `${HEAD}
local found = redis.call('GET', KEYS[1]) or ''
if found == ARGV[2] then return 1 end
if found ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[2], ARGV[3], 'NX')
if redis.call('GET', KEYS[2]) ~= ARGV[3] then return 0 end
for i = 3, #KEYS do
  local alive = redis.call('EXISTS', KEYS[i]) == 1
  if alive ~= (i - 2 <= tonumber(ARGV[4])) then return 0 end
end
redis.call('SET', KEYS[1], ARGV[2])
return 1`;

/** Returns 0 if the partition has another owner. */
const OWNED = `
local fence = redis.call('GET', KEYS[1])
if not fence or string.sub(fence, 1, #ARGV[1]) ~= ARGV[1] then return 0 end`;

/** Makes a snapshot the one that counts, and removes what it replaces; or returns 0, if its pieces are gone. */
const REPLACE = `
if redis.call('PERSIST', KEYS[4]) == 0 then return 0 end
redis.call('SET', KEYS[2], ARGV[3])
if KEYS[5] ~= KEYS[4] then redis.call('UNLINK', KEYS[5]) end
redis.call('XTRIM', KEYS[3], 'MINID', string.format('%.0f', tonumber(ARGV[2]) + 1) .. '-0')`;

/**
 * Commits a snapshot. KEYS: fence, snapshotAt, log, the new snapshot, the one before. ARGV: how the fence must begin, the
 * number of the last batch that the snapshot replaces, the value of snapshotAt. Returns 1, or 0; 0 too if Redis has lost
 * batches that the snapshot replaces, because then the fence does not fit it.
 */
const COMMIT_SNAPSHOT = `${HEAD}${OWNED}
if tonumber(string.sub(fence, #ARGV[1] + 1)) < tonumber(ARGV[2]) then return 0 end${REPLACE}
return 1`;

/**
 * Begins a log anew with a snapshot, and with the batches that follow it. KEYS and ARGV as for COMMIT_SNAPSHOT, then the
 * fence to set, and numbers and batches. It is one script, because a Redis without memory refuses transactions. Returns 1,
 * or 0.
 */
const BEGIN_ANEW = `${HEAD}${OWNED}${REPLACE}
for i = 5, #ARGV, 2 do redis.call('XADD', KEYS[3], ARGV[i] .. '-0', 'b', ARGV[i + 1]) end
redis.call('SET', KEYS[1], ARGV[4])
return 1`;

/**
 * Renews the lease of a process, and reads those of all in the same step: what is read here was written before the
 * renewal, so a Redis that still has the renewal has lost none of it. KEYS: the lease; the set of processes, or none; the
 * report of the process, or none. ARGV: the text, its length of life in ms, the process, how the keys of leases begin; and
 * the report and its length of life in ms. Returns the text before, and with a set each process and its text.
 */
const RENEW = `${HEAD}
local found = { redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2], 'GET') }
if not KEYS[2] then return found end
if KEYS[3] then redis.call('SET', KEYS[3], ARGV[5], 'PX', ARGV[6]) end
redis.call('SADD', KEYS[2], ARGV[3])
local processes = redis.call('SMEMBERS', KEYS[2])
for from = 1, #processes, 1000 do
  local names = {}
  for i = from, math.min(from + 999, #processes) do names[#names + 1] = ARGV[4] .. processes[i] end
  for i, text in ipairs(redis.call('MGET', unpack(names))) do
    local process = processes[from + i - 1]
    if text then
      found[#found + 1] = process
      found[#found + 1] = text
    else
      redis.call('SREM', KEYS[2], process)
    end
  end
end
return found`;

/** Appends a piece to a snapshot that is not committed. KEYS: the snapshot. ARGV: the piece, its expiry in ms. */
const ADD_PIECE = `${HEAD}
redis.call('RPUSH', KEYS[1], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])`;

/** Removes a snapshot unless it is committed: then it has no expiry. KEYS: the snapshot. */
const DROP_PIECES = `${HEAD}
if redis.call('PTTL', KEYS[1]) >= 0 then redis.call('UNLINK', KEYS[1]) end`;

/** Does nothing. It is declared as one that may write, so a Redis without memory refuses it. */
const MAY_GROW = '#!lua\nreturn 1';

/** The texts of all scripts, for those who run them elsewhere. */
export const OWNER_SCRIPTS = {
  turn: TURN,
  setFence: SET_FENCE,
  commitSnapshot: COMMIT_SNAPSHOT,
  beginAnew: BEGIN_ANEW,
  renew: RENEW,
  addPiece: ADD_PIECE,
  dropPieces: DROP_PIECES,
  mayGrow: MAY_GROW,
} as const;

const digestOf = (text: string): string => createHash('sha1').update(text).digest('hex');
const [TURN_SHA, SHARDED_TURN_SHA] = [digestOf(TURN), digestOf(SHARDED_TURN)];

/** A batch, the fence that must be there before it, and the one that is there after it. */
export type Append = {
  readonly keys: PartitionKeys;
  readonly before: string;
  readonly after: string;
  readonly number: number;
  readonly text: string;
};

/** One call of the script that appends batches to the logs of partitions, all of one slot group. */
export type TurnCall = {
  readonly mapKey: string;
  readonly map: string;
  readonly appends: readonly Append[];
  /** Fences that must be there, because mail depends on their partitions. */
  readonly checks: readonly { readonly key: string; readonly fence: string }[];
  /** Channels and messages, one after the other. */
  readonly mail: readonly string[];
};

/**
 * Runs a call. Resolves with whether it wrote; it wrote nothing if the map or a fence differs. Rejects if there is no
 * answer: then it may have run, or may still run. `by`: `text` also makes the script known to this Redis.
 */
export async function runTurn(client: Client, call: TurnCall, by: 'sha' | 'text'): Promise<boolean> {
  const [count, ...words] = wordsOf(call);
  const [text, sha] = isCluster(client) ? [SHARDED_TURN, SHARDED_TURN_SHA] : [TURN, TURN_SHA];
  const reply: unknown = await (by === 'sha'
    ? client.evalsha(sha, count, ...words)
    : client.eval(text, count, ...words));
  return reply === 0;
}

/** Publishes a message as the script of a turn does. Rejects if it is not known whether Redis did. */
export async function publish(client: Client, channel: string, text: string): Promise<void> {
  await (isCluster(client) ? client.spublish(channel, text) : client.publish(channel, text));
}

function wordsOf({ mapKey, map, appends, checks, mail }: TurnCall): readonly [number, ...(string | number)[]] {
  const keys = [
    mapKey,
    ...appends.flatMap(({ keys: { fence, log } }) => [fence, log]),
    ...checks.map(({ key }) => key),
  ];
  const args: (string | number)[] = [map, appends.length, checks.length];
  for (const { before, after, number, text } of appends) args.push(before, after, number, text);
  for (const { fence } of checks) args.push(fence);
  return [keys.length, ...keys, ...args, ...mail];
}

type FenceChange = {
  readonly keys: Pick<PartitionKeys, 'fence' | 'map'>;
  readonly map: string;
  /** The text that must be there; null: there must be none. */
  readonly found: string | null;
  readonly next: Fence;
  /** The keys of processes that must be alive, and of those that must be dead. */
  readonly alive?: readonly string[];
  readonly dead?: readonly string[];
};

/** Sets a fence, if the one that was found is still there. Resolves with whether it did. */
export async function setFence(client: Client, change: FenceChange): Promise<boolean> {
  const { keys, map, found, next, alive = [], dead = [] } = change;
  const names = [keys.fence, keys.map, ...alive, ...dead];
  const args = [found ?? '', fenceText(next), map, alive.length];
  return (await client.eval(SET_FENCE, names.length, ...names, ...args)) === 1;
}

/** A snapshot whose pieces are there. `replaces`: the name of the one before. */
export type SnapshotCommit = {
  readonly keys: PartitionKeys;
  readonly owner: Pick<Fence, 'process' | 'epoch'>;
  readonly name: string;
  readonly number: number;
  readonly replaces: string;
};

/** Throws `store_unavailable` if another process owns the partition, or if pieces have expired or batches are lost. */
export async function commitSnapshot(client: Client, commit: SnapshotCommit): Promise<void> {
  const [count, ...words] = commitWords(commit);
  if ((await client.eval(COMMIT_SNAPSHOT, count, ...words)) !== 1) refuseSnapshot();
}

/**
 * Begins a log anew with a snapshot, and with the batches that follow it. Redis gets all of it or nothing. Throws
 * `store_unavailable` if another process owns the partition, or if pieces have expired.
 */
export async function beginAnew(
  client: Client,
  commit: SnapshotCommit,
  batches: readonly { readonly number: number; readonly text: string }[],
): Promise<void> {
  const { owner, number } = commit;
  const [count, ...words] = commitWords(commit);
  const fence = fenceText({ ...owner, number: batches.at(-1)?.number ?? number });
  const added = batches.flatMap((batch) => [batch.number, batch.text]);
  if ((await client.eval(BEGIN_ANEW, count, ...words, fence, ...added)) !== 1) refuseSnapshot();
}

function commitWords({
  keys,
  owner,
  name,
  number,
  replaces,
}: SnapshotCommit): readonly [number, ...(string | number)[]] {
  const names = [keys.fence, keys.snapshotAt, keys.log, keys.snapshot(name), keys.snapshot(replaces)];
  return [names.length, ...names, `${owner.process} ${owner.epoch} `, number, `${number} ${name}`];
}

function refuseSnapshot(): never {
  throw new CallboardError(
    'store_unavailable',
    'The snapshot does not count: its partition has another owner, its pieces are gone, or batches are lost.',
  );
}

/**
 * `live`: returns the key of a process' lease. `processes`: the set of processes; absent: it is in another group. `report`:
 * the key of what the process reports, its text and how long it is kept, in milliseconds; null: it is as before.
 */
type LeaseText = Pick<PartitionKeys, 'live'> & {
  readonly processes?: string;
  readonly report?: { readonly key: string; readonly text: string; readonly ms: number } | null;
  readonly text: string;
  readonly leaseMs: number;
  readonly process: string;
};

/** What a process says in its lease. */
type ProcessText = readonly [process: string, text: string];

/**
 * Renews the lease of a process in one slot group. Resolves with what it said before (null: it had no lease), and with
 * the leases of all processes, if they are in this group.
 */
export async function renewLease(
  client: Client,
  { live, processes, report = null, text, leaseMs, process }: LeaseText,
): Promise<{ readonly before: string | null; readonly leases: readonly ProcessText[] }> {
  const names = [live(process), ...(processes === undefined ? [] : [processes]), ...(report ? [report.key] : [])];
  const more = report ? [report.text, report.ms] : [];
  const found = await client.eval(RENEW, names.length, ...names, text, leaseMs, process, live(''), ...more);
  const [before = null, ...texts] = found as (string | null)[];
  const leases = texts.flatMap((name, i) => (i % 2 === 0 ? [[name ?? '', texts[i + 1] ?? ''] as const] : []));
  return { before, leases };
}

/** Appends a piece to a snapshot that is not committed. Without another one it expires after this many milliseconds. */
export async function addPiece(client: Client, key: string, piece: string, expiryMs: number): Promise<void> {
  await client.eval(ADD_PIECE, 1, key, piece, expiryMs);
}

/** Removes the pieces of a snapshot, unless it is committed. */
export async function dropPieces(client: Client, key: string): Promise<void> {
  await client.eval(DROP_PIECES, 1, key);
}

/** Resolves with whether the Redis that has this key has memory for more. Rejects if it does not answer. */
export async function hasMemory(client: Client, key: string): Promise<boolean> {
  try {
    await client.eval(MAY_GROW, 1, key);
    return true;
  } catch (error) {
    if (unavailable(error).code === 'store_full') return false;
    throw error;
  }
}
