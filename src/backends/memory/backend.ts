/**
 * Creates the stores of direct mode, and combines them into one backend. Defines the bus, the used sign-in tickets and
 * the counts of reconnects.
 */
import type { AuditStore } from '../../core/audit/audit-rows.ts';
import type { TicketStore } from '../../core/auth/principal.ts';
import type { Backend, Bus } from '../../core/backend.ts';
import { ByClient } from '../../core/collections.ts';
import { compareReconnects, type ReconnectStore } from '../../core/connections/connection.ts';
import type { NewMessage } from '../../core/history/message.ts';
import type { ClientKey } from '../../core/ids.ts';
import { RECONNECT_CLIENTS, RECONNECT_SLOTS, RECONNECT_SLOT_MS, RETENTION_MS, TERMINAL_MS } from '../../core/limits.ts';
import { silentMetrics, type Metrics } from '../../core/metrics.ts';
import type { Clock, Log } from '../../core/ports.ts';
import { createShares, type Holdings, type Shares } from '../../core/shares/shares.ts';
import { MemoryAudit } from './audit.ts';
import {
  Mailboxes,
  MemoryTransaction,
  createMemoryCommands,
  createMemoryNodes,
  createMemoryWaiters,
  WaiterIndex,
  createWaitReads,
  type Acts,
} from './commands.ts';
import { createMemoryConnections, type MemoryConnections } from './connections.ts';
import { createMemoryContexts, createReportingInstances } from './contexts.ts';
import { createMemoryDedup, type MarkDrops, type MemoryDedup } from './dedup.ts';
import { createEvidence, type EvidenceKinds } from './evidence.ts';
import { createMemoryHistory, type MemoryHistory, type TableLimits } from './history.ts';
import type { Row } from './history-row.ts';
import type { RowDrops } from './history-rows.ts';
import { createMemoryInspector } from './inspector.ts';
import { Ledger } from './ledger.ts';
import type { RecordDrops } from './ledger-ended.ts';
import { createListeners } from '../../core/live.ts';
import { MemoryRevocations } from './revocations.ts';
import { createMemorySites, type SiteTables } from './sites.ts';

export type MemoryOptions = {
  readonly clock: Clock;
  readonly log: Log;
  /** Counts rows that are dropped for lack of room. If absent, nothing is counted. */
  readonly metrics?: Metrics;
  readonly sha256: (text: string) => string;
  readonly history?: Partial<TableLimits>;
  /** How long the id of an ended command is remembered, in milliseconds. TERMINAL_MS if absent. */
  readonly idempotencyWindowMs?: number | undefined;
  /** The store of the audit. If absent, the audit is kept in memory. */
  readonly audit?: AuditStore | undefined;
  /**
   * What each user holds of the shared resources, in this backend and in the rest of the process. If absent, the
   * backend has a table of its own.
   */
  readonly shares?: Shares;
  /** What the tables of a process keep of evidence, if it has several states; absent: the tables of this one alone. */
  readonly evidence?: EvidenceKinds;
  /** The secret with which the marks of ended commands are hashed. Callers must not learn it: they choose the ids. */
  readonly markSecret: string;
  /** Learns what memory drops for lack of room, and the rows of links that it retains. */
  readonly watcher?: MemoryWatcher | undefined;
  /** See `Acts.keepsAttempts`. False if absent. */
  readonly keepsAttempts?: boolean;
  /** The mailboxes of nodes; absent: those of this process. */
  readonly mailboxes?: Mailboxes;
  /** Makes the transaction of the acts on commands; absent: a MemoryTransaction. */
  readonly makeTransaction?: (acts: Acts) => MemoryTransaction;
};

/** What a journal has to know of memory besides the acts. */
export interface MemoryWatcher extends RowDrops, RecordDrops, MarkDrops {
  /** Calls `retain`, which retains this row of a link history. */
  retainLink(message: NewMessage, retain: () => Row | null): void;
}

