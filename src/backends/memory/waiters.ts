/** The waiters of commands in memory, and core's listings of them. */
import { matchesAny } from '../../core/auth/patterns.ts';
import { matchesCaller, type Command } from '../../core/commands/command.ts';
import { satisfied, type NewWaiter } from '../../core/commands/waiter.ts';
import type { WaiterStore, CountedScan, PendingWait, WaiterFilter } from '../../core/commands/waiter-store.ts';
import type { ClientKey } from '../../core/ids.ts';
import { COUNT_SCAN } from '../../core/limits.ts';
import { comparePositions, scanSorted, sortable, type PageRequest, type Position, type Scan } from '../../core/page.ts';
import type { Clock } from '../../core/ports.ts';
import { isOver } from './ledger-entry.ts';
import { type Entry, WaiterRow, type Ledger } from './ledger.ts';
import { SparseQueue } from './sparse-queue.ts';

type Rows = SparseQueue<WaiterRow>;

/**
 * The waiters that are not resolved, in the order of registration. This index contains the queue of all waiters. The
 * objects of the ledger contain the queues of each user and each client.
 */
export class WaiterIndex {
  readonly all: Rows = new SparseQueue(isOver);
  #seq = 0;
  #listedAt = 0;

  add(entry: Entry, request: NewWaiter, createdAt: number): void {
    const { client } = entry;
    this.#listedAt = Math.max(this.#listedAt, createdAt);
    const row = new WaiterRow(entry, request, { seq: ++this.#seq, createdAt, listedAt: this.#listedAt });
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

  /** Removes and returns the waiters of a command whose condition is met by the command's current record. */
  take({ waiters, command }: Entry): readonly WaiterRow[] {
    const met = waiters.filter(({ request }) => satisfied(request.waitFor, command));
    for (const row of met) this.remove(row);
    return met;
  }
}

/** Creates the read methods of core's WaiterStore over the ledger. */
export function createWaitReads(
  clock: Clock,
  ledger: Ledger,
  index: WaiterIndex,
): Omit<WaiterStore, 'attach' | 'remove'> {
  const ofUser = (userId: string): Rows => ledger.peekUser(userId)?.waiters ?? NO_WAITERS;
  const ofClient = (key: ClientKey): Rows => ledger.peekClient(key)?.waiters ?? NO_WAITERS;
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
      (filter.seen === undefined || matchesAny(filter.seen, entry.command.action)) &&
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

const NO_WAITERS: Rows = new SparseQueue(isOver);

function view({ waiter, entry }: WaiterRow): PendingWait {
  return { waiter, command: entry.command };
}

/**
 * The position of a waiter in listings: the time and the number of its registration, so that two processes can compare
 * positions.
 */
function placeOf({ listedAt, seq, request }: WaiterRow): Position {
  return [sortable(listedAt), sortable(seq), request.rpcId];
}

function scan(rows: Iterable<WaiterRow>, page: PageRequest, keep: (row: WaiterRow) => boolean): Scan<PendingWait> {
  const { after } = page;
  const rest = Iterator.from(rows).filter((row) => after === null || comparePositions(placeOf(row), after) > 0);
  const found = scanSorted(rest, page, placeOf, keep);
  return { ...found, rows: found.rows.map(({ row, position }) => ({ row: view(row), position })) };
}

function summary(rows: Rows, first: number): CountedScan {
  return { total: rows.size, scan: scan(rows, { first, after: null }, () => true) };
}
