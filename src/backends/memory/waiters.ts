/** The callers that wait for commands in memory, and the listings of them. */
import type { Clock } from '../../core/ports.ts';
import { matchesCaller, satisfied, type Command, type NewWaiter } from '../../core/commands/command.ts';
import type { CountedScan, PendingWait, WaiterFilter, WaiterStore } from '../../core/commands/stores.ts';
import type { ClientKey } from '../../core/ids.ts';
import { COUNT_SCAN } from '../../core/limits.ts';
import { scanSorted, sortable, type PageRequest, type Scan } from '../../core/page.ts';
import { SparseQueue } from './collections.ts';
import { isOver } from './ledger-entry.ts';
import { WaiterRow, type Entry, type Ledger } from './ledger.ts';

type Rows = SparseQueue<WaiterRow>;

/**
 * The waiters that are not resolved, in the order of registration. This index has the queue of all waiters; the ledger's
 * objects have a queue for each user and each client.
 */
export class WaiterIndex {
  readonly all: Rows = new SparseQueue(isOver);
  #seq = 0;

  add(entry: Entry, request: NewWaiter, createdAt: number): void {
    const { client } = entry;
    const row = new WaiterRow(entry, request, { seq: ++this.#seq, createdAt });
    entry.waiters = [...entry.waiters, row];
    for (const rows of [this.all, client.user.waiters, client.waiters]) rows.push(row);
  }

  remove(row: WaiterRow): void {
    const { client } = row.entry;
    if (row.gone) return;
    row.gone = true;
    for (const rows of [this.all, client.user.waiters, client.waiters]) rows.noteDeleted();
    row.entry.removeWaiter(row);
  }

  /** Removes and returns the waiters whose condition the command's record now meets. */
  take({ waiters, command }: Entry): readonly WaiterRow[] {
    const met = waiters.filter(({ request }) => satisfied(request.waitFor, command));
    for (const row of met) this.remove(row);
    return met;
  }
}

/** Creates the reading part of core's WaiterStore over the ledger. */
export function createWaitReads(
  clock: Clock,
  ledger: Ledger,
  index: WaiterIndex,
): Omit<WaiterStore, 'attach' | 'remove'> {
  const ofUser = (userId: string): Rows => ledger.peekUser(userId)?.waiters ?? NONE;
  const ofClient = (key: ClientKey): Rows => ledger.peekClient(key)?.waiters ?? NONE;
  const candidates = (filter: WaiterFilter): Iterable<WaiterRow> => {
    if (filter.userId !== null && filter.clientId !== null)
      return ofClient({ userId: filter.userId, clientId: filter.clientId });
    return filter.userId === null ? index.all : ofUser(filter.userId);
  };
  const matching = (filter: WaiterFilter) => {
    const bornBefore = filter.minAgeMs === null ? Infinity : clock.now() - filter.minAgeMs;
    return ({ request, entry, createdAt }: WaiterRow): boolean =>
      (filter.clientId === null || entry.clientId === filter.clientId) &&
      (filter.nodeId === null || entry.command.nodeId === filter.nodeId) &&
      (filter.contextId === null || entry.command.contextId === filter.contextId) &&
      (filter.callerNodeId === null || request.callerNodeId === filter.callerNodeId) &&
      matchesCaller(filter, request.caller) &&
      createdAt <= bornBefore;
  };
  const tally = (filter: WaiterFilter, collect: (command: Command) => void): boolean => {
    const keep = matching(filter);
    let seen = 0;
    for (const row of candidates(filter)) {
      if (seen++ === COUNT_SCAN) return false;
      if (keep(row)) collect(row.entry.command);
    }
    return true;
  };
  return {
    list: (filter, page) => scan(candidates(filter), page, matching(filter)),
    countByNode(filter) {
      const counts = new Map<string | null, number>();
      const complete = tally(filter, ({ nodeId }) => counts.set(nodeId, (counts.get(nodeId) ?? 0) + 1));
      return { counts, complete };
    },
    ofUsers: (userIds, first) => userIds.map((userId) => summary(ofUser(userId), first)),
    ofClients: (keys, first) => keys.map((key) => summary(ofClient(key), first)),
    ofCommands: (keys) => keys.map((key) => (ledger.find(key)?.waiters ?? []).map(view)),
  };
}

const NONE: Rows = new SparseQueue(isOver);

function view({ waiter, entry }: WaiterRow): PendingWait {
  return { waiter, command: entry.command };
}

function scan(rows: Iterable<WaiterRow>, page: PageRequest, keep: (row: WaiterRow) => boolean): Scan<PendingWait> {
  const after = page.after?.[0] ?? '';
  const rest = Iterator.from(rows).filter(({ seq }) => sortable(seq) > after);
  const found = scanSorted(rest, page, ({ seq }) => [sortable(seq)], keep);
  return { ...found, rows: found.rows.map(({ row, position }) => ({ row: view(row), position })) };
}

function summary(rows: Rows, first: number): CountedScan {
  return { total: rows.size, scan: scan(rows, { first, after: null }, () => true) };
}
