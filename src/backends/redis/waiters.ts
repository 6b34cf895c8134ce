/** Lists and counts the waits of this process's callers that match a filter. Changes nothing. */
import type { CountedScan, PendingWait, WaiterFilter, WaiterStore } from '../../../core/commands/stores.ts';
import { COUNT_SCAN } from '../../../core/limits.ts';
import { comparePositions, SCAN_BUDGET, type PageRequest, type Position, type Scan } from '../../../core/page.ts';
import { lookAtNodes } from '../nodes-rows.ts';
import type { Store } from '../store.ts';
import type { LocalWait, LocalWaits } from './local.ts';
import { readPending, readWaits, type ListedWait } from './rows.ts';

/** The partition whose time is read. */
const HOME = 0;
/** The most commands that one part of a search reads. */
const STRETCH = 500;

export type Listing = { readonly store: Store; readonly waits: LocalWaits };

export async function listWaits(
  { store, waits }: Listing,
  filter: WaiterFilter,
  { first, after }: PageRequest,
): Promise<Scan<PendingWait>> {
  const candidates = matching(waits, { filter, after, bornBefore: await bornBefore(store, filter), most: SCAN_BUDGET });
  const rows: ListedWait[] = [];
  const stretch = filter.nodeId === null ? Math.min(STRETCH, first + 1) : STRETCH;
  for (let at = 0; at < candidates.length; at += stretch) {
    const found = await readPending(store, candidates.slice(at, at + stretch));
    rows.push(...found.filter(({ row }) => onNode(filter, row)));
    if (rows.length > first) break;
  }
  if (rows.length > first) return { rows: rows.slice(0, first), next: rows[first - 1]?.position ?? null, gaps: [] };
  if (candidates.length < SCAN_BUDGET) return { rows, next: null, gaps: [] };
  return { rows, next: candidates.at(-1)?.listed?.position ?? null, gaps: [], cut: true };
}

/** Counts the waits that match a filter, by node. Reads at most COUNT_SCAN rows. */
export async function tallyWaits(
  { store, waits }: Listing,
  filter: WaiterFilter,
): Promise<Awaited<ReturnType<WaiterStore['countByNode']>>> {
  const candidates = matching(waits, {
    filter,
    after: null,
    bornBefore: await bornBefore(store, filter),
    most: COUNT_SCAN,
  });
  const counts = new Map<string | null, number>();
  for (const { row } of await readPending(store, candidates)) {
    if (!onNode(filter, row)) continue;
    const { nodeId } = row.command;
    counts.set(nodeId, (counts.get(nodeId) ?? 0) + 1);
  }
  return { counts, complete: candidates.length < COUNT_SCAN };
}

/** Lists the first waits of each group, and counts the waits of the group. `groupOf`: returns the group of a wait. */
export async function summarize(
  { store, waits }: Listing,
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

/** Returns the latest time at which a wait may have begun to match the filter, by the time of Redis. */
async function bornBefore(store: Store, { minAgeMs }: WaiterFilter): Promise<number> {
  return minAgeMs === null ? Infinity : (await lookAtNodes({ store }, HOME)).now - minAgeMs;
}

/** Returns at most `most` waits that match the filter. The `nodeId` of the filter is not compared here. */
function matching(waits: LocalWaits, { filter, after, bornBefore, most }: Search): readonly LocalWait[] {
  const { userId, clientId, callerNodeId } = filter;
  const found: LocalWait[] = [];
  for (const wait of waits.listed()) {
    const { key, request, listed } = wait;
    if (!listed || listed.waiter.createdAt > bornBefore) continue;
    if (userId !== null && key.userId !== userId) continue;
    if (clientId !== null && key.clientId !== clientId) continue;
    if (callerNodeId !== null && request.callerNodeId !== callerNodeId) continue;
    if (after && comparePositions(listed.position, after) <= 0) continue;
    found.push(wait);
    if (found.length === most) break;
  }
  return found;
}

function onNode({ nodeId }: WaiterFilter, { command }: PendingWait): boolean {
  return nodeId === null || command.nodeId === nodeId;
}
