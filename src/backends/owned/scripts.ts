/**
 * The Lua scripts, and the functions that call them, by which processes that own partitions write and read their common
 * state in Redis.
 *
 * All scripts but one allow writes when Redis has no memory left, because ends must be recorded even then. A script
 * that depends on a fence compares it first, and writes nothing if it differs.
 */
import { createHash } from 'node:crypto';
import { CallboardError } from '../../core/errors.ts';
import { isCluster, unavailable, type Client } from '../redis/client.ts';
import { fenceText, type Fence } from './fence.ts';
import type { PartitionKeys } from './keys.ts';

const HEAD = '#!lua flags=allow-oom\n';

/**
 * Appends the facts of one turn to the logs of a slot group, and publishes the messages that depend on them. KEYS: the
 * map; for each append a fence and a log; for each check a fence. ARGV: the expected map; the number of appends; the
 * number of checks; for each append the expected fence, the new fence, the number and the batch; for each check the
 * expected fence; then channels and messages in pairs. Returns 0, or the index of the first key with another value (0
 * for the map) and that value.
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

/**
 * In a cluster, PUBLISH sends a message to every node, but SPUBLISH only to the node that serves the channel's slot.
 */
const [TURN, SHARDED_TURN] = [turnScript('PUBLISH'), turnScript('SPUBLISH')];

/**
 * Sets a fence. KEYS: fence, map, then lease keys of processes. ARGV: the expected fence ('' if there must be none),
 * the new fence, the expected map, and how many of the processes must be alive; the processes after these must be dead.
 * Returns 1 if the fence is set, otherwise 0. If the answer of the first call is lost, a repeated call also returns 1.
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

/** Returns 0 from the script unless the fence begins with ARGV[1], which names the owner and its epoch. */
const OWNED = `
local fence = redis.call('GET', KEYS[1])
if not fence or string.sub(fence, 1, #ARGV[1]) ~= ARGV[1] then return 0 end`;

/**
 * Makes a snapshot the valid one and removes the data that it replaces. Returns 0 if the pieces of the snapshot have
 * expired.
 */
const REPLACE = `
if redis.call('PERSIST', KEYS[4]) == 0 then return 0 end
redis.call('SET', KEYS[2], ARGV[3])
if KEYS[5] ~= KEYS[4] then redis.call('UNLINK', KEYS[5]) end
redis.call('XTRIM', KEYS[3], 'MINID', string.format('%.0f', tonumber(ARGV[2]) + 1) .. '-0')`;

/**
 * Commits a snapshot. KEYS: fence, snapshotAt, log, the new snapshot, the previous one. ARGV: the beginning that the
 * fence must have, the number of the last batch that the snapshot replaces, the new value of snapshotAt. Returns 1, or
 * 0 if the snapshot was not committed. It is not committed either if Redis has lost batches that it replaces, because
 * then the fence has a lower number than the snapshot.
 */
const COMMIT_SNAPSHOT = `${HEAD}${OWNED}
if tonumber(string.sub(fence, #ARGV[1] + 1)) < tonumber(ARGV[2]) then return 0 end${REPLACE}
return 1`;

/**
 * Replaces a log by a snapshot and the batches that follow it. KEYS and ARGV as for COMMIT_SNAPSHOT; then ARGV has the
 * new fence, and numbers and batches in pairs. It is a script because a Redis without memory refuses transactions.
 * Returns 1, or 0 if nothing was replaced.
 */
const BEGIN_ANEW = `${HEAD}${OWNED}${REPLACE}
for i = 5, #ARGV, 2 do redis.call('XADD', KEYS[3], ARGV[i] .. '-0', 'b', ARGV[i + 1]) end
redis.call('SET', KEYS[1], ARGV[4])
return 1`;

/**
 * Renews the lease of a process. In the same step it reads the leases of all processes: whatever it reads was written
 * before the renewal, so a Redis that still has the renewal has lost none of it. KEYS: the lease; the set of processes
 * (optional); the report of the process (optional). ARGV: the text of the lease, its lifetime in ms, the process, the
 * prefix of lease keys; with a report, the report and its lifetime in ms. Returns the previous text of the lease; with
 * a set, also each process and its text.
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

/** Removes a snapshot that is not committed. A committed snapshot has no expiry. KEYS: the snapshot. */
const DROP_PIECES = `${HEAD}
if redis.call('PTTL', KEYS[1]) >= 0 then redis.call('UNLINK', KEYS[1]) end`;

/** Does nothing. Without flags Redis assumes that it writes, and refuses it if there is no memory left. */
const MAY_GROW = '#!lua\nreturn 1';

/** The texts of all scripts, for callers that run them by themselves. */
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

