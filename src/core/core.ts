/** The rooms of core as the faces see them. Every method takes who asks, refuses what they may not, and answers bounded. */
import type { Principal, UserPrincipal } from './auth/principal.ts';
import type { Capabilities } from './backend.ts';
import type { ConnectionEvent } from './bus.ts';
import type { Clock } from './clock.ts';
import type { ActionAdvertisement, ClientType, Connection, ConnectionStatus } from './connections/connection.ts';
import type { Contexts } from './contexts/room.ts';
import type { Completeness, Page } from './page.ts';
import type { PageArgs } from './cursor.ts';
import type { Command, ExecutionEvidence, Outcome, Stage } from './delivery/command.ts';
import type { ClientLink, LinkSession } from './delivery/link.ts';
import type { DeliveryDeeds, DeliveryObservation } from './delivery/observation.ts';
import type { Counted } from './delivery/waiters.ts';
import type { Dedup } from './dedup/dedup.ts';
import type { Message, MessageKind, ShownPayload, TerminalError } from './history/message.ts';
import type { RawMessages, RawQuery } from './history/raw.ts';
import type { MessageOrder, StreamSummary } from './history/store.ts';
import type { ClientKey, CommandKey } from './ids.ts';
import type { Ingest } from './ingest/room.ts';
import type { JsonText } from './json.ts';
import type { Subscription } from './live.ts';
import type {
  AwaitRequest,
  CancelReceipt,
  Invocation,
  InvokeRequest,
  PendingQuery,
  PendingRpc,
  PendingRpcAlert,
} from './rpc/call.ts';
import type { Maybe } from './maybe.ts';
import type { Shares } from './shares/shares.ts';
import type { SiteRegistry, SiteSessions, SiteView } from './sites/room.ts';

export type Who = Principal | null;

export interface Core {
  readonly nodeId: string;
  readonly mode: 'direct' | 'shared';
  readonly capabilities: Capabilities;
  readonly clock: Clock;
  /** How long after its end a command's id is known, milliseconds: within it no id runs twice. */
  readonly idempotencyWindowMs: number;
  readonly users: Users;
  readonly connections: Connections;
  readonly actions: Actions;
  readonly contexts: Contexts;
  readonly rpc: Rpc;
  readonly history: Histories;
  readonly dedup: Dedup;
  readonly ingest: Ingest;
  readonly delivery: Deliveries;
  readonly links: Links;
  readonly sites: Sites;
  /** What each user holds in this process. */
  readonly shares: Shares;
  /** Takes up the mailbox and the loops. */
  start(): Promise<void>;
  /** Stops admitting (`draining`), waits at most `withinMs` for commands in flight, then closes the links. */
  drain(withinMs: number): Promise<void>;
  readonly draining: boolean;
  close(): Promise<void>;
  /** Throws `draining`, `store_full` or `store_unavailable` when this node should get no new traffic. */
  ready(): Maybe<void>;
}

// --- users -----------------------------------------------------------------------------------------------------------
export type UserView = {
  readonly id: string;
  readonly connectionCount: number;
  readonly streamCount: number;
  readonly completeness: Completeness;
};

export interface Users {
  /** Admin. Users that the connection and history inspectors observe, merged in order of user. */
  list(who: Who, page: PageArgs): Promise<Page<UserView>>;
  /** Admin, or the user itself. Null when no inspector knows the user (a user asking for itself always gets an answer). */
  get(who: Who, userId: string): Maybe<UserView | null>;
}

// --- connections and actions -----------------------------------------------------------------------------------------
export type ConnectionQuery = {
  readonly userId?: string | null | undefined;
  readonly nodeId?: string | null | undefined;
  readonly status?: ConnectionStatus | null | undefined;
};
/** A first page as the listing of the same things would give it, cursors included, and how many there are in all. */
export type Summary<T> = Page<T> & { readonly total: number };

export interface Connections {
  list(who: Who, query: ConnectionQuery, page: PageArgs): Promise<Page<Connection>>;
  /** Null: absent or foreign. */
  get(who: Who, key: ClientKey): Promise<Connection | null>;
  /** For nested fields, after the parent was authorised: one round trip for all keys. */
  many(keys: readonly ClientKey[]): Maybe<readonly (Connection | null)[]>;
  /** As `many`: the page that `list` gives for `{ userId }` alone, of each user; `who` only binds the cursors. */
  ofUsers(who: Who, userIds: readonly string[], first: number): Maybe<readonly Summary<Connection>[]>;
  /** Live changes, from now on; of one user, or (admin) of all. */
  events(who: Who, userId: string | null): Subscription<ConnectionEvent>;
}

export type AdvertisedAction = ClientKey & { readonly instanceId: string; readonly action: ActionAdvertisement };
export type ActionSample = {
  readonly items: readonly AdvertisedAction[];
  readonly complete: boolean;
  readonly completeness: Completeness;
};

export interface Actions {
  /** Admin. A bounded sample over live connections; `name` keeps one action. */
  sample(who: Who, name: string | null): Promise<ActionSample>;
  /** For nested fields, after the connection was authorised: what was observed of its own advertisements. */
  completeness(connection: Connection): Maybe<Completeness>;
}

// --- commands --------------------------------------------------------------------------------------------------------
export type * from './rpc/call.ts';