export type MemoryBackend = Backend & { readonly history: MemoryHistory };

/** The tables of the backend, from which a snapshot is written and into which it is read. */
export type MemoryTables = {
  readonly ledger: Ledger;
  readonly history: MemoryHistory;
  readonly dedup: MemoryDedup;
  readonly connections: MemoryConnections;
  readonly sites: SiteTables;
  readonly revocations: MemoryRevocations;
  readonly acts: Acts;
  /** Drops evidence that is beyond its totals. Returns false if there is more to drop. */
  keepEvidence(now: number): boolean;
  /** Gives the state up: its users hold nothing of it any more. It must not be used afterwards. */
  discard(): void;
};

/**
 * Creates the backend of direct mode. All its data is in this process and is lost with it, and every act completes in
 * the tick in which it was requested. An audit in a file is the exception.
 */
export function createMemoryBackend(options: MemoryOptions): MemoryBackend {
  return createMemoryState(options).backend;
}

/** Creates the backend of direct mode together with its tables. */
export function createMemoryState({
  clock,
  log,
  metrics = silentMetrics,
  sha256,
  history: limits,
  idempotencyWindowMs: windowMs = TERMINAL_MS,
  shares = createShares(),
  audit = new MemoryAudit(),
  evidence = createEvidence(shares, limits?.linkBytes),
  markSecret,
  watcher,
  keepsAttempts = false,
  mailboxes = new Mailboxes(),
  makeTransaction = (acts) => new MemoryTransaction(acts),
}: MemoryOptions): { readonly backend: MemoryBackend; readonly tables: MemoryTables } {
  const { retentionMs = RETENTION_MS } = limits ?? {};
  const ledger = new Ledger(clock, {
    shares,
    evidence,
    log,
    metrics,
    windowMs,
    retentionMs,
    markSecret,
    drops: watcher,
  });
  const waiters = new WaiterIndex();
  const dedup = createMemoryDedup({ clock, shares, evidence, log, metrics, drops: watcher });
  const history = createMemoryHistory({ clock, limits, dedup, evidence, ...(watcher && { drops: watcher }) });
  const reports = createReportingInstances();
  const holdingsOf = (userId: string): Holdings => shares.of(userId);
  const connections = createMemoryConnections({
    clock,
    onGone: reports.drop,
    retain(message) {
      if (watcher) watcher.retainLink(message, () => history.keepRow(message));
      else history.keepRow(message);
    },
  });
  const contexts = createMemoryContexts({ clock, instances: reports, peek: connections.peek });
  const { state: contextState, ...contextPort } = contexts;
  const { keep } = history;
  const acts: Acts = {
    ...{ clock, ledger, waiters, mailboxes, keep, dedup, sha256, holdingsOf, contextState, keepsAttempts },
    connectionOf: connections.peek,
  };
  const tx = makeTransaction(acts);
  const { tables: siteTables, ...siteStores } = createMemorySites(clock);
  const revocations = new MemoryRevocations(clock);
  const backend: MemoryBackend = {
    revocations,
    tickets: createMemoryTickets(clock),
    capabilities: { shared: false, allWaits: true, exactDedupCounters: true, cheapStreamSummaries: true },
    connections,
    reconnects: createMemoryReconnects(clock),
    contexts: contextPort,
    commands: createMemoryCommands(tx, acts),
    waiters: createMemoryWaiters(tx, createWaitReads(clock, ledger, waiters)),
    nodes: createMemoryNodes(clock, mailboxes, ledger),
    inspector: createMemoryInspector({ clock, ledger, peek: connections.peek }),
    history,
    dedup,
    ...siteStores,
    audit,
    bus: createMemoryBus(log),
    ready() {},
    close: () => audit.close?.(),
  };
  const { messages, links } = history.tables;
  const keepEvidence = (now: number): boolean => {
    const kept = [messages.keepWithin(now), links.keepWithin(now), ledger.ended.keepWithin(now, false)];
    return kept.every(Boolean) && dedup.keepWithin(now);
  };
  const discard = (): void => [messages, links, ledger.ended, dedup].forEach((table) => table.discard());
  const tables = { ledger, history, dedup, connections, sites: siteTables, revocations, acts, keepEvidence, discard };
  return { backend, tables };
}

