/** Defines the public interface of `callboard/admin`. Contains types only. */
import type * as generated from '../../../generated/admin.ts';
import type { TokenSource } from '../link/socket.ts';

export type AdminOptions = {
  /** The relay's base address, such as `http://127.0.0.1:4400`. */
  readonly url: string;
  /**
   * An administrator's token, or a function that returns one. The function is called before each request, and once more
   * when the relay answers 401.
   */
  readonly token: TokenSource;
  /** How many times a request is sent again when its connection breaks. Default 3. */
  readonly retries?: number;
  readonly fetch?: typeof globalThis.fetch;
};

type Command = { readonly userId: string; readonly clientId: string; readonly commandId: string };
type Client = { readonly userId: string; readonly clientId: string };

/** Selects a user's workers. */
type WorkersArgs = Omit<generated.WorkersQueryVariables, 'userId'> & {
  /**
   * The canonical user id. By default the user whose id is `default` is read, as in older deployments, and not the user
   * of the token. So pass the user id.
   */
  readonly userId?: string;
};

/**
 * Reads the state of delivery as the answering node knows it. No record contains a payload, and no record proves that
 * an effect outside the relay is complete.
 */
export interface DeliveryReader {
  summary(): Promise<generated.DeliverySummaryQuery['delivery']['summary']>;
  nodes(page?: generated.DeliveryNodesQueryVariables): Promise<generated.DeliveryNodesQuery['delivery']['nodes']>;
  /** Returns admission scopes with their capacities. A scope need not be a commercial tenant. */
  tenants(
    page?: generated.DeliveryTenantsQueryVariables,
  ): Promise<generated.DeliveryTenantsQuery['delivery']['tenants']>;
  commands(
    variables?: generated.DeliveryCommandsQueryVariables,
  ): Promise<generated.DeliveryCommandsQuery['delivery']['commands']>;
  /** Returns the delivery record of a command; null when none is retained. */
  status(command: Command): Promise<generated.DeliveryStatusQuery['delivery']['status']>;
}

/** The type of the receipt in an answer. Such an answer is either a receipt or a refusal. */
type Receipt<Answer, Name> = Omit<Extract<Answer, { readonly __typename: Name }>, '__typename'>;

/** What an operator may change. A refusal rejects with AdminError. */
export interface AdminActs {
  /**
   * Cancels a command. `state` is `CANCELLED` (it was not written to its client and never will be), `REQUESTED` (the
   * client was asked to stop it) or `TOO_LATE` (it had ended). Rejects with `not_found` if there is no such command.
   */
  cancel(
    command: generated.CancelMutationVariables['input'],
  ): Promise<Receipt<generated.CancelMutation['cancelCommand'], 'CancelReceipt'>>;
  /**
   * Closes the link of a client, which may connect again at once. Ends no command. Rejects with `not_found` if the
   * client has no recent connection. A request whose connection breaks rejects with `unreachable` and is not sent
   * again. The link may then be closed or still open. Written to the audit log.
   */
  disconnect(
    client: generated.DisconnectMutationVariables,
  ): Promise<Receipt<generated.DisconnectMutation['disconnectClient'], 'DisconnectReceipt'>>;
  /**
   * Takes a node out of service. The node admits no new commands. It closes each link when the link's work is done, or
   * after `withinMs` milliseconds (0 to 600 000, default 10 000). Resolves at once with the work that is left;
   * `delivery().nodes()` shows the progress. Cannot be undone. Rejects with `not_found` if there is no such node.
   * Written to the audit log.
   */
  drain(node: generated.DrainMutationVariables): Promise<generated.DrainMutation['drainNode']>;
}

/**
 * What an operator can see and do at a relay. Only `cancel`, `disconnect` and `drain` change anything. Names and enum
 * values are those of GraphQL. A list is one page of at most 1000 rows, by default 100. `completeness` says what an
 * answer does not cover. All methods reject with AdminError.
 */
