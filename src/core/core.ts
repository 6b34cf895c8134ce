/** The rooms of core as the faces see them. Every method takes who asks, refuses what they may not, and answers bounded. */
import type { Principal, UserPrincipal } from './auth/principal.ts';
import type { Capabilities } from './backend.ts';
import type { ConnectionEvent } from './bus.ts';
import type { Clock } from './clock.ts';
import type { ActionAdvertisement, ClientType, Connection, ConnectionStatus } from './connections/connection.ts';
import type { Completeness, Page } from './page.ts';
import type { PageArgs } from './cursor.ts';
import type { Command, ExecutionEvidence, Outcome, Stage } from './delivery/command.ts';
import type { ClientLink, LinkSession } from './delivery/link.ts';
import type { WaitFor } from './delivery/waiter.ts';
import type { Counted, PendingWait } from './delivery/waiters.ts';
import type { Code } from './errors.ts';
import type { Message, MessageKind, TerminalError } from './history/message.ts';
import type { StreamSummary } from './history/store.ts';
import type { ClientKey, CommandKey } from './ids.ts';
import type { JsonText } from './json.ts';
import type { Subscription } from './live.ts';
import type { Maybe } from './maybe.ts';

export type Who = Principal | null;

export interface Core {
  readonly nodeId: string;
  readonly mode: 'direct' | 'shared';
  readonly capabilities: Capabilities;
  readonly clock: Clock;
  readonly users: Users;
  readonly connections: Connections;
  readonly actions: Actions;
  readonly rpc: Rpc;
  readonly history: Histories;
  readonly delivery: Deliveries;
  readonly links: Links;
  /** Takes up the mailbox and the loops. */
  start(): Promise<void>;
  /** Stops admitting (`draining`), waits at most `withinMs` for commands in flight, then closes the links. */
  drain(withinMs: number): Promise<void>;
  readonly draining: boolean;
  close(): Promise<void>;
  /** Throws `store_unavailable` or `draining` when this node should get no traffic. */
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
  get(who: Who, userId: string): Promise<UserView | null>;
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
}

// --- commands --------------------------------------------------------------------------------------------------------
export type InvokeRequest = ClientKey & {
  readonly action: string;
  readonly params: JsonText | null;
  readonly commandId?: string | null | undefined;
  readonly instanceId?: string | null | undefined;
  readonly waitFor?: WaitFor | null | undefined;
  readonly connectWithinMs?: number | null | undefined;
  readonly respondWithinMs?: number | null | undefined;
  readonly traceId?: string | null | undefined;
  readonly parentSpanId?: string | null | undefined;
  /** The caller hung up: ends the waiter, never the command. */
  readonly signal?: AbortSignal | undefined;
};

export type RefusedBy = 'address' | 'policy' | 'arguments' | 'capacity' | 'target' | 'conflict' | 'site' | 'relay';

/** An invocation as its caller sees it. `pending` when the wait was reached or ended before the command did: `rpcId` is then no longer waiting. */
export type Invocation =
  | {
      readonly kind: 'outcome' | 'pending';
      readonly command: Command;
      readonly rpcId: string | null;
      readonly result: JsonText | null;
    }
  | {
      readonly kind: 'refused';
      readonly code: Code;
      readonly message: string;
      readonly by: RefusedBy;
      readonly retryAfterMs: number | null;
      /** The ids that the caller gave, where there were such. */
      readonly commandId: string | null;
    };

export type AwaitRequest = CommandKey & {
  readonly waitFor?: WaitFor | null | undefined;
  /** How long to wait; 0 only reads the record and makes no waiter. */
  readonly withinMs?: number | null | undefined;
  readonly signal?: AbortSignal | undefined;
};

/** `cancelled`: it had not been written and now never will be. `requested`: its client was asked. `too_late`: it had ended. */
export type CancelReceipt = { readonly state: 'cancelled' | 'requested' | 'too_late'; readonly command: Command };

export type PendingQuery = {
  readonly userId?: string | null | undefined;
  readonly clientId?: string | null | undefined;
  readonly nodeId?: string | null | undefined;
  readonly callerNodeId?: string | null | undefined;
  readonly minAgeMs?: number | null | undefined;
  /** The instance believed live: a waiter that expects another is reported as mismatch. */
  readonly checkInstance?: string | null | undefined;
};

export type InstanceMismatch = {
  readonly expectedInstanceId: string;
  /** Null: the client is not connected. */
  readonly observedInstanceId: string | null;
  readonly observedAt: number;
};

export type PendingRpc = PendingWait & { readonly ageMs: number; readonly instanceMismatch: InstanceMismatch | null };

export type PendingRpcAlert = {
  readonly over: boolean;
  readonly oldestAgeMs: number;
  readonly count: number;
  readonly oldest: PendingRpc | null;
  readonly at: number;
};

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
  ofUsers(who: Who, userIds: readonly string[], first: number): Promise<readonly Summary<PendingRpc>[]>;
  ofClients(who: Who, keys: readonly ClientKey[], first: number): Promise<readonly Summary<PendingRpc>[]>;
  ofCommands(keys: readonly CommandKey[]): Promise<readonly (readonly PendingRpc[])[]>;
  /** Says whenever the oldest wait crosses the bound or all are back under it; begins with the present state. */
  alerts(who: Who, olderThanMs: number, userId: string | null): Subscription<PendingRpcAlert>;
}

export type CommandUpdate = {
  readonly command: Command;
  readonly progress: JsonText | null;
  readonly at: number;
};

/** The case file and its live form. */
export interface Deliveries {
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
  messages(who: Who, query: MessageQuery, page: PageArgs): Promise<Page<Message> | null>;
  ofCommand(who: Who, userId: string, commandId: string, page: PageArgs): Promise<Page<Message>>;
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