// Publishes events to subscribers within one process (core's Bus). It stores no events, so only present subscribers
// receive them.

/** Creates core's Bus for one process: listeners are called before `publish` returns. */
export function createMemoryBus(log: Log): Bus {
  const commands = new Set<string>();
  const listeners = createListeners(log, (topic) => {
    if (!topic.startsWith('command:')) return;
    if (listeners.has(topic)) commands.add(topic);
    else commands.delete(topic);
  });
  return {
    hasSubscribers: () => commands.size > 0,
    publish: listeners.deliver,
    subscribe: (topic, listener) => listeners.add(topic, listener),
    confirmed() {},
  };
}

// Remembers in direct mode which sign-in tickets were used, so that no ticket is accepted twice.

/**
 * Creates the store of used tickets. It stays small: only the deployment's secret can sign a ticket, and tickets expire
 * soon.
 */
export function createMemoryTickets(clock: Pick<Clock, 'now'>): TicketStore {
  const taken = new Map<string, number>();
  return {
    take(ticketHash, ttlMs) {
      const now = clock.now();
      for (const [hash, until] of taken) if (until <= now) taken.delete(hash);
      if (taken.has(ticketHash)) return false;
      taken.set(ticketHash, now + ttlMs);
      return true;
    },
  };
}

// Core's ReconnectStore in memory: counts how often each client reconnected in the last hour.

/**
 * The clients whose links opened in one time slot, and how often each reconnected in it. `full`: whether there were
 * more clients than are counted.
 */
type Slot = { readonly number: number; readonly counts: ByClient<number>; full: boolean };

/** Creates the store. It keeps one map for each time slot of the last hour. */
function createMemoryReconnects(clock: Clock): ReconnectStore {
  let slots: readonly Slot[] = [];
  const current = (): readonly Slot[] => {
    const number = Math.floor(clock.now() / RECONNECT_SLOT_MS);
    const oldest = slots.at(0);
    if (oldest && oldest.number <= number - RECONNECT_SLOTS)
      slots = slots.filter((slot) => slot.number > number - RECONNECT_SLOTS);
    return slots;
  };
  const slotOfNow = (): Slot => {
    const number = Math.floor(clock.now() / RECONNECT_SLOT_MS);
    const known = current().find((slot) => slot.number === number);
    if (known) return known;
    const made: Slot = { number, counts: new ByClient(), full: false };
    slots = [...slots, made];
    return made;
  };
  const sum = (client: ClientKey): number =>
    current().reduce((total, { counts }) => total + (counts.get(client) ?? 0), 0);
  return {
    note(client, again) {
      const counts = again || current().some((slot) => slot.counts.get(client) !== undefined);
      const slot = slotOfNow();
      const known = slot.counts.get(client);
      if (known === undefined && slot.counts.size >= RECONNECT_CLIENTS) slot.full = true;
      else slot.counts.set(client, (known ?? 0) + (counts ? 1 : 0));
    },
    counts: (clients) => clients.map(sum),
    top(first) {
      // Most clients of a quiet relay did not reconnect, so only the others are summed up and sorted.
      const sums = new ByClient<number>();
      for (const { counts } of current())
        for (const [client, count] of counts.entries())
          if (count > 0) sums.set(client, (sums.get(client) ?? 0) + count);
      const found = [...sums.entries()].map(([client, reconnects]) => ({ ...client, reconnects }));
      found.sort(compareReconnects);
      return { rows: found.slice(0, first), complete: current().every(({ full }) => !full) };
    },
  };
}
