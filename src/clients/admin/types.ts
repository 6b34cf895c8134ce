import type * as asked from '../../generated/admin.ts';
import type { TokenSource } from '../link/token.ts';

export type AdminOptions = {
  /** The relay's base address, such as `http://127.0.0.1:4400`. */
  readonly url: string;
  /** An administrator's. A function is asked before each request, and once more when the relay turns its token down. */
  readonly token: TokenSource;
  /** How often a request is sent again when its connection broke. Default 3. */
  readonly retries?: number;
  readonly fetch?: typeof globalThis.fetch;
};

type Command = { readonly userId: string; readonly clientId: string; readonly commandId: string };
type Client = { readonly userId: string; readonly clientId: string };

/** Whose workers, and which. */
export type WorkersAsked = Omit<asked.WorkersQueryVariables, 'userId'> & {
  /**
   * The canonical user. Left out it is the literal user `default`, as older deployments had it, and not the user of the token: pass the
   * resolved user.
   */
  readonly userId?: string;
};

/** Delivery as the node that answers knows it. No record of it holds a payload or means that an effect outside is complete. */
export interface DeliveryReader {
  summary(): Promise<asked.DeliverySummaryQuery['delivery']['summary']>;
  nodes(page?: asked.DeliveryNodesQueryVariables): Promise<asked.DeliveryNodesQuery['delivery']['nodes']>;
  /** Capacity scopes, which need not be commercial tenants. */
  tenants(page?: asked.DeliveryTenantsQueryVariables): Promise<asked.DeliveryTenantsQuery['delivery']['tenants']>;
  commands(asked?: asked.DeliveryCommandsQueryVariables): Promise<asked.DeliveryCommandsQuery['delivery']['commands']>;
  /** Null where no record is left. */
  status(command: Command): Promise<asked.DeliveryStatusQuery['delivery']['status']>;
}

/**
 * Reads; nothing that it asks changes, renews or releases any work. Names and enum words are those of GraphQL. Lists are pages of at most
 * 1000 rows, 100 unless told; `completeness` says what an answer did not see. Everything rejects with AdminError.
 */
export interface Admin {
  users(page?: asked.UsersQueryVariables): Promise<asked.UsersQuery['users']>;
  /** With up to 100 of its connections and up to 100 of its streams. Null where nothing of such a user is observed. */
  user(id: string): Promise<asked.UserQuery['user']>;
  connections(asked?: asked.ConnectionsQueryVariables): Promise<asked.ConnectionsQuery['connections']>;
  /** What one client advertises; null where it is not connected. Capability, never authorization. */
  actions(client: Client): Promise<NonNullable<asked.ActionsQuery['connection']>['actions'] | null>;
  /** A bounded sample over all clients, of the one name if given. */
  actionSample(name?: string): Promise<asked.ActionSampleQuery['actions']>;
  /** Callers that still wait, oldest first. */
  pending(asked?: asked.PendingQueryVariables): Promise<asked.PendingQuery['pendingRpcs']>;
  pendingCount(filter?: asked.PendingRpcFilter): Promise<asked.PendingCountQuery['pendingRpcCount']>;
  pendingCountByNode(filter?: asked.PendingRpcFilter): Promise<asked.PendingCountByNodeQuery['pendingRpcCountByNode']>;
  /** The case file of one command, without its payloads; null where nothing of it is left. */
  command(command: Command): Promise<asked.CommandFileQuery['command']>;
  delivery(): DeliveryReader;
  contexts(asked?: asked.ContextsQueryVariables): Promise<asked.ContextsQuery['contexts']>;
  contextCount(filter?: asked.ContextFilter): Promise<asked.ContextCountQuery['contextCount']>;
  windows(asked?: asked.WindowsQueryVariables): Promise<asked.WindowsQuery['browserWindows']>;
  windowCount(filter?: asked.BrowserWindowFilter): Promise<asked.WindowCountQuery['browserWindowCount']>;
  window(window: asked.WindowQueryVariables): Promise<asked.WindowQuery['browserWindow']>;
  /** A user's workers, idle and assigned. Pass the resolved user: left out it is the literal user `default`. */
  workers(asked?: WorkersAsked): Promise<asked.WorkersQuery['workers']>;
  /** Those that could be given a task; none is reserved by being shown. Pass the resolved user: left out it is the literal user `default`. */
  availableWorkers(asked?: WorkersAsked): Promise<asked.AvailableWorkersQuery['workers']['available']>;
  /** Those that are assigned to a task now, and nothing more. Pass the resolved user: left out it is the literal user `default`. */
  workersOfTask(
    taskId: string,
    asked?: Pick<WorkersAsked, 'userId' | 'first'>,
  ): Promise<asked.WorkersOfTaskQuery['workers']['forTask']>;
  /** What the deduplicator saw in the last 300 seconds, unless told otherwise, and what it is. Ingestion, not execution. */
  dedup(asked?: asked.DedupQueryVariables): Promise<asked.DedupQuery['dedup']>;
  streams(asked: asked.StreamsQueryVariables): Promise<asked.StreamsQuery['streams']>;
  /** Payloads are redacted unless asked for; the relay writes each such asking to its audit log. */
  messages(asked: asked.MessagesQueryVariables): Promise<asked.MessagesQuery['messages']>;
  commandMessages(asked: asked.CommandMessagesQueryVariables): Promise<asked.CommandMessagesQuery['commandHistory']>;
  /** A bounded sample as it is stored; rejects with `raw_history_disabled` where the relay was started without. */
  rawMessages(asked?: asked.RawMessagesQueryVariables): Promise<asked.RawMessagesQuery['rawMessages']>;
}
