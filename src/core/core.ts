/**
 * The interfaces of core that the HTTP, GraphQL and WebSocket layers use. Methods take the requester, refuse what
 * the requester may not do, and bound their answers. Methods "for nested fields" rely on the authorization of the
 * parent.
 */
import type { Audits } from './audit/api.ts';
import type { Requester, UserPrincipal } from './auth/principal.ts';
import type { Capabilities } from './backend.ts';
import type { ConnectionEvent } from './bus.ts';
import type { Connections } from './connections/api.ts';
import type { Clock } from './clock.ts';
import type { ActionAdvertisement, ClientType, Connection } from './connections/connection.ts';
import type { Contexts } from './contexts/api.ts';
import type { Completeness, Page, Summary } from './page.ts';
import type { PageArgs } from './cursor.ts';
import type { Command, ExecutionEvidence, Outcome, Stage } from './delivery/command.ts';
import type { CommandLoad } from './delivery/commands.ts';
import type { ClientLink, LinkSession } from './delivery/link.ts';
import type { OperatorActions, DeliveryObservation } from './delivery/observation.ts';
import type { Counted } from './delivery/waiters.ts';
import type { Dedup } from './dedup/dedup.ts';
import type { Histories } from './history/api.ts';
import type { TerminalError } from './history/message.ts';
import type { ClientKey, CommandKey } from './ids.ts';
import type { Ingest } from './ingest/api.ts';
import type { JsonText } from './json.ts';
import type { SharedSubscription, Subscription } from './live.ts';
import type { CommandEvent } from './delivery/command-event.ts';
import type { CommandEventQuery } from './delivery/command-events-listen.ts';
import type {
  AwaitRequest,
  CancelReceipt,
  Invocation,
  InvokeRequest,
  PendingQuery,
  PendingRpc,
  PendingRpcAlert,
} from './rpc/call.ts';
import type { Reveals } from './reveal/api.ts';
import type { Preflight } from './rpc/preflight-result.ts';
import type { MaybePromise } from './maybe-promise.ts';
import type { ServerInfo } from './server.ts';
import type { SeriesApi } from './metrics/series.ts';
import type { ShareName } from './shares/bounds.ts';
import type { DocumentTurns } from './shares/documents.ts';
import type { SharesInUse } from './shares/in-use.ts';
import type { Shares } from './shares/shares.ts';
import type { SiteRegistry, SiteSessions, SiteView } from './sites/api.ts';
import type { SiteKey } from './sites/site.ts';
import type { Users } from './users/api.ts';

export type { Requester } from './auth/principal.ts';
export type { Summary } from './page.ts';
export type { Users, UserView } from './users/api.ts';

export interface Core {
  readonly nodeId: string;
  readonly mode: 'direct' | 'shared';
  readonly capabilities: Capabilities;
  readonly clock: Clock;
  readonly server: ServerInfo;
  /**
   * The idempotency window, in milliseconds: how long after its end a command's id is remembered, so that it does not
   * run again.
   */
  readonly idempotencyWindowMs: number;
  /** Reads the audit of administrators' acts. */
  readonly audit: Audits;
  /** Lets administrators read payloads, as far as the deployment allows it. */
  readonly reveals: Reveals;
  readonly users: Users;
  readonly connections: Connections;
  readonly actions: Actions;
  readonly contexts: Contexts;
  readonly rpc: Rpc;
  readonly history: Histories;
  readonly dedup: Dedup;
  readonly ingest: Ingest;
  readonly delivery: Deliveries;
  /** What the nodes counted and measured over time. */
  readonly series: SeriesApi;
  readonly links: Links;
  readonly sites: Sites;
  /** Runs the documents that read, with turns between users. */
  readonly documents: DocumentTurns;
  /** The resources that each user holds in this process. */
  readonly shares: Shares;
  /** How much of each share is in use, where the store counts in all nodes. */
  sharesInUse(): MaybePromise<SharesInUse>;
  /** Attaches to this node's mailbox and starts the background loops. */
  start(): Promise<void>;
  /** Stops admitting (`draining`), waits at most `withinMs` for the commands in flight, then closes the links. */
  drain(withinMs: number): Promise<void>;
  readonly draining: boolean;
  close(): Promise<void>;
  /** Throws `draining`, `store_full` or `store_unavailable` if this node should get no new traffic. */
  ready(): MaybePromise<void>;
  /** The shares whose total is used up. They refuse users who hold much; the node still takes new traffic. */
  fullShares(): MaybePromise<readonly ShareName[]>;
}

// --- connections and actions -----------------------------------------------------------------------------------------
export type * from './connections/api.ts';

export type AdvertisedAction = ClientKey & { readonly instanceId: string; readonly action: ActionAdvertisement };
export type ActionSample = {
  readonly items: readonly AdvertisedAction[];
  readonly complete: boolean;
  readonly completeness: Completeness;
};

export interface Actions {
  /**
   * Reads a bounded sample of the actions that live connections advertise. Admin only. `name` selects one action; null:
   * all.
   */
  sample(requester: Requester, name: string | null): Promise<ActionSample>;
  /**
   * Returns the completeness of a connection's own advertisements. For nested fields, after the connection was
   * authorized.
   */
  completeness(connection: Connection): MaybePromise<Completeness>;
}

