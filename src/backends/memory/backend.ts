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
  /** Counts rows that are dropped for lack of room. If absent, such rows are not counted. */
  readonly metrics?: Metrics;
  readonly sha256: (text: string) => string;
  readonly history?: Partial<TableLimits>;
  /** How long the id of an ended command is remembered, in milliseconds. TERMINAL_MS if absent. */
  readonly idempotencyWindowMs?: number | undefined;
  /** The store of the audit. If absent, the audit is kept in memory. */
  readonly audit?: AuditStore | undefined;
  /**
   * What each user holds of the shared resources, in this backend and elsewhere in the process. If absent, the backend
   * creates its own.
   */
  readonly shares?: Shares;
  /** The evidence of a process that holds several states. If absent, this state has evidence of its own. */
  readonly evidence?: EvidenceKinds;
  /**
   * The secret that hashes the ids in marks of ended commands. Callers choose ids, so they must not learn the secret:
   * they could choose ids that collide.
   */
  readonly markSecret: string;
  /** Receives the rows that memory drops for lack of room, and the link history rows that it retains. */
  readonly watcher?: MemoryWatcher | undefined;
  /** See `TransactionDeps.keepsAttempts`. Default false. */
  readonly keepsAttempts?: boolean;
  /** The mailboxes of the nodes. If absent, the backend creates mailboxes for the nodes of this process. */
  readonly mailboxes?: Mailboxes;
  /** Creates the transaction of the acts on commands. Default: a MemoryTransaction. */
  readonly makeTransaction?: (acts: TransactionDeps) => MemoryTransaction;
};

/** Receives the changes of memory that a journal must record although they belong to no act. */
export interface MemoryWatcher extends RowDrops, RecordDrops, MarkDrops {
  /** Calls `retain`, which retains this row of a link history, and records the row. */
  retainLink(message: NewMessage, retain: () => Row | null): void;
}

export type MemoryBackend = Backend & { readonly history: MemoryHistory };

/** The tables of the backend. Snapshots are written from them and restored into them. */
export type MemoryTables = {
  readonly ledger: Ledger;
  readonly history: MemoryHistory;
  readonly dedup: MemoryDedup;
  readonly connections: MemoryConnections;
  readonly sites: SiteTables;
  readonly revocations: MemoryRevocations;
  readonly devices: MemoryDevices;
  readonly acts: TransactionDeps;
  /** Drops evidence until it is within its limits. Returns false if more has to be dropped. */
  keepEvidence(now: number): boolean;
  /** Gives up the state: its users hold nothing of it any more. The state must not be used afterwards. */
  discard(): void;
};

/**
 * Creates the backend of direct mode. Its data exists only in this process, except an audit that is kept in a file.
 * Every act completes in the tick of its call, except appending to that file.
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
