/**
 * Implements the methods of Admin that read. Each sends one GraphQL query. Transport and errors are the job of
 * query.ts.
 */
import * as documents from '../../generated/admin.ts';
import { createActs } from './acts.ts';
import { createQueryRunner, type RunQuery } from './query.ts';
import type { Admin, AdminActs, AdminOptions, DeliveryReader } from './types.ts';

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
