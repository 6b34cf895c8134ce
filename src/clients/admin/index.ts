/**
 * Exports `callboard/admin`, with which programs in browsers and Node read a relay's state and carry out an operator's
 * actions. Needs only `fetch`.
 */
import type * as generated from '../../../generated/admin.ts';
import * as documents from '../../../generated/admin.ts';
import { checkMembers, checkNames } from '../link/options.ts';
import { LibraryError, type LibraryErrorDetails } from '../link/library-error.ts';
import { createOperationRunner, type RunOperation } from '../link/operation.ts';
import { REQUEST_MEMBERS, type RelayRequestOptions } from '../link/request-with-retries.ts';

export type { TokenSource } from '../link/reconnect.ts';
export type { ErrorCode } from '../link/library-error.ts';

/** The user id that older deployments use when a request names no user. */
const LEGACY_USER = 'default';

/**
 * Creates an administrator's access to one relay. Throws TypeError for an invalid URL or token. Sends no request until
 * a method is called.
 */
export function createAdmin(options: AdminOptions): Admin {
  checkMembers('', options, REQUEST_MEMBERS);
  const query = withKnownVariables(createOperationRunner(options, adminError));
  // These operations are not repeated after a broken connection: a second disconnect could close the new link of a
  // client that has reconnected.
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

/**
 * Wraps an operation runner. The result rejects with TypeError if a variable is not declared in the operation, because
 * GraphQL would ignore it.
 */
function withKnownVariables(run: RunOperation): RunOperation {
  return async (operation, variables, signal) => {
    const known = Array.from(operation.toString().matchAll(/\$(\w+)/g), ([, name = '']) => name);
    checkNames('', variables, known);
    return run(operation, variables, signal);
  };
}

type Refusal = Extract<documents.CancelMutation['cancelCommand'], { readonly __typename: 'Refusal' }>;

/** Returns the receipt in an answer. Throws AdminError if the answer is a refusal. */
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
 * Yields all pages of a listing in order: `pages((after) => admin.users({ after }))`. Each page is requested when the
 * consumer asks for it. A row that appears or disappears during the iteration may be missed, but no row is yielded
 * twice. Throws what `query` throws.
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
  /** The HTTP status; null if there was no response. */
  readonly status?: number | null;
};

/**
 * The error with which every method of Admin rejects. `code` is one of callboard's codes (`unauthenticated`,
 * `forbidden`, `invalid_argument`, `not_found`, ...), or one of two others:
 *
 * - `unreachable`: the relay did not respond.
 * - `bad_answer`: the response does not come from a relay.
 *
 * `message` is meant for people, not for programs.
 */