/** A batch to append, with the fence that must be in Redis before it and the fence that is set with it. */
export type Append = {
  readonly keys: PartitionKeys;
  readonly before: string;
  readonly after: string;
  readonly number: number;
  readonly text: string;
};

/** One call of the script that appends batches to the logs of one slot group. */
export type TurnCall = {
  readonly mapKey: string;
  readonly map: string;
  readonly appends: readonly Append[];
  /** Fences that must have these values, because mail of this call depends on their partitions. */
  readonly checks: readonly { readonly key: string; readonly fence: string }[];
  /** Channels and messages in pairs. */
  readonly mail: readonly string[];
};

/**
 * Runs the call, and resolves with whether it wrote. It wrote nothing if the map or a fence differs. Rejects if there
 * is no answer: then the script may have run, or may still run. `by`: `text` sends the whole script, so that this Redis
 * caches it.
 */
export async function runTurn(client: Client, call: TurnCall, by: 'sha' | 'text'): Promise<boolean> {
  const [count, ...words] = wordsOf(call);
  const [text, sha] = isCluster(client) ? [SHARDED_TURN, SHARDED_TURN_SHA] : [TURN, TURN_SHA];
  const reply: unknown = await (by === 'sha'
    ? client.evalsha(sha, count, ...words)
    : client.eval(text, count, ...words));
  return reply === 0;
}

/**
 * Publishes a message to the same channel as the script of a turn. Rejects if it is unknown whether Redis published it.
 */
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
  /** The expected fence; null if there must be none. */
  readonly found: string | null;
  readonly next: Fence;
  /** The lease keys of processes that must be alive (`alive`) or dead (`dead`). */
  readonly alive?: readonly string[];
  readonly dead?: readonly string[];
};

/** Sets a fence if the current fence is the expected one. Resolves with whether it was set. */
export async function setFence(client: Client, change: FenceChange): Promise<boolean> {
  const { keys, map, found, next, alive = [], dead = [] } = change;
  const names = [keys.fence, keys.map, ...alive, ...dead];
  const args = [found ?? '', fenceText(next), map, alive.length];
  return (await client.eval(SET_FENCE, names.length, ...names, ...args)) === 1;
}

/** A snapshot whose pieces are written. `replaces`: the name of the previous snapshot. */
export type SnapshotCommit = {
  readonly keys: PartitionKeys;
  readonly owner: Pick<Fence, 'process' | 'epoch'>;
  readonly name: string;
  readonly number: number;
  readonly replaces: string;
};

/**
 * Commits a snapshot. Throws `store_unavailable` if another process owns the partition, if pieces have expired, or if
 * Redis has lost batches.
 */
export async function commitSnapshot(client: Client, commit: SnapshotCommit): Promise<void> {
  const [count, ...words] = commitWords(commit);
  if ((await client.eval(COMMIT_SNAPSHOT, count, ...words)) !== 1) refuseSnapshot();
}

/**
 * Replaces the log in Redis by a snapshot and the batches that follow it, atomically. Throws `store_unavailable` if
 * another process owns the partition, or if pieces have expired.
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
 * `live`: returns the lease key of a process. `processes`: the key of the set of processes; absent if it is in another
 * slot group. `report`: the key, text and lifetime (in milliseconds) of the report of the process; null if the report
 * has not changed.
 */
type LeaseText = Pick<PartitionKeys, 'live'> & {
  readonly processes?: string;
  readonly report?: { readonly key: string; readonly text: string; readonly ms: number } | null;
  readonly text: string;
  readonly leaseMs: number;
  readonly process: string;
};

/** A process id, with the text of its lease. */
type ProcessText = readonly [process: string, text: string];

/**
 * Renews the lease of a process in one slot group. Resolves with the previous text of the lease (null if there was
 * none). If the set of processes is in this group, resolves with the leases of all processes as well.
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

/**
 * Appends a piece to a snapshot that is not committed. The snapshot expires unless another piece follows within
 * `expiryMs` milliseconds or it is committed.
 */
export async function addPiece(client: Client, key: string, piece: string, expiryMs: number): Promise<void> {
  await client.eval(ADD_PIECE, 1, key, piece, expiryMs);
}

/** Removes the pieces of a snapshot, unless it is committed. */
export async function dropPieces(client: Client, key: string): Promise<void> {
  await client.eval(DROP_PIECES, 1, key);
}

/** Resolves with whether the Redis that holds this key has memory left. Rejects if Redis does not answer. */
export async function hasMemory(client: Client, key: string): Promise<boolean> {
  try {
    await client.eval(MAY_GROW, 1, key);
    return true;
  } catch (error) {
    if (unavailable(error).code === 'store_full') return false;
    throw error;
  }
}