export interface Rpc {
  /** Never throws for an expected refusal of the target, policy or capacity: those are `refused`. Throws for who may not ask, and for wrong input. */
  invoke(who: Who, request: InvokeRequest): Promise<Invocation>;
  /** Null: absent or foreign. */
  await(who: Who, request: AwaitRequest): Promise<Invocation | null>;
  cancel(who: Who, key: CommandKey, reason: string | null): Promise<CancelReceipt | null>;
  pending(who: Who, query: PendingQuery, page: PageArgs): Promise<Page<PendingRpc>>;
  count(who: Who, query: PendingQuery): Promise<Counted & { readonly completeness: Completeness }>;
  countByNode(
    who: Who,
    query: PendingQuery,
  ): Promise<{
    readonly items: readonly { readonly nodeId: string | null; readonly count: number }[];
    readonly completeness: Completeness;
  }>;
  /** For nested fields, after the parent was authorised: the page that `pending` gives for that user or client alone. One round trip. */
  ofUsers(who: Who, userIds: readonly string[], first: number): Maybe<readonly Summary<PendingRpc>[]>;
  ofClients(who: Who, keys: readonly ClientKey[], first: number): Maybe<readonly Summary<PendingRpc>[]>;
  ofCommands(keys: readonly CommandKey[]): Maybe<readonly (readonly PendingRpc[])[]>;
  /** Says whenever the oldest wait crosses the bound or all are back under it; begins with the present state. */
  alerts(who: Who, olderThanMs: number, userId: string | null): Subscription<PendingRpcAlert>;
}

export type CommandUpdate = {
  readonly command: Command;
  readonly progress: JsonText | null;
  readonly at: number;
};

/** The case file and its live form, how delivery goes, and what an operator may do about it. */
export interface Deliveries extends DeliveryObservation, DeliveryDeeds {
  /** Null: absent or foreign. */
  command(who: Who, key: CommandKey): Promise<Command | null>;
  many(keys: readonly CommandKey[]): Maybe<readonly (Command | null)[]>;
  /** The recorded result; the caller of this has already shown that the asker may see payloads. */
  result(key: CommandKey): Maybe<JsonText | null>;
  /** Begins with the present state, ends after the terminal one. Null: absent or foreign. */
  updates(who: Who, key: CommandKey): Promise<Subscription<CommandUpdate> | null>;
  /** Live counts of a connection on this deployment: dispatched and not ended, and queued. */
  load(key: ClientKey): { readonly inFlight: number; readonly queued: number };
}

// --- history ---------------------------------------------------------------------------------------------------------
/** Without an order, `oldest_first`. A cursor opens only for the order in which it was given. */
export type MessagePageArgs = PageArgs & { readonly order?: MessageOrder | null | undefined };

export type MessageQuery = {
  readonly stream: string;
  readonly afterTime?: number | null | undefined;
  readonly beforeTime?: number | null | undefined;
  readonly kinds?: readonly MessageKind[] | null | undefined;
};

export interface Histories {
  streams(who: Who, userId: string, prefix: string | null, page: PageArgs): Promise<Page<StreamSummary>>;
  /** For nested fields: the page that `streams` gives without a prefix, of each user. One round trip. */
  ofUsers(who: Who, userIds: readonly string[], first: number): Maybe<readonly Summary<StreamSummary>[]>;
  /** Null: no such stream, or a foreign one. */
  messages(who: Who, query: MessageQuery, page: MessagePageArgs): Promise<Page<Message> | null>;
  ofCommand(who: Who, userId: string, commandId: string, page: MessagePageArgs): Promise<Page<Message>>;
  /** For nested fields, after the messages were authorised and their payloads asked for: one answer per message, large ones fetched. */
  payloads(messages: readonly Message[]): Promise<readonly ShownPayload[]>;
  /** Admin, where the deployment allows it (`raw_history_disabled`). Null: no such stream. */
  raw(who: Who, query: RawQuery): Promise<RawMessages | null>;
  /** The hook that removes expired objects of a managed spill store; how many. An unmanaged one is left alone (0). */
  cleanSpill(): Maybe<number>;
}

// --- sites -----------------------------------------------------------------------------------------------------------
/** As InvokeRequest, without its target: that is the session's host. */
export type SiteInvokeRequest = Omit<InvokeRequest, 'userId' | 'clientId' | 'onAdmitted' | 'onStage'>;

export interface Sites extends SiteRegistry, SiteSessions {
  /** For nested fields, after the parent was authorised: the page that `list` gives for that owner alone. */
  ofUsers(who: Who, userIds: readonly string[], first: number): Promise<readonly Summary<SiteView>[]>;
  /**
   * Runs an allowed action on the session's host, as its owner, with the session's and the site's id added to the params. Refusals come in
   * this order: who asks, input, the site's rules, the session's state, then those of any command. Null: absent or foreign.
   */
  invoke(who: Who, sessionId: string, request: SiteInvokeRequest): Promise<Invocation | null>;
}

// --- links -----------------------------------------------------------------------------------------------------------
export type HelloRequest = {
  readonly clientId: string;
  readonly instanceId: string;
  readonly clientType: ClientType;
  readonly metadata: JsonText | null;
  readonly actions: readonly ActionAdvertisement[];
};

export interface Links {
  /** Binds the client to this link. Throws `forbidden`, `draining` or `store_unavailable`. */
  open(who: UserPrincipal, hello: HelloRequest, link: ClientLink): Promise<LinkSession>;
}

export type { ConnectionEvent, ExecutionEvidence, Outcome, Stage, TerminalError };
