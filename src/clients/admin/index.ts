/**
 * Exports `callboard/admin`, with which programs in browsers and Node read a relay's state and carry out an operator's
 * actions. Needs only `fetch`. Each method but `delivery` sends one GraphQL operation.
 */
import type * as generated from '../../../generated/admin.ts';
import * as documents from '../../../generated/admin.ts';
import { checkMembers, checkNames } from '../link/options.ts';
import { LibraryError, type LibraryErrorDetails } from '../link/library-error.ts';
import { createOperationRunner, type RunOperation } from '../link/operation.ts';
import { REQUEST_MEMBERS, type RelayRequestOptions } from '../link/request-with-retries.ts';

export type { TokenSource } from '../link/reconnect.ts';
export type { ErrorCode } from '../link/library-error.ts';

/** The user id that older deployments used when none was given. */
const LEGACY_USER = 'default';

/**
 * Creates an administrator's access to one relay. Throws TypeError for an invalid URL or token. Sends nothing until a
 * method is called.
 */
export function createAdmin(options: AdminOptions): Admin {
  checkMembers('', options, REQUEST_MEMBERS);
  const query = withKnownVariables(createOperationRunner(options, adminError));
  // A repeated disconnect could close the new link of a client that has already reconnected.
  const sendOnce = withKnownVariables(createOperationRunner({ ...options, retries: 0 }, adminError));
  const delivery: DeliveryReader = {
    summary: async () => (await query(documents.DeliverySummaryDocument, {})).delivery.summary,
    nodes: async (page = {}) => (await query(documents.DeliveryNodesDocument, page)).delivery.nodes,
    tenants: async (page = {}) => (await query(documents.DeliveryTenantsDocument, page)).delivery.tenants,
    commands: async (variables = {}) => (await query(documents.DeliveryCommandsDocument, variables)).delivery.commands,
    status: async (command) => (await query(documents.DeliveryStatusDocument, command)).delivery.status,
  };
  return {
    users: async (page = {}) => (await query(documents.UsersDocument, page)).users,
    user: async (id) => (await query(documents.UserDocument, { id })).user,
    connections: async (variables = {}) => (await query(documents.ConnectionsDocument, variables)).connections,
    actions: async (client) => (await query(documents.ActionsDocument, client)).connection?.actions ?? null,
    actionSample: async (name) => (await query(documents.ActionSampleDocument, { name })).actions,
    pending: async (variables = {}) => (await query(documents.PendingDocument, variables)).pendingRpcs,
    pendingCount: async (filter) => (await query(documents.PendingCountDocument, { filter })).pendingRpcCount,
    pendingCountByNode: async (filter) =>
      (await query(documents.PendingCountByNodeDocument, { filter })).pendingRpcCountByNode,
    command: async (command) => (await query(documents.CommandFileDocument, command)).command,
    contexts: async (variables = {}) => (await query(documents.ContextsDocument, variables)).contexts,
    contextCount: async (filter) => (await query(documents.ContextCountDocument, { filter })).contextCount,
    windows: async (variables = {}) => (await query(documents.WindowsDocument, variables)).browserWindows,
    windowCount: async (filter) => (await query(documents.WindowCountDocument, { filter })).browserWindowCount,
    window: async (window) => (await query(documents.WindowDocument, window)).browserWindow,
    workers: async ({ userId = LEGACY_USER, ...more } = {}) =>
      (await query(documents.WorkersDocument, { userId, ...more })).workers,
    availableWorkers: async ({ userId = LEGACY_USER, ...more } = {}) =>
      (await query(documents.AvailableWorkersDocument, { userId, ...more })).workers.available,
    workersOfTask: async (taskId, { userId = LEGACY_USER, ...more } = {}) =>
      (await query(documents.WorkersOfTaskDocument, { userId, taskId, ...more })).workers.forTask,
    dedup: async (variables = {}) => (await query(documents.DedupDocument, variables)).dedup,
    streams: async (variables) => (await query(documents.StreamsDocument, variables)).streams,
    messages: async (variables) => (await query(documents.MessagesDocument, variables)).messages,
    commandMessages: async (variables) => (await query(documents.CommandMessagesDocument, variables)).commandHistory,
    rawMessages: async (variables = {}) => (await query(documents.RawMessagesDocument, variables)).rawMessages,
    cancel: async (input) => receiptOf((await query(documents.CancelDocument, { input })).cancelCommand),
    disconnect: async (client) => receiptOf((await sendOnce(documents.DisconnectDocument, client)).disconnectClient),
    drain: async (node) => receiptOf((await query(documents.DrainDocument, node)).drainNode),
    delivery: () => delivery,
  };
}

/** Makes an operation reject with TypeError for variables that it does not have: GraphQL would ignore them. */
function withKnownVariables(run: RunOperation): RunOperation {
  return async (operation, variables, signal) => {
    const known = Array.from(operation.toString().matchAll(/\$(\w+)/g), ([, name = '']) => name);
    checkNames('', variables, known);
    return run(operation, variables, signal);
  };
}

type Refusal = Extract<documents.CancelMutation['cancelCommand'], { readonly __typename: 'Refusal' }>;

/** Returns the receipt in an answer. Throws AdminError for a refusal. */
function receiptOf<Receipt extends { readonly __typename: string }>(answer: Receipt | Refusal): Receipt {
  if (!isRefusal(answer)) return answer;
  const { code, message, retryAfterMs } = answer;
  throw new AdminError(code, message, { status: 200, retryAfterMs });
}

function isRefusal(answer: { readonly __typename: string }): answer is Refusal {
  return answer.__typename === 'Refusal';
}

/** One page of a listing. */
export type Page<Row = unknown> = { readonly nodes: readonly Row[]; readonly nextCursor: string | null };

/**
 * Yields every page of a listing in order: `pages((after) => admin.users({ after }))`. Each page is requested when the
 * consumer asks for it. Rows that appear or disappear during the iteration may be missed; no row is yielded twice.
 * Throws what `query` throws.
 */
export async function* pages<Listing extends Page>(
  query: (after: string | null) => Promise<Listing>,
): AsyncGenerator<Listing, void, undefined> {
  let after: string | null = null;
  do {
    const page: Listing = await query(after);
    yield page;
    after = page.nextCursor;
  } while (after !== null);
}

export type AdminErrorDetails = LibraryErrorDetails & {
  /** The HTTP status; null when there was no response. */
  readonly status?: number | null;
};

/**
 * The error with which every method of Admin rejects. `code` is one of callboard's codes (`unauthenticated`,
 * `forbidden`, `invalid_argument`, `not_found`, ...), or one of two others:
 *
 * - `unreachable`: no response from the relay.
 * - `bad_answer`: the response does not come from a relay.
 *
 * `message` is meant for people, not for programs.
 */
export class AdminError extends LibraryError {
  /** The HTTP status; null when there was no response. GraphQL sends most refusals with status 200. */
  readonly status: number | null;

  constructor(code: string, message: string, details: AdminErrorDetails = {}) {
    super('AdminError', code, message, details);
    this.status = details.status ?? null;
  }
}

function adminError(code: string, message: string, details: AdminErrorDetails): AdminError {
  return new AdminError(code, message, details);
}

// The public interface.

/** `token`: an administrator's token, or a function that returns one. */
export type AdminOptions = Omit<RelayRequestOptions, 'clock' | 'random'>;

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
  drain(
    node: generated.DrainMutationVariables,
  ): Promise<Receipt<generated.DrainMutation['drainNode'], 'DispatcherNode'>>;
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
