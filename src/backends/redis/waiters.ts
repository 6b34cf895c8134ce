/** Core's WaiterStore over Redis: registers waits in Redis, and lists the waits of this process. */
import { matchesAny } from '../../core/auth/patterns.ts';
import type {
  CountedScan,
  PendingWait,
  WaiterFilter,
  WaiterStore,
  AttachResult,
} from '../../core/commands/waiter-store.ts';
import { COUNT_SCAN } from '../../core/limits.ts';
import { comparePositions, SCAN_BUDGET, type PageRequest, type Position, type Scan } from '../../core/page.ts';
import type { Store } from './store.ts';
import { scattered } from './store-partitions.ts';
import { type LocalWait, type LocalWaits } from './waiters-local.ts';
import { matchesCaller } from '../../core/commands/command.ts';
import { satisfied, type NewWaiter } from '../../core/commands/waiter.ts';
import { decodeLive, readOfLive } from './commands/get.ts';
import { changeCommand, commandReads, knownCommand } from './commands/store.ts';
import { clientKeyText, type CommandKey } from '../../core/ids.ts';
import { commandDeps, type RedisDeps, type CommandDeps } from './deps.ts';
import { retained } from './commands/record.ts';

/** Creates core's WaiterStore over Redis. It lists only the waits of this process; listing them changes nothing. */
export function createRedisWaiters(redis: RedisDeps): WaiterStore {
  const deps = commandDeps(redis);
  const { store, waits } = deps;
  const listing = { store, waits, clock: redis.clock };
  return {
    attach: (key, request) => attach(deps, key, request),
    remove: (key, rpcId) => remove(deps, key, rpcId),
    list: (filter, page) => listWaits(listing, filter, page),
    countByNode: (filter) => tallyWaits(listing, filter),
    ofUsers: (userIds, first) => summarize(deps, userIds, { first, groupOf: ({ key }) => key.userId }),
    ofClients: (keys, first) =>
      summarize(deps, keys.map(clientKeyText), { first, groupOf: ({ key }) => clientKeyText(key) }),
    async ofCommands(keys) {
      const lists = keys.map((key) => waits.ofCommand(key));
      const read = (await readWaits(store, lists.flat())).values();
      return lists.map((list) => list.flatMap(() => read.next().value?.row ?? []));
    },
  };
}

async function attach(deps: CommandDeps, key: CommandKey, request: NewWaiter): Promise<AttachResult> {
  const { waits, retentionMs } = deps;
  const { rpcId } = request;
  const wait = waits.begin(key, request);
  const known = wait.listed !== null;
  try {
    const { answer, at } = await changeCommand<AttachResult>(deps, {
      key,
      given: { wait: wait.number },
      known: (failed) => knownCommand(deps, key, failed),
      first: commandReads(deps, key),
      run: (rules) => rules.attach(key, request),
      grows: true,
      chars: 1_000,
    });
    if (answer.kind !== 'waiting') waits.drop(rpcId);
    if (answer.kind !== 'waiting' && answer.kind !== 'satisfied') return answer;
    const command = retained(answer.command, { now: at, retentionMs });
    if (answer.kind === 'satisfied') return { ...answer, command };
    return { kind: 'waiting', waiter: waits.register(wait, { command, at }), command };
  } catch (error) {
    if (!known) waits.drop(rpcId);
    throw error;
  }
}

async function remove(deps: CommandDeps, key: CommandKey, rpcId: string): Promise<void> {
  const wait = deps.waits.drop(rpcId);
  if (!wait) return;
  await changeCommand(deps, {
    key,
    given: { wait: wait.number },
    known: (failed) => knownCommand(deps, key, failed),
    first: commandReads(deps, key),
    run: (_rules, tx) => tx.unwait(key, wait.request),
    grows: false,
    chars: 1_000,
  });
}

/** The most commands that one step of a search reads. */
const STRETCH = 500;

type Listing = Pick<RedisDeps, 'store' | 'clock'> & { readonly waits: LocalWaits };

async function listWaits(
  listing: Listing,
  filter: WaiterFilter,
  { first, after }: PageRequest,
): Promise<Scan<PendingWait>> {
  const { store, waits } = listing;
  const candidates = matching(waits, { filter, after, bornBefore: bornBefore(listing, filter), most: SCAN_BUDGET });
  const rows: ListedWait[] = [];
  const isOfAny = filter.nodeId === null && filter.contextId === null && !filter.seen;
  const stretch = isOfAny ? Math.min(STRETCH, first + 1) : STRETCH;
  for (let at = 0; at < candidates.length; at += stretch) {
    const found = await readPending(store, candidates.slice(at, at + stretch));
    rows.push(...found.filter(({ row }) => isOfCommand(filter, row)));
    if (rows.length > first) break;
  }
  if (rows.length > first) return { rows: rows.slice(0, first), next: rows[first - 1]?.position ?? null, gaps: [] };
  if (candidates.length < SCAN_BUDGET) return { rows, next: null, gaps: [] };
  return { rows, next: candidates.at(-1)?.listed?.position ?? null, gaps: [], cut: true };
}

