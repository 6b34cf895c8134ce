/** Creates the stores of direct mode, and combines them into one backend. */
import type { AuditStore } from '../../core/audit/store.ts';
import type { Backend } from '../../core/backend.ts';
import type { Clock } from '../../core/clock.ts';
import type { Log } from '../../core/log.ts';
import { silentMetrics, type Metrics } from '../../core/metrics.ts';
import { RETENTION_MS, TERMINAL_MS } from '../../core/limits.ts';
import { createShares, type Holdings, type Shares } from '../../core/shares/shares.ts';
import { MemoryAudit } from './audit.ts';
import { createMemoryTickets } from './auth-tickets.ts';
import { createMemoryBus } from './bus.ts';
import { createMemoryCommands } from './commands.ts';
import { createMemoryConnections } from './connections.ts';
import { createMemoryContexts } from './contexts.ts';
import { createReportingInstances } from './contexts-clients.ts';
import { createMemoryDedup } from './dedup.ts';
import { createMemoryHistory, type MemoryHistory } from './history.ts';
import type { TableLimits } from './history-tables.ts';
import { createMemoryInspector } from './inspector.ts';
import { Ledger } from './ledger.ts';
import { createMemoryNodes, Mailboxes } from './nodes.ts';
import { createMemoryReconnects } from './reconnects.ts';
import { createMemorySites } from './sites.ts';
import { createMemoryWaiters, WaiterIndex } from './waiters.ts';

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
};

export type MemoryBackend = Backend & { readonly history: MemoryHistory };

/**
 * Creates the backend of direct mode. All its data is in this process and is lost with it. Every act completes in the
 * tick in which it was requested.
 */
export function createMemoryBackend({
  clock,
  log,
  metrics = silentMetrics,
  sha256,
  history: limits,
  idempotencyWindowMs: windowMs = TERMINAL_MS,
  shares = createShares(),
  audit = new MemoryAudit(),
}: MemoryOptions): MemoryBackend {
  const mailboxes = new Mailboxes();
  const { retentionMs = RETENTION_MS } = limits ?? {};
  const ledger = new Ledger(clock, { shares, log, metrics, windowMs, retentionMs });
  const waiters = new WaiterIndex(mailboxes);
  const dedup = createMemoryDedup({ clock, shares, log, metrics });
  const history = createMemoryHistory({ clock, limits, dedup, shares });
  const reports = createReportingInstances();
  const holdingsOf = (userId: string): Holdings => shares.of(userId);
  const connections = createMemoryConnections({ clock, onGone: reports.drop, retain: history.keepLink });
  return {
    tickets: createMemoryTickets(clock),
    capabilities: { shared: false, exactDedupCounters: true, cheapStreamSummaries: true },
    connections,
    reconnects: createMemoryReconnects(clock),
    contexts: createMemoryContexts({ clock, instances: reports, peek: connections.peek }),
    commands: createMemoryCommands({
      clock,
      ledger,
      waiters,
      mailboxes,
      keep: history.keep,
      dedup,
      sha256,
      holdingsOf,
    }),
    waiters: createMemoryWaiters(clock, ledger, waiters),
    nodes: createMemoryNodes(clock, mailboxes, ledger),
    inspector: createMemoryInspector({ clock, ledger, peek: connections.peek }),
    history,
    dedup,
    ...createMemorySites(clock),
    audit,
    bus: createMemoryBus(log),
    ready() {},
    close: () => audit.close?.(),
  };
}
