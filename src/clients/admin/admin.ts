/**
 * Implements the methods of Admin that read. Each sends one GraphQL query. Transport and errors are the job of
 * query.ts.
 */
import * as documents from '../../../generated/admin.ts';
import type { TypedDocumentString } from '../../../generated/admin.ts';
import { requestRelay, textOf, type HttpAnswer, type RelayRequestOptions } from '../link/relay-request.ts';
import type { Admin, AdminActs, AdminOptions, DeliveryReader } from './admin-types.ts';

/** The user id that older deployments used when none was given. */
const LEGACY_USER = 'default';

type Diagnostics = Omit<Admin, keyof History | keyof Sites | keyof AdminActs | 'delivery'>;
type History = Pick<Admin, 'dedup' | 'streams' | 'messages' | 'commandMessages' | 'rawMessages'>;
type Sites = Pick<
  Admin,
  'contexts' | 'contextCount' | 'windows' | 'windowCount' | 'window' | 'workers' | 'availableWorkers' | 'workersOfTask'
>;

/** Creates an administrator's access to one relay. Throws TypeError for an invalid URL. Sends nothing until a method is called. */
export function createAdmin(options: AdminOptions): Admin {
  new URL(options.url);
  const query = createQueryRunner(options);
  const delivery = deliveryReader(query);
  return {
    ...diagnostics(query),
    ...history(query),
    ...sites(query),
    ...createActs(options),
    delivery: () => delivery,
  };
}

function diagnostics(query: RunQuery): Diagnostics {
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
  };
}

function deliveryReader(query: RunQuery): DeliveryReader {
  return {
    summary: async () => (await query(documents.DeliverySummaryDocument, {})).delivery.summary,
    nodes: async (page = {}) => (await query(documents.DeliveryNodesDocument, page)).delivery.nodes,
    tenants: async (page = {}) => (await query(documents.DeliveryTenantsDocument, page)).delivery.tenants,
    commands: async (variables = {}) => (await query(documents.DeliveryCommandsDocument, variables)).delivery.commands,
    status: async (command) => (await query(documents.DeliveryStatusDocument, command)).delivery.status,
  };
}

function sites(query: RunQuery): Sites {
  return {
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
  };
}

function history(query: RunQuery): History {
  return {
    dedup: async (variables = {}) => (await query(documents.DedupDocument, variables)).dedup,
    streams: async (variables) => (await query(documents.StreamsDocument, variables)).streams,
    messages: async (variables) => (await query(documents.MessagesDocument, variables)).messages,
    commandMessages: async (variables) => (await query(documents.CommandMessagesDocument, variables)).commandHistory,
    rawMessages: async (variables = {}) => (await query(documents.RawMessagesDocument, variables)).rawMessages,
  };
}

// Implements the methods of Admin that change something: cancel, disconnect and drain.

type Refusal = Extract<documents.CancelMutation['cancelCommand'], { readonly __typename: 'Refusal' }>;

function createActs(options: AdminOptions): AdminActs {
  const send = createQueryRunner(options);
  // A repeated disconnect could close the new link of a client that has already reconnected.
  const sendOnce = createQueryRunner({ ...options, retries: 0 });
  return {
    cancel: async (input) => receiptOf((await send(documents.CancelDocument, { input })).cancelCommand),
    disconnect: async (client) => receiptOf((await sendOnce(documents.DisconnectDocument, client)).disconnectClient),
    drain: async (node) => (await send(documents.DrainDocument, node)).drainNode,
  };
}

/** Returns the receipt in an answer. Throws AdminError for a refusal. */
function receiptOf<Receipt extends { readonly __typename: string }>(answer: Receipt | Refusal): Receipt {
  if (!isRefusal(answer)) return answer;
  const { code, message, retryAfterMs } = answer;
  throw new AdminError(code.toLowerCase(), message, { status: 200, retryAfterMs });
}

function isRefusal(answer: { readonly __typename: string }): answer is Refusal {
  return answer.__typename === 'Refusal';
}

// Iterates over the pages of any listing.

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

// Sends one GraphQL operation to the relay and turns refusals into AdminError. Knows no particular query.

/** How long the relay may take to answer a query, in milliseconds. The request fails only GRACE_MS later. */
const BUDGET_MS = 10_000;

/** Runs one operation. Rejects with AdminError, also when the answer contains errors beside partial data. */
type RunQuery = <Data, Variables extends object>(
  document: TypedDocumentString<Data, Variables>,
  variables: Variables,
) => Promise<Data>;

/**
 * Creates a function that sends queries and mutations to the relay's GraphQL endpoint. It repeats a request whose
 * connection breaks, so set `retries` to 0 for a mutation that must not be repeated.
 */
function createQueryRunner(options: RelayRequestOptions): RunQuery {
  return async (document, variables) => {
    const answer = await requestRelay(options, {
      method: 'POST',
      path: '/graphql',
      body: { query: document.toString(), variables },
      budgetMs: BUDGET_MS,
      fault: (code, message, cause) => new AdminError(code, message, { cause }),
    });
    return dataOf(answer);
  };
}

/**
 * Returns the data of an answer. Its type is not checked: the relay validated the document against the schema from
 * which the type was generated.
 */
function dataOf<Data>({ status, body, retryAfterMs }: HttpAnswer): Data {
  const refusal = refusalOf(body);
  if (refusal) throw new AdminError(refusal.code, refusal.message, { status, retryAfterMs });
  const { data } = body;
  if (!isData<Data>(data)) {
    throw new AdminError('bad_answer', `HTTP ${status} without a relay's answer.`, { status, retryAfterMs });
  }
  return data;
}

function isData<Data>(data: unknown): data is Data {
  return typeof data === 'object' && data !== null;
}

type Refused = { readonly code: string; readonly message: string };

/**
 * Returns the first GraphQL error, or the problem document of a request that was refused before GraphQL. Null: the
 * answer has neither.
 */
function refusalOf(body: HttpAnswer['body']): Refused | null {
  const first: unknown = Array.isArray(body['errors']) ? body['errors'][0] : undefined;
  if (first !== undefined) {
    const error = recordOf(first);
    const code = textOf(recordOf(error['extensions'])['code']) ?? 'bad_answer';
    return { code, message: textOf(error['message']) ?? code };
  }
  const code = textOf(body['code']);
  return code === null ? null : { code, message: textOf(body['detail']) ?? code };
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

// The error with which every method of Admin rejects.

export type AdminErrorDetails = {
  /** The HTTP status; null when there was no response. */
  readonly status?: number | null;
  readonly retryAfterMs?: number | null;
  readonly cause?: unknown;
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
export class AdminError extends Error {
  readonly code: string;
  /** The HTTP status; null when there was no response. GraphQL sends most refusals with status 200. */
  readonly status: number | null;
  /** The relay's `Retry-After` in milliseconds; null when it sent none. */
  readonly retryAfterMs: number | null;

  constructor(code: string, message: string, details: AdminErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = 'AdminError';
    this.code = code;
    this.status = details.status ?? null;
    this.retryAfterMs = details.retryAfterMs ?? null;
  }
}
