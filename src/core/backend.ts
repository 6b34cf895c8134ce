/** What a backend consists of: one port for each kind of state. Types only. */
import type { AuditStore } from './audit/audit-rows.ts';
import type { TicketStore } from './auth/principal.ts';
import type { Bus } from './bus.ts';
import type { ReconnectStore, ConnectionStore } from './connections/connection.ts';
import type { ContextStore } from './contexts/context.ts';
import type { DedupStore } from './dedup/dedup-store.ts';
import type { CommandStore, DeliveryInspector, NodeStore, WaiterStore } from './commands/stores.ts';
import type { HistoryStore } from './history/message.ts';
import type { MaybePromise } from './maybe-promise.ts';
import type { ShareName } from './shares/shares.ts';
import type { SessionStore, SiteStore } from './sites/site.ts';

/** The differences between backends that the interface allows, as data, so that answers can report them. */
export type Capabilities = {
  /** Whether several processes share one deployment. */
  readonly shared: boolean;
  readonly exactDedupCounters: boolean;
  readonly cheapStreamSummaries: boolean;
};

/** The storage that core needs: one port per kind of data. */
export interface Backend {
  readonly capabilities: Capabilities;
  readonly connections: ConnectionStore;
  readonly reconnects: ReconnectStore;
  readonly contexts: ContextStore;
  readonly commands: CommandStore;
  readonly waiters: WaiterStore;
  readonly nodes: NodeStore;
  readonly inspector: DeliveryInspector;
  readonly history: HistoryStore;
  readonly dedup: DedupStore;
  readonly sites: SiteStore;
  readonly sessions: SessionStore;
  readonly audit: AuditStore;
  readonly tickets: TicketStore;
  readonly bus: Bus;
  /**
   * Returns how much of each share is in use, for the shares that the store counts itself. The amounts are those of all
   * users and nodes together. Absent: the store counts nothing itself, and the process counts in its `Shares`.
   */
  sharesInUse?(): MaybePromise<ReadonlyMap<ShareName, number>>;
  /** Resolves if the store is reachable and accepts writes; throws `store_unavailable` or `store_full` otherwise. */
  ready(): MaybePromise<void>;
  close(): MaybePromise<void>;
}
