/** Creates the stores of direct mode, and combines them into one backend. */
import type { AuditStore } from '../../core/audit/audit-store.ts';
import type { Backend } from '../../core/backend.ts';
import type { NewMessage } from '../../core/history/message.ts';
import { RETENTION_MS, TERMINAL_MS } from '../../core/limits.ts';
import { silentMetrics, type Metrics } from '../../core/metrics.ts';
import { PauseSet } from '../../core/pauses/pause.ts';
import type { Clock, Log } from '../../core/ports.ts';
import { createShares, type Holdings, type Shares } from '../../core/shares/shares.ts';
import { MemoryAudit } from './audit.ts';
import { createMemoryBus } from './bus.ts';
import { createMemoryNodes } from './nodes.ts';
import { WaiterIndex, createWaitReads } from './waiters.ts';
import {
  MemoryTransaction,
  createMemoryCommands,
  type TransactionDeps,
  createMemoryWaiters,
  Mailboxes,
} from './commands.ts';
import { createMemoryConnections, type MemoryConnections } from './connections.ts';
import { createMemoryContexts, createReportingInstances } from './contexts.ts';
import { createMemoryDedup, type MarkDrops, type MemoryDedup } from './dedup.ts';
import { createEvidence, type EvidenceKinds } from './evidence.ts';
import type { Row } from './history-row.ts';
import type { RowDrops } from './history-rows.ts';
import { createMemoryHistory, type MemoryHistory, type TableLimits } from './history.ts';
import { createMemoryInspector } from './inspector.ts';
import type { RecordDrops } from './ledger-ended.ts';
import { Ledger } from './ledger.ts';
import { createMemoryPauses } from './pauses.ts';
import { createMemoryReconnects } from './reconnects.ts';
import { MemoryDevices } from './devices.ts';
import { MemoryRevocations } from './revocations.ts';
import { createMemorySites, type SiteTables } from './sites.ts';
import { createMemoryTickets } from './tickets.ts';

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
  /** See `TransactionDeps.keepsAttempts`. False if absent. */
  readonly keepsAttempts?: boolean;
  /** The mailboxes of nodes; absent: those of this process. */
  readonly mailboxes?: Mailboxes;
  /** Makes the transaction of the acts on commands; absent: a MemoryTransaction. */
  readonly makeTransaction?: (acts: TransactionDeps) => MemoryTransaction;
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
  readonly devices: MemoryDevices;
  readonly acts: TransactionDeps;
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
  const pauses = new PauseSet();
  const acts: TransactionDeps = {
    clock,
    ledger,
    waiters,
    mailboxes,
    keep,
    dedup,
    sha256,
    holdingsOf,
    contextState,
    keepsAttempts,
    connectionOf: connections.peek,
    pauses,
  };
  const tx = makeTransaction(acts);
  const { tables: siteTables, ...siteStores } = createMemorySites(clock);
  const revocations = new MemoryRevocations(clock);
  const devices = new MemoryDevices(clock);
  const backend: MemoryBackend = {
    revocations,
    devices,
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
    pauses: createMemoryPauses({ clock, ledger, mailboxes, pauses }),
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
  const tables = {
    ledger,
    history,
    dedup,
    connections,
    sites: siteTables,
    revocations,
    devices,
    acts,
    keepEvidence,
    discard,
  };
  return { backend, tables };
}
