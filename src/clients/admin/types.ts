import type * as asked from '../../generated/admin.ts';
import type { TokenSource } from '../link/token.ts';

export type AdminOptions = {
  /** The relay's base address, such as `http://127.0.0.1:4400`. */
  readonly url: string;
  /** An administrator's token. A function is called before each request, and once more when the relay answers 401. */
  readonly token: TokenSource;
  /** How many times a request is sent again when its connection breaks. Default 3. */
  readonly retries?: number;
  readonly fetch?: typeof globalThis.fetch;
};

type Command = { readonly userId: string; readonly clientId: string; readonly commandId: string };
type Client = { readonly userId: string; readonly clientId: string };

/** Selects a user's workers. */
export type WorkersAsked = Omit<asked.WorkersQueryVariables, 'userId'> & {
  /**
   * The canonical user id. Defaults to the literal user `default`, as in older deployments, and not to the user of the
   * token, so pass the resolved user.
   */
  readonly userId?: string;
};

/**
 * Delivery state as the answering node knows it. No record contains a payload, and no record proves that an effect
 * outside the relay is complete.
 */
export interface DeliveryReader {
  summary(): Promise<asked.DeliverySummaryQuery['delivery']['summary']>;
  nodes(page?: asked.DeliveryNodesQueryVariables): Promise<asked.DeliveryNodesQuery['delivery']['nodes']>;
  /** Admission scopes with their capacities. A scope need not be a commercial tenant. */
  tenants(page?: asked.DeliveryTenantsQueryVariables): Promise<asked.DeliveryTenantsQuery['delivery']['tenants']>;
  commands(asked?: asked.DeliveryCommandsQueryVariables): Promise<asked.DeliveryCommandsQuery['delivery']['commands']>;
  /** Null when no record of the command is retained. */
  status(command: Command): Promise<asked.DeliveryStatusQuery['delivery']['status']>;
}

/**
 * Read-only access to a relay: no method changes, renews or releases any work. Names and enum values are those of
 * GraphQL. A list is one page of at most 1000 rows, by default 100. `completeness` says what an answer does not cover.
 * All methods reject with AdminError.
 */
export interface Admin {
  users(page?: asked.UsersQueryVariables): Promise<asked.UsersQuery['users']>;
  /** One user with up to 100 connections and up to 100 streams. Null when the relay knows nothing of such a user. */
  user(id: string): Promise<asked.UserQuery['user']>;
  connections(asked?: asked.ConnectionsQueryVariables): Promise<asked.ConnectionsQuery['connections']>;
  /**
   * The actions that one client advertises; null when it is not connected. An advertisement is a capability, never an
   * authorization.
   */
  actions(client: Client): Promise<NonNullable<asked.ActionsQuery['connection']>['actions'] | null>;
  /** A bounded sample of advertisements over all clients, restricted to one action name if given. */
  actionSample(name?: string): Promise<asked.ActionSampleQuery['actions']>;
  /** Pending RPCs, oldest first. */
  pending(asked?: asked.PendingQueryVariables): Promise<asked.PendingQuery['pendingRpcs']>;
  pendingCount(filter?: asked.PendingRpcFilter): Promise<asked.PendingCountQuery['pendingRpcCount']>;
  pendingCountByNode(filter?: asked.PendingRpcFilter): Promise<asked.PendingCountByNodeQuery['pendingRpcCountByNode']>;
  /** Everything retained about one command, without payloads; null when nothing is retained. */
  command(command: Command): Promise<asked.CommandFileQuery['command']>;
  delivery(): DeliveryReader;
  contexts(asked?: asked.ContextsQueryVariables): Promise<asked.ContextsQuery['contexts']>;
  contextCount(filter?: asked.ContextFilter): Promise<asked.ContextCountQuery['contextCount']>;
  windows(asked?: asked.WindowsQueryVariables): Promise<asked.WindowsQuery['browserWindows']>;
  windowCount(filter?: asked.BrowserWindowFilter): Promise<asked.WindowCountQuery['browserWindowCount']>;
  window(window: asked.WindowQueryVariables): Promise<asked.WindowQuery['browserWindow']>;
  /** A user's workers, idle and assigned. Pass the resolved user: `userId` defaults to the literal user `default`. */
  workers(asked?: WorkersAsked): Promise<asked.WorkersQuery['workers']>;
  /**
   * Workers that could take a task. The query reserves none of them. Pass the resolved user: `userId` defaults to the
   * literal user `default`.
   */
  availableWorkers(asked?: WorkersAsked): Promise<asked.AvailableWorkersQuery['workers']['available']>;
  /**
   * Workers that are assigned to a task now; past assignments are not included. Pass the resolved user: `userId`
   * defaults to the literal user `default`.
   */
  workersOfTask(
    taskId: string,
    asked?: Pick<WorkersAsked, 'userId' | 'first'>,
  ): Promise<asked.WorkersOfTaskQuery['workers']['forTask']>;
  /**
   * Deduplication counts of the last `windowSeconds` (default 300), and the deduplicator's settings. They concern
   * ingestion, not execution.
   */
  dedup(asked?: asked.DedupQueryVariables): Promise<asked.DedupQuery['dedup']>;
  streams(asked: asked.StreamsQueryVariables): Promise<asked.StreamsQuery['streams']>;
  /** Payloads are redacted unless requested. The relay writes each request for payloads to its audit log. */
  messages(asked: asked.MessagesQueryVariables): Promise<asked.MessagesQuery['messages']>;
  commandMessages(asked: asked.CommandMessagesQueryVariables): Promise<asked.CommandMessagesQuery['commandHistory']>;
  /**
   * A bounded sample of stored messages. Rejects with `raw_history_disabled` when the relay does not allow raw history.
   */
  rawMessages(asked?: asked.RawMessagesQueryVariables): Promise<asked.RawMessagesQuery['rawMessages']>;
}