/** Counts the waits that match a filter, by node. Reads at most COUNT_SCAN rows. */
async function tallyWaits(
  listing: Listing,
  filter: WaiterFilter,
): Promise<Awaited<ReturnType<WaiterStore['countByNode']>>> {
  const { store, waits } = listing;
  const bounds = { filter, after: null, bornBefore: bornBefore(listing, filter), most: COUNT_SCAN };
  const candidates = matching(waits, bounds);
  const counts = new Map<string | null, number>();
  for (const { row } of await readPending(store, candidates)) {
    if (!isOfCommand(filter, row)) continue;
    const { nodeId } = row.command;
    counts.set(nodeId, (counts.get(nodeId) ?? 0) + 1);
  }
  return { counts, complete: candidates.length < COUNT_SCAN };
}

/** Lists the first waits of each group, and counts all waits of the group. `groupOf` returns the group of a wait. */
async function summarize(
  { store, waits }: Pick<Listing, 'store' | 'waits'>,
  groups: readonly string[],
  { first, groupOf }: { readonly first: number; readonly groupOf: (wait: LocalWait) => string },
): Promise<readonly CountedScan[]> {
  const found = new Map<string, LocalWait[]>(groups.map((group) => [group, []]));
  for (const wait of waits.listed()) found.get(groupOf(wait))?.push(wait);
  const all = [...found.values()].flat();
  const read = new Map((await readWaits(store, all)).map((row, i) => [all[i], row]));
  return groups.map((group) => {
    const rows = (found.get(group) ?? []).flatMap((wait) => read.get(wait) ?? []);
    const shown = rows.slice(0, first);
    const next = rows.length > shown.length ? (shown.at(-1)?.position ?? null) : null;
    return { total: rows.length, scan: { rows: shown, next, gaps: [] } };
  });
}

type Search = {
  readonly filter: WaiterFilter;
  readonly after: Position | null;
  readonly bornBefore: number;
  readonly most: number;
};

/** Returns the latest time at which a wait may have begun to match the filter. */
function bornBefore({ clock }: Listing, { minAgeMs }: WaiterFilter): number {
  return minAgeMs === null ? Infinity : clock.now() - minAgeMs;
}

/**
 * Returns at most `most` waits that match the filter, except for the conditions on commands, which `isOfCommand`
 * checks.
 */
function matching(waits: LocalWaits, { filter, after, bornBefore, most }: Search): readonly LocalWait[] {
  const { userId, clientId, callerNodeId } = filter;
  const found: LocalWait[] = [];
  for (const wait of waits.listed()) {
    const { key, request, listed } = wait;
    if (!listed || listed.waiter.createdAt > bornBefore) continue;
    if (userId !== null && key.userId !== userId) continue;
    if (clientId !== null && key.clientId !== clientId) continue;
    if (callerNodeId !== null && request.callerNodeId !== callerNodeId) continue;
    if (!matchesCaller(filter, request.caller)) continue;
    if (after && comparePositions(listed.position, after) <= 0) continue;
    found.push(wait);
    if (found.length === most) break;
  }
  return found;
}

/** Whether the command of a wait matches the filter. */
function isOfCommand({ nodeId, contextId, seen }: WaiterFilter, { command }: PendingWait): boolean {
  return (
    (nodeId === null || command.nodeId === nodeId) &&
    (contextId === null || command.contextId === contextId) &&
    (seen === undefined || matchesAny(seen, command.action))
  );
}

/** The most commands that one pipeline reads. */
const READ_BATCH = 500;

/** A wait and its position in listings. */
type ListedWait = { readonly row: PendingWait; readonly position: Position };

/**
 * Reads the current commands of waits. Returns one answer for each wait, in order. The answer is null if the wait is
 * not registered yet, and if the command has reached the stage that the caller waits for: then the reply is on its way.
 */
function readWaits(store: Store, waits: readonly LocalWait[]): Promise<readonly (ListedWait | null)[]> {
  const asked = waits.map((wait) => ({ userId: wait.key.userId, wait }));
  return scattered(store, asked, {
    most: READ_BATCH,
    async ask(partition, some) {
      const replies = await store.read(some.map(({ wait }) => readOfLive(store, partition, wait.key)));
      return some.map(({ wait }, i) => {
        const command = decodeLive(replies[i]);
        if (!wait.listed || !command) return null;
        const { waiter, position } = wait.listed;
        return satisfied(waiter.waitFor, command) ? null : { row: { waiter, command }, position };
      });
    },
  });
}

/** Does the same as `readWaits`, but leaves out the null answers. */
async function readPending(store: Store, waits: readonly LocalWait[]): Promise<readonly ListedWait[]> {
  return (await readWaits(store, waits)).filter((wait) => wait !== null);
}
