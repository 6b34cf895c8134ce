/** What a backend consists of: one port for each kind of state, and the bus, whose port is here. Types only. */
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

/** The differences between backends that the interface allows, as data, so that answers can report them. */
export type Capabilities = {
  /** Whether several processes share one deployment. */
  readonly shared: boolean;
  /** Whether a `WaiterStore` reads the waits of all nodes. Otherwise it reads those of its process. */
  readonly allWaits: boolean;
  readonly exactDedupCounters: boolean;
  readonly cheapStreamSummaries: boolean;
};

/** How much of what a backend keeps outlives its process. */
export type Durability = {
  /** `memory`: nothing. `directory`: what a data directory keeps. `store`: what the store of all nodes keeps. */
  readonly kind: 'memory' | 'directory' | 'store';
  /** When records are synced to the disk: `100 ms`, `always` or `off`; null if it is not known here. */
  readonly sync: string | null;
  /** The size of the directory, in bytes; null if there is none. */
  readonly bytes: number | null;
  /** Whether the disk is full, so that nothing new is admitted. */
  readonly full: boolean;
  /** When the last snapshot was complete, in epoch milliseconds; null if this process wrote none. */
  readonly snapshotAt: number | null;
  /** How the relay was away before this process; null if it was not, or it is not known. */
  readonly away: Away | null;
};

/** The time between two processes with one data directory. */
export type Away = {
  /** When the process before recorded its last act, in epoch milliseconds. */
  readonly since: number;
  /** Whether that process was closed in order. */
  readonly clean: boolean;
  /** Whether the system itself ended, so that records that were not synced may be missing. */
  readonly lost: boolean;
  /** The bytes of an unfinished batch at the end of the journal, which were cut off; 0 if there were none. */
  readonly tornBytes: number;
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
  readonly pauses: PauseStore;
  readonly tickets: TicketStore;
  readonly revocations: RevocationStore;
  readonly devices: DeviceStore;
  readonly bus: Bus;
  /**
   * Returns how much of each share is in use, for the shares that the store counts itself. The amounts are those of all
   * users and nodes together. Absent: the store counts nothing itself, and the process counts in its `Shares`.
   */
  sharesInUse?(): MaybePromise<ReadonlyMap<ShareName, number>>;
  /**
   * Calls `run` once everything that the store decided so far is recorded, at once if it is. Bytes that depend on it
   * leave the process only then. `holder`: holds such bytes; it is destroyed, and `run` never called, if what they depend
   * on turns out to be lost. Absent: the store answers only after it has recorded.
   */
  onRecord?(run: () => void, holder?: { destroy(): void }): void;
  /**
   * Returns the address of the relay that decides about this user's clients; null if it is this one, is not known to
   * live, or has no address of its own. Absent: no relay is nearer to a user than others.
   */
  homeOf?(userId: string): string | null;
  /** Calls `run` when the answer of `homeOf` may have changed for the users that `concerns` accepts. */
  onHome?(run: (concerns: (userId: string) => boolean) => void): Cancel;
  /** Absent: nothing outlives the process, or, if the backend is shared, the store decides. */
  durability?(): Durability;
  /**
   * Returns until when contexts and windows may be missing, in epoch milliseconds: a process before this one had them,
   * and their clients report them again when they come back, or are forgotten by then. Absent: none are missing.
   */
  reportsMissingUntil?(): number;
  /** Resolves if the store is reachable and accepts writes; throws `store_unavailable` or `store_full` otherwise. */
  ready(): MaybePromise<void>;
  close(): MaybePromise<void>;
}

/** The name of a port: a member of a backend that has methods. */
export type PortName = Exclude<
  keyof { [P in keyof Backend as NonNullable<Backend[P]> extends (...args: never[]) => unknown ? never : P]: true },
  'capabilities'
>;

/** The name of a method of a port, also of one that only some stores have. */
export type PortMethod<P extends PortName> = keyof {
  [M in keyof Backend[P] as NonNullable<Backend[P][M]> extends (...args: never[]) => unknown ? M : never]: true;
};

// The port for live hints: publish and subscribe. A hint arrives at most once, and nothing may depend on its arrival.

export type ConnectionChange = 'connected' | 'resumed' | 'replaced' | 'stale' | 'disconnected' | 'actions_changed';
export type ConnectionEvent = {
  readonly change: ConnectionChange;
  readonly connection: Connection;
  readonly cause: DisconnectCause | null;
  readonly at: number;
};
/**
 * A hint that a command changed. Listeners read the record again. `progress`: the latest progress, if the change is a
 * report of progress; otherwise null. `number`: the number that the client gave this report, if it numbers them.
 */
export type CommandHint = {
  readonly key: CommandKey;
  readonly progress: JsonText | null;
  readonly number?: number | undefined;
};

/** A pause began, was ended by somebody, or ended by itself. */
export type PauseEvent = {
  readonly change: 'paused' | 'resumed' | 'lapsed';
  readonly pause: Pause;
  readonly at: number;
};

/** The event type of each topic. */
type Topics = {
  connections: ConnectionEvent;
  pauses: PauseEvent;
  [command: `command:${string}`]: CommandHint;
  /** The events of commands that match one filter; the topic ends with the key of the filter. */
  [feed: `events:${string}`]: CommandEvent;
  /** Which command events the listeners of one node want. Nodes announce this to each other. */
  listening: Listening;
  /** The events of one site; the topic ends with its `siteKeyText`. */
  [site: `site:${string}`]: SiteEvent;
  /** A hint that a session or one of its grants ended. Listeners read the session again. */
  [session: `session:${string}`]: null;
  /**
   * Announces that a stream was opened with a ticket; the topic ends with the ticket's digest. The event is the id of
   * the new stream. Ids sort in the order of opening, and streams of the same ticket with a smaller id end.
   */
  [ticket: `ticket:${string}`]: string;
};

/**
 * Live publish/subscribe. Each event is delivered at most once, in the order in which one node published, without
 * replay. A listener that throws does not affect the others. In direct mode, publishing to a topic without listeners
 * costs one look-up. In shared mode, events of other nodes are lost while a connection that carries them is broken.
 */
export interface Bus {
  /** Returns false only if no topic of this kind has a listener now: then the caller may skip publishing. */
  hasSubscribers(kind: 'command'): boolean;
  publish<T extends keyof Topics & string>(topic: T, event: Topics[T]): void;
  /**
   * Calls `listener` with each event of the topic from now on. `interrupted`: called each time when events of other
   * nodes may have been lost, after the connection works again and before the next event of another node. How many were
   * lost, and whether any of them belonged to this topic, is unknown.
   */
  subscribe<T extends keyof Topics & string>(
    topic: T,
    listener: (event: Topics[T]) => void,
    interrupted?: () => void,
  ): Cancel;
  /**
   * Resolves when the listeners of a command, which `subscribe` added before, receive the hints of other nodes. In
   * direct mode there is nothing to wait for. While the store is unavailable, it resolves after a second all the same.
   * Never rejects.
   */
  confirmed(command: CommandKey): MaybePromise<void>;
}