// --- commands --------------------------------------------------------------------------------------------------------
export type * from './rpc/call.ts';

export interface Rpc {
  /**
   * Invokes an action. Returns `refused` if the target, the policy or the capacity refuses the invocation. Throws if
   * the requester is not authorized, and for invalid input.
   */
  invoke(requester: Requester, request: InvokeRequest): Promise<Invocation>;
  /**
   * Reports what each check of `invoke` would answer now. Admits, reserves, writes and counts nothing. Throws where the
   * requester may not invoke at all, and `not_found` for another user.
   */
  preflight(requester: Requester, request: InvokeRequest): Promise<Preflight>;
  /** Waits again for a command by its ids. Null if there is no such command, or if it belongs to another user. */
  await(requester: Requester, request: AwaitRequest): Promise<Invocation | null>;
  /**
   * Cancels a command. `requestId`: the id of the request, for the audit row that is written if an administrator
   * cancels a command of another requester.
   */
  cancel(
    requester: Requester,
    key: CommandKey,
    reason: string | null,
    requestId?: string | null,
  ): Promise<CancelReceipt | null>;
  pending(requester: Requester, query: PendingQuery, page: PageArgs): Promise<Page<PendingRpc>>;
  count(requester: Requester, query: PendingQuery): Promise<Counted & { readonly completeness: Completeness }>;
  countByNode(
    requester: Requester,
    query: PendingQuery,
  ): Promise<{
    readonly items: readonly { readonly nodeId: string | null; readonly count: number }[];
    readonly completeness: Completeness;
  }>;
  /**
   * Returns for each user or client the page that `pending` gives for it, in one round trip. For nested fields, after
   * the parent was authorized.
   */
  ofUsers(
    requester: Requester,
    userIds: readonly string[],
    first: number,
  ): MaybePromise<readonly Summary<PendingRpc>[]>;
  ofClients(
    requester: Requester,
    keys: readonly ClientKey[],
    first: number,
  ): MaybePromise<readonly Summary<PendingRpc>[]>;
  ofCommands(keys: readonly CommandKey[]): MaybePromise<readonly (readonly PendingRpc[])[]>;
  /**
   * Emits the current state first. Then emits an event each time the oldest wait reaches `olderThanMs`, and each time
   * all waits are below it again.
   */
  alerts(requester: Requester, olderThanMs: number, userId: string | null): Subscription<PendingRpcAlert>;
}

export type CommandUpdate = {
  readonly command: Command;
  readonly progress: JsonText | null;
  readonly at: number;
};

/** The API of commands: their records, their live updates, the state of delivery, and the actions of an operator. */
export interface Deliveries extends DeliveryObservation, OperatorActions {
  /** Returns the record of a command. Null if there is no such command, or if it belongs to another user. */
  command(requester: Requester, key: CommandKey): Promise<Command | null>;
  many(keys: readonly CommandKey[]): MaybePromise<readonly (Command | null)[]>;
  /** Returns the recorded result. Does not authorize: the caller must have done so. */
  result(key: CommandKey): MaybePromise<JsonText | null>;
  /**
   * Emits the current state first, and ends after the terminal one. Null if there is no such command, or if it belongs
   * to another user.
   */
  updates(requester: Requester, key: CommandKey): Promise<Subscription<CommandUpdate> | null>;
  /** Returns the live feed of the events of commands that the requester may see. See `commandEvents`. */
  events(requester: Requester, query: CommandEventQuery): SharedSubscription<CommandEvent>;
  /** Counts the live commands of each of these clients in the whole deployment. Does not authorize. */
  loads(keys: readonly ClientKey[]): MaybePromise<readonly CommandLoad[]>;
  /** Counts the live commands of all clients that are connected to this node. */
  nodeLoad(): CommandLoad;
}

// --- history ---------------------------------------------------------------------------------------------------------
export type * from './history/api.ts';

// --- sites -----------------------------------------------------------------------------------------------------------
/** An InvokeRequest without its target, which is the session's host. */
export type SiteInvokeRequest = Omit<InvokeRequest, 'userId' | 'clientId' | 'onAdmitted' | 'onStage'>;

export interface Sites extends SiteRegistry, SiteSessions {
  /** Returns sites that the requester may read: one answer per key, in order; null where there is no site. */
  many(keys: readonly SiteKey[]): Promise<readonly (SiteView | null)[]>;
  /** Returns for each owner the page that `list` gives for it. For nested fields, after the parent was authorized. */
  ofUsers(requester: Requester, userIds: readonly string[], first: number): Promise<readonly Summary<SiteView>[]>;
  /**
   * Runs an allowed action on the session's host, as the session's owner, with the ids of session and site added to the
   * params. Checks run in this order: the requester, the input, the site's rules, the session's state, then the checks
   * of every invocation. Null if there is no such session, or if it belongs to another user.
   */
  invoke(requester: Requester, sessionId: string, request: SiteInvokeRequest): Promise<Invocation | null>;
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
  open(requester: UserPrincipal, hello: HelloRequest, link: ClientLink): Promise<LinkSession>;
}

export type { ConnectionEvent, ExecutionEvidence, Outcome, Stage, TerminalError };