export class AdminError extends LibraryError {
  /**
   * The HTTP status; null if there was no response. Most refusals have status 200, because GraphQL answers with this
   * status.
   */
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

/** A filter for a user's workers. */
type WorkersArgs = Omit<generated.WorkersQueryVariables, 'userId'> & {
  /**
   * The canonical user id. Always pass it: if it is absent, the user with the id `default` is read, as in older
   * deployments, and not the user of the token.
   */
  readonly userId?: string;
};

/**
 * Reads the state of delivery as the node that answers knows it. The records contain no payloads, and they prove
 * nothing about effects outside the relay.
 */
export interface DeliveryReader {
  summary(): Promise<generated.DeliverySummaryQuery['delivery']['summary']>;
  nodes(page?: generated.DeliveryNodesQueryVariables): Promise<generated.DeliveryNodesQuery['delivery']['nodes']>;
  /** Returns the admission scopes and their capacities. A scope is not necessarily a tenant in a commercial sense. */
  tenants(
    page?: generated.DeliveryTenantsQueryVariables,
  ): Promise<generated.DeliveryTenantsQuery['delivery']['tenants']>;
  commands(
    variables?: generated.DeliveryCommandsQueryVariables,
  ): Promise<generated.DeliveryCommandsQuery['delivery']['commands']>;
  /** Returns the delivery record of a command; null if no record is retained. */
  status(command: Command): Promise<generated.DeliveryStatusQuery['delivery']['status']>;
}

/** The type of the receipt in an answer. The answer itself is either a receipt or a refusal. */
type Receipt<Answer, Name> = Omit<Extract<Answer, { readonly __typename: Name }>, '__typename'>;

/** The operator's actions that change something. If the relay refuses one, it rejects with AdminError. */
export interface AdminActs {
  /**
   * Cancels a command. `state`: `CANCELLED` (the command was not written to its client and never will be), `REQUESTED`
   * (the client was asked to stop it) or `TOO_LATE` (it had already ended). Rejects with `not_found` if there is no
   * such command.
   */
  cancel(
    command: generated.CancelMutationVariables['input'],
  ): Promise<Receipt<generated.CancelMutation['cancelCommand'], 'CancelReceipt'>>;
  /**
   * Closes the link of a client. The client may connect again at once, and no command ends. Rejects with `not_found` if
   * the client has no recent connection. If the connection to the relay breaks, rejects with `unreachable` without
   * repeating the request; the client's link may then be closed or open. Writes an audit row.
   */
  disconnect(
    client: generated.DisconnectMutationVariables,
  ): Promise<Receipt<generated.DisconnectMutation['disconnectClient'], 'DisconnectReceipt'>>;
  /**
   * Takes a node out of service. The node admits no new commands. It closes each link when the link has no command
   * left, or after `withinMs` milliseconds (0 to 600 000, default 10 000). Resolves at once with the work that is left;
   * `delivery().nodes()` shows the progress. Cannot be undone. Rejects with `not_found` if there is no such node.
   * Writes an audit row.
   */
  drain(
    node: generated.DrainMutationVariables,
  ): Promise<Receipt<generated.DrainMutation['drainNode'], 'DispatcherNode'>>;
}

/**
 * What an operator can read and do at a relay. Only `cancel`, `disconnect` and `drain` change anything. The names of
 * members and enum values are those of GraphQL. A list is one page of at most 1000 rows, by default 100. `completeness`
 * says what is missing from an answer. All methods reject with AdminError.
 */
export interface Admin extends AdminActs {
  users(page?: generated.UsersQueryVariables): Promise<generated.UsersQuery['users']>;
  /**
   * Returns one user with up to 100 connections and up to 100 streams. Null if the relay knows nothing about this user.
   */
  user(id: string): Promise<generated.UserQuery['user']>;
  connections(variables?: generated.ConnectionsQueryVariables): Promise<generated.ConnectionsQuery['connections']>;
  /**
   * Returns the actions that a client advertises; null if the client is not connected. An advertised action describes
   * what the client can do and authorizes nothing.
   */
  actions(client: Client): Promise<NonNullable<generated.ActionsQuery['connection']>['actions'] | null>;
  /** Returns a bounded sample of the actions that all clients advertise. `name`: only actions with this name. */
  actionSample(name?: string): Promise<generated.ActionSampleQuery['actions']>;
  /** Returns the waits of callers (pending RPCs), oldest first. */
  pending(variables?: generated.PendingQueryVariables): Promise<generated.PendingQuery['pendingRpcs']>;
  pendingCount(filter?: generated.PendingRpcFilter): Promise<generated.PendingCountQuery['pendingRpcCount']>;
  pendingCountByNode(
    filter?: generated.PendingRpcFilter,
  ): Promise<generated.PendingCountByNodeQuery['pendingRpcCountByNode']>;
  /** Returns everything that is retained about one command, without payloads; null if nothing is retained. */
  command(command: Command): Promise<generated.CommandFileQuery['command']>;
  delivery(): DeliveryReader;
  contexts(variables?: generated.ContextsQueryVariables): Promise<generated.ContextsQuery['contexts']>;
  contextCount(filter?: generated.ContextFilter): Promise<generated.ContextCountQuery['contextCount']>;
  windows(variables?: generated.WindowsQueryVariables): Promise<generated.WindowsQuery['browserWindows']>;
  windowCount(filter?: generated.BrowserWindowFilter): Promise<generated.WindowCountQuery['browserWindowCount']>;
  window(window: generated.WindowQueryVariables): Promise<generated.WindowQuery['browserWindow']>;
  /**
   * Returns a user's workers, idle and assigned. Always pass `userId`: if it is absent, the user with the id `default`
   * is read.
   */
  workers(variables?: WorkersArgs): Promise<generated.WorkersQuery['workers']>;
  /**
   * Returns the workers that could take a task. This reserves none of them. Always pass `userId`: if it is absent, the
   * user with the id `default` is read.
   */
  availableWorkers(variables?: WorkersArgs): Promise<generated.AvailableWorkersQuery['workers']['available']>;
  /**
   * Returns the workers that are assigned to a task now. Past assignments are not included. Always pass `userId`: if it
   * is absent, the user with the id `default` is read.
   */
  workersOfTask(
    taskId: string,
    variables?: Pick<WorkersArgs, 'userId' | 'first'>,
  ): Promise<generated.WorkersOfTaskQuery['workers']['forTask']>;
  /**
   * Returns the deduplication counts of the last `windowSeconds` (default 300), and the deduplicator's settings. The
   * counts are about ingested messages, not about executed commands.
   */
  dedup(variables?: generated.DedupQueryVariables): Promise<generated.DedupQuery['dedup']>;
  streams(variables: generated.StreamsQueryVariables): Promise<generated.StreamsQuery['streams']>;
  /**
   * Returns messages of the history. Their payloads are redacted unless the request asks for them. The relay writes an
   * audit row for each request for payloads.
   */
  messages(variables: generated.MessagesQueryVariables): Promise<generated.MessagesQuery['messages']>;
  commandMessages(
    variables: generated.CommandMessagesQueryVariables,
  ): Promise<generated.CommandMessagesQuery['commandHistory']>;
  /**
   * Returns a bounded sample of stored messages. Rejects with `raw_history_disabled` if the relay does not allow this.
   */
  rawMessages(variables?: generated.RawMessagesQueryVariables): Promise<generated.RawMessagesQuery['rawMessages']>;
}
