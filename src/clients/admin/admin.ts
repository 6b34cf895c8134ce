import * as documents from '../../generated/admin.ts';
import { createAsk, type Ask } from './ask.ts';
import type { Admin, AdminOptions, DeliveryReader } from './types.ts';

/** The user id that older deployments used when none was given. */
const LEGACY_USER = 'default';

type Diagnostics = Omit<Admin, keyof History | keyof Sites | 'delivery'>;
type History = Pick<Admin, 'dedup' | 'streams' | 'messages' | 'commandMessages' | 'rawMessages'>;
type Sites = Pick<
  Admin,
  'contexts' | 'contextCount' | 'windows' | 'windowCount' | 'window' | 'workers' | 'availableWorkers' | 'workersOfTask'
>;

/** Creates a reader of one relay. Throws TypeError for an invalid URL. Sends nothing until a method is called. */
export function createAdmin(options: AdminOptions): Admin {
  new URL(options.url);
  const ask = createAsk(options);
  const delivery = deliveryReader(ask);
  return { ...diagnostics(ask), ...history(ask), ...sites(ask), delivery: () => delivery };
}

function diagnostics(ask: Ask): Diagnostics {
  return {
    users: async (page = {}) => (await ask(documents.UsersDocument, page)).users,
    user: async (id) => (await ask(documents.UserDocument, { id })).user,
    connections: async (asked = {}) => (await ask(documents.ConnectionsDocument, asked)).connections,
    actions: async (client) => (await ask(documents.ActionsDocument, client)).connection?.actions ?? null,
    actionSample: async (name) => (await ask(documents.ActionSampleDocument, { name })).actions,
    pending: async (asked = {}) => (await ask(documents.PendingDocument, asked)).pendingRpcs,
    pendingCount: async (filter) => (await ask(documents.PendingCountDocument, { filter })).pendingRpcCount,
    pendingCountByNode: async (filter) =>
      (await ask(documents.PendingCountByNodeDocument, { filter })).pendingRpcCountByNode,
    command: async (command) => (await ask(documents.CommandFileDocument, command)).command,
  };
}

function deliveryReader(ask: Ask): DeliveryReader {
  return {
    summary: async () => (await ask(documents.DeliverySummaryDocument, {})).delivery.summary,
    nodes: async (page = {}) => (await ask(documents.DeliveryNodesDocument, page)).delivery.nodes,
    tenants: async (page = {}) => (await ask(documents.DeliveryTenantsDocument, page)).delivery.tenants,
    commands: async (asked = {}) => (await ask(documents.DeliveryCommandsDocument, asked)).delivery.commands,
    status: async (command) => (await ask(documents.DeliveryStatusDocument, command)).delivery.status,
  };
}

function sites(ask: Ask): Sites {
  return {
    contexts: async (asked = {}) => (await ask(documents.ContextsDocument, asked)).contexts,
    contextCount: async (filter) => (await ask(documents.ContextCountDocument, { filter })).contextCount,
    windows: async (asked = {}) => (await ask(documents.WindowsDocument, asked)).browserWindows,
    windowCount: async (filter) => (await ask(documents.WindowCountDocument, { filter })).browserWindowCount,
    window: async (window) => (await ask(documents.WindowDocument, window)).browserWindow,
    workers: async ({ userId = LEGACY_USER, ...more } = {}) =>
      (await ask(documents.WorkersDocument, { userId, ...more })).workers,
    availableWorkers: async ({ userId = LEGACY_USER, ...more } = {}) =>
      (await ask(documents.AvailableWorkersDocument, { userId, ...more })).workers.available,
    workersOfTask: async (taskId, { userId = LEGACY_USER, ...more } = {}) =>
      (await ask(documents.WorkersOfTaskDocument, { userId, taskId, ...more })).workers.forTask,
  };
}

function history(ask: Ask): History {
  return {
    dedup: async (asked = {}) => (await ask(documents.DedupDocument, asked)).dedup,
    streams: async (asked) => (await ask(documents.StreamsDocument, asked)).streams,
    messages: async (asked) => (await ask(documents.MessagesDocument, asked)).messages,
    commandMessages: async (asked) => (await ask(documents.CommandMessagesDocument, asked)).commandHistory,
    rawMessages: async (asked = {}) => (await ask(documents.RawMessagesDocument, asked)).rawMessages,
  };
}
