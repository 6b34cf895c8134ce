import type { Bus } from './bus.ts';
import type { ConnectionStore } from './connections/store.ts';
import type { ContextStore } from './contexts/store.ts';
import type { DedupStore } from './dedup/store.ts';
import type { CommandStore } from './delivery/commands.ts';
import type { DeliveryInspector } from './delivery/inspector.ts';
import type { NodeStore } from './delivery/nodes.ts';
import type { WaiterStore } from './delivery/waiters.ts';
import type { HistoryStore } from './history/store.ts';
import type { Maybe } from './maybe.ts';
import type { SessionStore, SiteStore } from './sites/store.ts';

/** How backends differ where the interface lets answers differ. Data, so that a reader of an answer can be told. */
export type Capabilities = {
  /** Several processes see one deployment. */
  readonly shared: boolean;
  readonly exactDedupCounters: boolean;
  readonly cheapStreamSummaries: boolean;
};

/** Everything that core asks of a place to keep things: one port per room. */
export interface Backend {
  readonly capabilities: Capabilities;
  readonly connections: ConnectionStore;
  readonly contexts: ContextStore;
  readonly commands: CommandStore;
  readonly waiters: WaiterStore;
  readonly nodes: NodeStore;
  readonly inspector: DeliveryInspector;
  readonly history: HistoryStore;
  readonly dedup: DedupStore;
  readonly sites: SiteStore;
  readonly sessions: SessionStore;
  readonly bus: Bus;
  /** Resolves when the store answers and takes more; throws `store_unavailable` or `store_full` otherwise. */
  ready(): Maybe<void>;
  close(): Maybe<void>;
}
