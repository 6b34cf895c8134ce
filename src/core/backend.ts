/** The interface of a backend: one storage port for each kind of state, and the event bus. Types only. */
import type { AuditStore } from './audit/audit-store.ts';
import type { TicketStore } from './auth/ticket-store.ts';
import type { CommandEvent, Listening } from './commands/command-event.ts';
import type { CommandStore } from './commands/command-store.ts';
import type { DeliveryInspector } from './commands/delivery-inspector.ts';
import type { NodeStore } from './commands/node-store.ts';
import type { WaiterStore } from './commands/waiter-store.ts';
import type { ConnectionStore } from './connections/connection-store.ts';
import type { ReconnectStore } from './connections/reconnects.ts';
import type { Connection, DisconnectCause } from './connections/connection.ts';
import type { ContextStore } from './contexts/context.ts';
import type { DedupStore } from './dedup/dedup.ts';
import type { HistoryStore } from './history/message.ts';
import type { CommandKey } from './ids.ts';
import type { JsonText } from './json.ts';
import type { MaybePromise } from './maybe-promise.ts';
import type { Pause, PauseStore } from './pauses/pause.ts';
import type { Cancel } from './ports.ts';
import type { DeviceStore } from './devices/device.ts';
import type { RevocationStore } from './revocations/revocation.ts';
import type { ShareName } from './shares/share-bounds.ts';
import type { SessionStore, SiteStore } from './sites/site-stores.ts';
import type { SiteEvent } from './sites/site.ts';

/** The differences that backends may have. They are data, so that answers can report them. */
export type Capabilities = {
  /** Whether several processes share one deployment. */
  readonly shared: boolean;
  /** Whether the `WaiterStore` returns the waits of all nodes. If false, it returns those of its own process. */
  readonly allWaits: boolean;
  readonly exactDedupCounters: boolean;
  readonly cheapStreamSummaries: boolean;
};

/** How much of the backend's data survives the end of its process. */
export type Durability = {
  /** `memory`: nothing survives. `directory`: the data directory survives. `store`: the shared store survives. */
  readonly kind: 'memory' | 'directory' | 'store';
  /** When records are synced to the disk: `100 ms`, `always` or `off`; null if this is not known here. */
  readonly sync: string | null;
  /** The size of the data directory, in bytes; null if there is none. */
  readonly bytes: number | null;
  /** Whether the disk is full. If so, no new command is admitted. */
  readonly full: boolean;
  /** When the last snapshot was completed, in epoch milliseconds; null if this process has written none. */
  readonly snapshotAt: number | null;
  /**
   * The time for which the relay was down before this process started; null if there was none, or if it is not known.
   */
  readonly away: Away | null;
};

/** The gap between two processes that used the same data directory. */
export type Away = {
  /** When the earlier process recorded its last act, in epoch milliseconds. */
  readonly since: number;
  /** Whether the earlier process was shut down in order. */
  readonly clean: boolean;
  /** Whether the operating system crashed or restarted. If so, records that were not synced may be missing. */
  readonly lost: boolean;
  /** The size of an unfinished batch at the end of the journal, in bytes. It was cut off. 0 if there was none. */
  readonly tornBytes: number;
};

/** The storage that core needs: one port for each kind of data. */
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
  readonly pauses: PauseStore;
  readonly tickets: TicketStore;
  readonly revocations: RevocationStore;
  readonly devices: DeviceStore;
  readonly bus: Bus;
  /**
   * Returns how much of each share is in use, over all users and nodes, for the shares that the store counts itself.
   * Absent if the store counts none; then the process counts them in its `Shares`.
   */
  sharesInUse?(): MaybePromise<ReadonlyMap<ShareName, number>>;
  /**
   * Calls `run` as soon as everything that the store has decided so far is recorded; at once if it is already. Until
   * then, no bytes that depend on those decisions may leave the process. `holder`: the object that holds back such
   * bytes. If the decisions turn out to be lost, `holder` is destroyed and `run` is never called. Absent if the store
   * records everything before it answers.
   */
  onRecord?(run: () => void, holder?: { destroy(): void }): void;
  /**
   * Calls `run` when another process has decided about users of this one before this one knew of it. What was read or
   * decided here may be lost, so answers to requests that are in progress must not leave. Absent: that cannot happen.
   */
  onLost?(run: () => void): Cancel;
  /**
   * Returns the address of the relay that decides about this user's clients. Null if this is the relay itself, if that
   * relay has no address, or if it is not known to live. Absent if all relays are equally near to a user.
   */
  homeOf?(userId: string): string | null;
  /** Calls `run` when the result of `homeOf` may have changed for the users that `concerns` accepts. */
  onHome?(run: (concerns: (userId: string) => boolean) => void): Cancel;
  /**
   * Absent if the backend keeps nothing beyond its process or, for a shared backend, if the store decides what
   * survives.
   */
  durability?(): Durability;
  /**
   * Returns until when contexts and windows may be missing, in epoch milliseconds. An earlier process had them in
   * memory, and its clients report them again after they reconnect. Clients that do not reconnect are forgotten by that
   * time. Absent if none are missing.
   */
  reportsMissingUntil?(): number;
  /** Resolves if the store is reachable and accepts writes; throws `store_unavailable` or `store_full` otherwise. */
  ready(): MaybePromise<void>;
  close(): MaybePromise<void>;
}

