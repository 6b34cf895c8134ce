import { ByClient } from '../../core/by-client.ts';
import { ChurnMap } from '../../core/churn.ts';
import type { Clock } from '../../core/clock.ts';
import type { Command } from '../../core/delivery/command.ts';
import type { NewWaiter } from '../../core/delivery/commands.ts';
import { satisfied } from '../../core/delivery/waiter.ts';
import type {
  AttachResult,
  Counted,
  CountedScan,
  PendingWait,
  WaiterFilter,
  WaiterStore,
} from '../../core/delivery/waiters.ts';
import type { ClientKey, CommandKey } from '../../core/ids.ts';
import { COUNT_SCAN, WAITERS_PER_COMMAND } from '../../core/limits.ts';
import { scanSorted, sortable, type PageRequest, type Scan } from '../../core/page.ts';
import { keyOf, NO_WAITERS, type Entry, type Ledger, type WaiterRow } from './ledger.ts';
import type { Mailboxes } from './nodes.ts';

type Rows = ChurnMap<string, WaiterRow>;

/** Unresolved waiters, with indexes by user and by client; each map is in the order of registration. */
export class WaiterIndex {
  readonly all: Rows = new ChurnMap();
  readonly #users = new Map<string, Rows>();
  readonly #clients = new ByClient<Rows>();
  readonly #clock: Clock;
  readonly #mailboxes: Mailboxes;
  #seq = 0;

  constructor(clock: Clock, mailboxes: Mailboxes) {
    this.#clock = clock;
    this.#mailboxes = mailboxes;
  }

  add(entry: Entry, request: NewWaiter): WaiterRow {
    const { command } = entry;
    const { rpcId, callerNodeId, waitFor, withinMs } = request;
    const createdAt = this.#clock.now();
    const timesOutAt = withinMs === null ? command.deadline : Math.min(createdAt + withinMs, command.deadline);
    const waiter = { ...keyOf(command), action: command.action, rpcId, callerNodeId, waitFor, createdAt, timesOutAt };
    const row: WaiterRow = { waiter, entry, seq: ++this.#seq };
    entry.waiters = [...entry.waiters, row];
    this.all.set(rpcId, row);
    rowsOf(this.#users, command.userId).set(rpcId, row);
    rowsOf(this.#clients, command).set(rpcId, row);
    return row;
  }

  remove(row: WaiterRow): void {
    const { waiter, entry } = row;
    const { rpcId, userId } = waiter;
    this.all.delete(rpcId);
    entry.waiters = entry.waiters.length === 1 ? NO_WAITERS : entry.waiters.filter((other) => other !== row);
    drop(this.#users, userId, rpcId);
    drop(this.#clients, waiter, rpcId);
  }

  /**
   * Replies to the waiters that the record now satisfies. Called after the record was replaced, so that no reply
   * precedes it.
   */
  reply(entry: Entry): void {
    for (const row of entry.waiters) {
      if (!satisfied(row.waiter.waitFor, entry.command)) continue;
      this.remove(row);
      const { rpcId, callerNodeId } = row.waiter;
      this.#mailboxes.post(callerNodeId, {
        kind: 'reply',
        reply: { rpcId, command: entry.command, result: entry.result },
      });
    }
  }

  ofUser(userId: string): Rows {
    return this.#users.get(userId) ?? NONE;
  }

  ofClient(key: ClientKey): Rows {
    return this.#clients.get(key) ?? NONE;
  }
}

/** Core's WaiterStore over the ledger. */
export function createMemoryWaiters(clock: Clock, ledger: Ledger, index: WaiterIndex): WaiterStore {
  const candidates = (filter: WaiterFilter): Iterable<WaiterRow> => {
    if (filter.userId !== null && filter.clientId !== null)
      return index.ofClient({ userId: filter.userId, clientId: filter.clientId }).values();
    return (filter.userId === null ? index.all : index.ofUser(filter.userId)).values();
  };
  const matching = (filter: WaiterFilter) => {
    const bornBefore = filter.minAgeMs === null ? Infinity : clock.now() - filter.minAgeMs;
    return ({ waiter, entry }: WaiterRow): boolean =>
      (filter.clientId === null || waiter.clientId === filter.clientId) &&
      (filter.nodeId === null || entry.command.nodeId === filter.nodeId) &&
      (filter.callerNodeId === null || waiter.callerNodeId === filter.callerNodeId) &&
      waiter.createdAt <= bornBefore;
  };
  const tally = (filter: WaiterFilter, visit: (command: Command) => void): boolean => {
    const keep = matching(filter);
    let seen = 0;
    for (const row of candidates(filter)) {
      if (seen++ === COUNT_SCAN) return false;
      if (keep(row)) visit(row.entry.command);
    }
    return true;
  };
  return {
    attach(key, request) {
      const entry = ledger.find(key);
      if (!entry) return attachToMark(ledger, key);
      const { command, result } = entry;
      if (satisfied(request.waitFor, command)) return { kind: 'satisfied', command, result };
      if (entry.waiters.length >= WAITERS_PER_COMMAND) return { kind: 'full' };
      return { kind: 'waiting', waiter: index.add(entry, request).waiter, command };
    },
    remove(_key, rpcId) {
      const row = index.all.get(rpcId);
      if (row) index.remove(row);
    },
    list: (filter, page) => scan(candidates(filter), page, matching(filter)),
    count(filter): Counted {
      let count = 0;
      const complete = tally(filter, () => count++);
      return { count, complete };
    },
    countByNode(filter) {
      const counts = new Map<string | null, number>();
      const complete = tally(filter, ({ nodeId }) => counts.set(nodeId, (counts.get(nodeId) ?? 0) + 1));
      return { counts, complete };
    },
    ofUsers: (userIds, first) => userIds.map((userId) => summary(index.ofUser(userId), first)),
    ofClients: (keys, first) => keys.map((key) => summary(index.ofClient(key), first)),
    ofCommands: (keys) => keys.map((key) => (ledger.find(key)?.waiters ?? []).map(view)),
  };
}

function attachToMark(ledger: Ledger, key: CommandKey): AttachResult {
  const mark = ledger.mark(key, null);
  return mark === null || mark === 'conflict' ? { kind: 'unknown' } : { kind: 'ended', mark };
}

const NONE: Rows = new ChurnMap();

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
  return { total: rows.size, scan: scan(rows.values(), { first, after: null }, () => true) };
}

/** The part of the map interface that both indexes have. */
type Index<K> = { get(key: K): Rows | undefined; set(key: K, rows: Rows): unknown; delete(key: K): unknown };

function rowsOf<K>(index: Index<K>, key: K): Rows {
  const known = index.get(key);
  if (known) return known;
  const rows: Rows = new ChurnMap();
  index.set(key, rows);
  return rows;
}

function drop<K>(index: Index<K>, key: K, rpcId: string): void {
  const rows = index.get(key);
  rows?.delete(rpcId);
  if (rows?.size === 0) index.delete(key);
}