export interface Admin extends AdminActs {
  users(page?: generated.UsersQueryVariables): Promise<generated.UsersQuery['users']>;
  /**
   * Returns one user with up to 100 connections and up to 100 streams. Null when the relay knows nothing of such a
   * user.
   */
  user(id: string): Promise<generated.UserQuery['user']>;
  connections(variables?: generated.ConnectionsQueryVariables): Promise<generated.ConnectionsQuery['connections']>;
  /**
   * Returns the actions that one client advertises; null when it is not connected. An advertisement is a capability,
   * never an authorization.
   */
  actions(client: Client): Promise<NonNullable<generated.ActionsQuery['connection']>['actions'] | null>;
  /** Returns a bounded sample of advertisements over all clients, restricted to one action name if given. */
  actionSample(name?: string): Promise<generated.ActionSampleQuery['actions']>;
  /** Returns pending RPCs, oldest first. */
  pending(variables?: generated.PendingQueryVariables): Promise<generated.PendingQuery['pendingRpcs']>;
  pendingCount(filter?: generated.PendingRpcFilter): Promise<generated.PendingCountQuery['pendingRpcCount']>;
  pendingCountByNode(
    filter?: generated.PendingRpcFilter,
  ): Promise<generated.PendingCountByNodeQuery['pendingRpcCountByNode']>;
  /** Returns everything retained about one command, without payloads; null when nothing is retained. */
  command(command: Command): Promise<generated.CommandFileQuery['command']>;
  delivery(): DeliveryReader;
  contexts(variables?: generated.ContextsQueryVariables): Promise<generated.ContextsQuery['contexts']>;
  contextCount(filter?: generated.ContextFilter): Promise<generated.ContextCountQuery['contextCount']>;
  windows(variables?: generated.WindowsQueryVariables): Promise<generated.WindowsQuery['browserWindows']>;
  windowCount(filter?: generated.BrowserWindowFilter): Promise<generated.WindowCountQuery['browserWindowCount']>;
  window(window: generated.WindowQueryVariables): Promise<generated.WindowQuery['browserWindow']>;
  /**
   * Returns a user's workers, idle and assigned. Pass `userId`: if it is absent, the user whose id is `default` is
   * read.
   */
  workers(variables?: WorkersArgs): Promise<generated.WorkersQuery['workers']>;
  /**
   * Returns workers that could take a task. The query reserves none of them. Pass `userId`: if it is absent, the user
   * whose id is `default` is read.
   */
  availableWorkers(variables?: WorkersArgs): Promise<generated.AvailableWorkersQuery['workers']['available']>;
  /**
   * Returns workers that are assigned to a task now; past assignments are not included. Pass `userId`: if it is absent,
   * the user whose id is `default` is read.
   */
  workersOfTask(
    taskId: string,
    variables?: Pick<WorkersArgs, 'userId' | 'first'>,
  ): Promise<generated.WorkersOfTaskQuery['workers']['forTask']>;
  /**
   * Returns the deduplication counts of the last `windowSeconds` (default 300), and the deduplicator's settings. The
   * counts concern the ingestion of messages, not the execution of commands.
   */
  dedup(variables?: generated.DedupQueryVariables): Promise<generated.DedupQuery['dedup']>;
  streams(variables: generated.StreamsQueryVariables): Promise<generated.StreamsQuery['streams']>;
  /**
   * Returns retained messages. Payloads are redacted unless requested. The relay writes each request for payloads to
   * its audit log.
   */
  messages(variables: generated.MessagesQueryVariables): Promise<generated.MessagesQuery['messages']>;
  commandMessages(
    variables: generated.CommandMessagesQueryVariables,
  ): Promise<generated.CommandMessagesQuery['commandHistory']>;
  /**
   * Returns a bounded sample of stored messages. Rejects with `raw_history_disabled` when the relay does not allow raw
   * history.
   */
  rawMessages(variables?: generated.RawMessagesQueryVariables): Promise<generated.RawMessagesQuery['rawMessages']>;
}