/** The name of a port: a member of a backend that is an object with methods. */
export type PortName = Exclude<
  keyof { [P in keyof Backend as NonNullable<Backend[P]> extends (...args: never[]) => unknown ? never : P]: true },
  'capabilities'
>;

/** The name of a method of a port, including optional methods. */
export type PortMethod<P extends PortName> = keyof {
  [M in keyof Backend[P] as NonNullable<Backend[P][M]> extends (...args: never[]) => unknown ? M : never]: true;
};

// The publish/subscribe port for live hints. A hint arrives at most once, and nothing may depend on its arrival.

export type ConnectionChange = 'connected' | 'resumed' | 'replaced' | 'stale' | 'disconnected' | 'actions_changed';
export type ConnectionEvent = {
  readonly change: ConnectionChange;
  readonly connection: Connection;
  readonly cause: DisconnectCause | null;
  readonly at: number;
};
/**
 * A hint that a command changed. Listeners read the record again. `progress`: the payload of a progress report; null
 * for other changes. `number`: the number of the progress report, if the client numbers its reports.
 */
export type CommandHint = {
  readonly key: CommandKey;
  readonly progress: JsonText | null;
  readonly number?: number | undefined;
};

/** A pause began (`paused`), was ended by someone (`resumed`), or ended because its time was over (`lapsed`). */
export type PauseEvent = {
  readonly change: 'paused' | 'resumed' | 'lapsed';
  readonly pause: Pause;
  readonly at: number;
};

/** The type of the events of each topic. */
type Topics = {
  connections: ConnectionEvent;
  pauses: PauseEvent;
  [command: `command:${string}`]: CommandHint;
  /** The command events that match one filter. The topic ends with the key of the filter. */
  [feed: `events:${string}`]: CommandEvent;
  /** The command events that the listeners of one node want. Each node announces this to the others. */
  listening: Listening;
  /** The events of one site. The topic ends with the site's `siteKeyText`. */
  [site: `site:${string}`]: SiteEvent;
  /** A hint that a session or one of its grants ended. Listeners read the session again. */
  [session: `session:${string}`]: null;
  /**
   * Announces that an event stream was opened with a ticket. The topic ends with the digest of the ticket, and the
   * event is the id of the new stream. Ids sort by the time of opening. All streams with the same ticket and a smaller
   * id must end.
   */
  [ticket: `ticket:${string}`]: string;
};

/**
 * Live publish/subscribe. A listener gets each event at most once, and the events of one node in the order of
 * publishing. There is no replay. A listener that throws does not affect the others. In direct mode, publishing to a
 * topic without listeners costs one look-up. In shared mode, events of other nodes are lost while the connection to the
 * store is broken.
 */
export interface Bus {
  /** Returns false only if no topic of this kind has a listener now. The caller may then skip publishing. */
  hasSubscribers(kind: 'command'): boolean;
  publish<T extends keyof Topics & string>(topic: T, event: Topics[T]): void;
  /**
   * Calls `listener` with each event of the topic from now on. `interrupted` is called whenever events of other nodes
   * may have been lost: after the connection works again, and before the next event of another node. It is unknown how
   * many events were lost, and whether any of them belonged to this topic.
   */
  subscribe<T extends keyof Topics & string>(
    topic: T,
    listener: (event: Topics[T]) => void,
    interrupted?: () => void,
  ): Cancel;
  /**
   * Resolves when the listeners that `subscribe` added receive the events of other nodes: those for this command, or with
   * null those of all topics but `command:`. In direct mode there is nothing to wait for. If another node does not answer,
   * or the store is unavailable, resolves after one second anyway. Never rejects.
   */
  confirmed(command: CommandKey | null): MaybePromise<void>;
}
