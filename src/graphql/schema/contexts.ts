/**
 * Defines the schema of execution contexts, browser windows and workers, which clients report: types, filters, listings
 * and counts.
 */
import { knownInSight, readUserInSight } from '../../core/auth/sight.ts';
import type { ClientType } from '../../core/connections/connection.ts';
import {
  contextStatus,
  windowStatus,
  type ContextKey,
  type ContextStatus,
  type CountedWindow,
  type ExecutionContext,
  type Ownership,
  type WindowStatus,
} from '../../core/contexts/context.ts';
import type { ContextQuery, WindowQuery, WorkerList, WorkerQuery, WorkerView } from '../../core/contexts/contexts.ts';
import { clientKeyText, type ClientKey } from '../../core/ids.ts';
import { canonicalJson } from '../../core/json.ts';
import { CLIENT_CONTEXTS, CLIENT_WINDOWS, COUNT_SCAN, PAGE_DEFAULT, WORKER_LIST } from '../../core/limits.ts';
import { thenDo, type MaybePromise } from '../../core/maybe-promise.ts';
import { completenessOf } from '../../core/completeness.ts';
import { SCAN_BUDGET } from '../../core/page.ts';
import { builder, ranged, wireEnum } from './builder.ts';
import { fieldsOf, fieldsOfPart, flag, id, int, nullable, text, time, typed } from './fields.ts';
import { NODE_ID, NodeInterface } from './node-interface.ts';
import { nodeIdOf } from './node-ids.ts';
import { CommandType, loadCommand } from './commands.ts';
import { ClientTypeEnum, ConnectionSnapshot } from './connections.ts';
import { loadBy, loadFirstBy, loadPagesBy } from './loaders.ts';
import type { Context } from './context.ts';
import type { RowSize } from './answer-budget.ts';
import {
  PAGED,
  CompletenessType,
  CountResult,
  PER_ROW,
  ROWS_OF_USER,
  connectionOf,
  pageArguments,
  pageCost,
  pageOf,
  scanCost,
  scannedBy,
  scannedPageCost,
  type AskedPage,
} from './page.ts';
import { User } from './users.ts';

const ContextStatusEnum = wireEnum<ContextStatus>('ContextStatus', 'The status of an execution context.', {
  active: 'Its client reports it as active.',
  idle: 'Its client reports it as idle.',
  closed: 'Its client reports it as closed.',
  stale: 'It was last reported as active or idle, but its client’s link is down or silent: nothing newer is known.',
});

const OwnershipEnum = wireEnum<Ownership>(
  'Ownership',
  'Whether an execution context or window is for the user or for work.',
  {
    'user-owned': 'The user’s own use.',
    worker: 'Work: it was set up to run tasks.',
  },
);

const ExecutionContextType = builder.objectRef<ExecutionContext>('ExecutionContext').implement({
  description:
    'Where a client can execute something, such as a browser tab or a console flow, as the client last reported it. It is current registry state, not history: the relay drops it when the client stops reporting it, when the tab or flow is closed, or when the client’s connection is forgotten or taken over by another instance. A task on it is a current assignment in this registry only: it shows neither that a durable job system owns the task nor that any effect of it is complete.',
  interfaces: [NodeInterface],
  fields: fieldsOf((t) => ({
    id: t.id({ ...NODE_ID, resolve: (row) => nodeIdOf('ExecutionContext', row) }),
    contextId: id('The context’s id, unique within its client.'),
    userId: id('The id of the user that the client belongs to.'),
    clientId: id('The id of the client that reports the context.'),
    instanceId: id('The id of the client instance that reported the context.'),
    clientType: typed(ClientTypeEnum, 'What kind of program the client is.'),
    status: t.field({
      type: ContextStatusEnum,
      description:
        'The status that the client reported, or STALE while its link is down or silent, unless it reported CLOSED.',
      resolve: (context) => contextStatus(context),
    }),
    ownership: typed(OwnershipEnum, 'Whether the context is for the user or for work.'),
    windowId: nullable.id('The id of the browser window that holds the context; null if the client named none.'),
    taskId: nullable.id(
      'The id of the task that the context is assigned to in the registry now; null if it has none. It is not proof that a durable job system owns the task, nor that its external effect is complete.',
    ),
    taskAssignedAt: nullable.time('When the client first reported the current task; null if the context has none.'),
    command: t.field({
      type: CommandType,
      nullable: true,
      description:
        'The command of the client whose id is `taskId`; null without a task, and if no command with a record has this id. A client that assigns its commands to workers reports their ids as tasks.',
      resolve: ({ userId, clientId, taskId }, _, context) =>
        taskId === null ? null : loadCommand(context, { userId, clientId, commandId: taskId }),
    }),
    title: nullable.text('A title for people; null if the client sent none.'),
    metadata: nullable.json(
      'Other data that the client sent about the context, stored unchanged; null if it sent none.',
    ),
    reportedAt: time('When the client last reported the context.'),
  })),
});

export const loadContext = loadBy(
  (key: ContextKey) => `${clientKeyText(key)}/${key.contextId}`,
  ({ core, requester }, keys) => core.contexts.many(requester, keys),
);

export const CONTEXT_SIZE: RowSize<ExecutionContext> = {
  fields: ['metadata'],
  bytes: ({ metadata }, asks) => (asks('metadata') ? (metadata?.length ?? 0) : 0),
};

const ExecutionContextConnection = connectionOf('ExecutionContext', ExecutionContextType, {
  rows: 'execution contexts',
  size: CONTEXT_SIZE,
});

const ContextFilter = builder.inputType('ContextFilter', {
  description: 'Which contexts to include. A context must match every member that is given.',
  fields: (t) => ({
    userId: t.id(ROWS_OF_USER),
    clientId: t.id({ description: 'Only contexts of this client.' }),
    clientType: t.field({ type: ClientTypeEnum, description: 'Only contexts of clients of this kind.' }),
    status: t.field({ type: ContextStatusEnum, description: 'Only contexts with this status.' }),
    ownership: t.field({ type: OwnershipEnum, description: 'Only contexts with this ownership.' }),
    windowId: t.id({ description: 'Only contexts in this browser window.' }),
  }),
});

/** The maximum number of contexts that a filter scans for one page: of one client, or of all clients. */
const CONTEXTS_SCANNED = { most: SCAN_BUDGET, ofClient: CLIENT_CONTEXTS };

const contextFilterArgument = builder.args((t) => ({
  filter: t.field({
    type: ContextFilter,
    description: 'Which contexts to include. Omitted: all that the requester may see.',
  }),
}));

builder.queryFields((t) => ({
  contexts: t.field({
    type: ExecutionContextConnection,
    description: 'Execution contexts that clients report now, in order of user, client and context.',
    complexity: ({ filter, ...page }) => scannedPageCost(page, scannedBy(filter, CONTEXTS_SCANNED)),
    args: { ...contextFilterArgument, ...pageArguments },
    resolve: (_, { filter, ...page }, { core, requester, reading }) =>
      core.contexts.list(requester, filter ?? {}, pageOf(page), reading),
  }),
  context: t.field({
    type: ExecutionContextType,
    nullable: true,
    description: 'One execution context; null if the client does not report it, or if it belongs to another user.',
    args: {
      userId: t.arg.id({ required: true, description: 'The user’s id.' }),
      clientId: t.arg.id({ required: true, description: 'The id of the client that reports the context.' }),
      contextId: t.arg.id({ required: true, description: 'The context’s id.' }),
    },
    resolve: (_, key, context) => {
      const userId = knownInSight(context.requester, key.userId);
      if (userId === null) return null;
      return thenDo(loadContext(context, { ...key, userId }), (row) => row && context.budget.row(row, CONTEXT_SIZE));
    },
  }),
  contextCount: t.field({
    type: CountResult,
    description: 'How many execution contexts clients report now.',
    complexity: ({ filter }) => scanCost(scannedBy(filter, { ...CONTEXTS_SCANNED, most: COUNT_SCAN })),
    args: { ...contextFilterArgument },
    resolve: (_, { filter }, { core, requester, reading }) => core.contexts.count(requester, filter ?? {}, reading),
  }),
}));

const contextPages = loadPagesBy(
  (query: ContextQuery) => canonicalJson(query),
  ({ core, requester, reading }, queries, first) => core.contexts.lists(requester, queries, first, reading),
  ({ core, requester, reading }, query, page) => core.contexts.list(requester, query, page, reading),
);

builder.objectField(User, 'contexts', (t) =>
  t.field({
    type: ExecutionContextConnection,
    description: 'Execution contexts that the user’s clients report now, in order of client and context.',
    complexity: ({ first, after: _, ...filter }) => scannedPageCost({ first }, scannedBy(filter)),
    args: {
      clientType: t.arg({ type: ClientTypeEnum, description: 'Only contexts of clients of this kind.' }),
      status: t.arg({ type: ContextStatusEnum, description: 'Only contexts with this status.' }),
      ownership: t.arg({ type: OwnershipEnum, description: 'Only contexts with this ownership.' }),
      ...pageArguments,
    },
    resolve: ({ id }, { clientType, status, ownership, ...page }, context) =>
      contextPages.page(context, { userId: id, clientType, status, ownership }, pageOf(page)),
  }),
);

function contextsOfClient({ userId, clientId }: ClientKey, page: AskedPage, context: Context) {
  return contextPages.page(context, { userId, clientId }, pageOf(page));
}

builder.objectField(ConnectionSnapshot, 'contexts', (t) =>
  t.field({
    type: ExecutionContextConnection,
    description: 'Execution contexts that the client reports now.',
    ...PAGED,
    resolve: contextsOfClient,
  }),
);

builder.objectField(CommandType, 'contexts', (t) =>
  t.field({
    type: ExecutionContextConnection,
    description:
      'Execution contexts that the target client reports now. None of them shows whether or where the command ran.',
    ...PAGED,
    resolve: contextsOfClient,
  }),
);

// The type and the listings of browser windows, which clients report.

const WindowStatusEnum = wireEnum<WindowStatus>('WindowStatus', 'The status of a browser window.', {
  open: 'Its client reports it as open.',
  stale: 'It was last reported as open, but its client’s link is down or silent: nothing newer is known.',
  closed: 'Its client reports it as closed.',
});

type CountsFrom = 'contexts' | 'snapshot';

const CountsFromEnum = wireEnum<CountsFrom>('CountsFrom', 'The source of a window’s worker counts.', {
  contexts: 'The relay counts the contexts that the client reports now.',
  snapshot: 'The counts that the client reported with the window. They are used when it reports no contexts.',
});

const BrowserWindowType = builder.objectRef<CountedWindow>('BrowserWindow').implement({
  description:
    'A browser window as its client last reported it. It is current registry state, not history: the relay drops it when the client stops reporting it or when the client’s connection is forgotten or taken over by another instance.',
  interfaces: [NodeInterface],
  fields: fieldsOf((t) => ({
    id: t.id({ ...NODE_ID, resolve: ({ window }) => nodeIdOf('BrowserWindow', window) }),
    ...fieldsOfPart(t, 'window', {
      windowId: id('The window’s id, unique within its client.'),
      userId: id('The id of the user that the client belongs to.'),
      clientId: id('The id of the client that reports the window.'),
      instanceId: id('The id of the client instance that reported the window.'),
      clientType: typed(ClientTypeEnum, 'What kind of program the client is.'),
      ownership: typed(OwnershipEnum, 'Whether the window is for the user or for work.'),
      focused: flag('Whether the window has the focus.'),
      type: text('The window’s type, as the browser names it.'),
      state: text('The window’s state, as the browser names it.'),
      incognito: flag('Whether the window is incognito.'),
      tabCount: int('How many tabs the window has.'),
      capacity: nullable.int('How many workers the window is configured for; null if the client sent no number.'),
      draining: flag('Whether the window takes no more workers.'),
    }),
    status: t.field({
      type: WindowStatusEnum,
      description:
        'The status that the client reported, or STALE while its link is down or silent, unless it reported CLOSED.',
      resolve: ({ window }) => windowStatus(window),
    }),
    workerCount: t.int({
      description:
        'How many worker contexts in the window are not closed; `countsFrom` names the source of the number.',
      resolve: ({ window, live }) => live?.workers ?? window.workerCount,
    }),
    idleCount: t.int({
      description:
        'How many worker contexts in the window are not closed and have no task; `countsFrom` names the source of the number.',
      resolve: ({ window, live }) => live?.idle ?? window.idleCount,
    }),
    busyCount: t.int({
      description:
        'How many worker contexts in the window are not closed and have a task; `countsFrom` names the source of the number.',
      resolve: ({ window, live }) => live?.busy ?? window.busyCount,
    }),
    countsFrom: t.field({
      type: CountsFromEnum,
      description: 'The source of `workerCount`, `idleCount` and `busyCount`.',
      resolve: ({ live }): CountsFrom => (live ? 'contexts' : 'snapshot'),
    }),
    contexts: t.field({
      type: ExecutionContextConnection,
      description: 'Execution contexts that the client reports in this window now.',
      ...PAGED,
      resolve: ({ window: { userId, clientId, windowId } }, page, context) =>
        contextPages.page(context, { userId, clientId, windowId }, pageOf(page)),
    }),
    reportedAt: t.field({
      type: 'DateTime',
      description: 'When the client last reported the window.',
      resolve: ({ window }) => window.reportedAt,
    }),
  })),
});

const BrowserWindowConnection = connectionOf('BrowserWindow', BrowserWindowType, { rows: 'browser windows' });

const BrowserWindowFilter = builder.inputType('BrowserWindowFilter', {
  description: 'Which windows to include. A window must match every member that is given.',
  fields: (t) => ({
    userId: t.id(ROWS_OF_USER),
    clientId: t.id({ description: 'Only windows of this client.' }),
    clientType: t.field({ type: ClientTypeEnum, description: 'Only windows of clients of this kind.' }),
    status: t.field({ type: WindowStatusEnum, description: 'Only windows with this status.' }),
    ownership: t.field({ type: OwnershipEnum, description: 'Only windows with this ownership.' }),
  }),
});

/** The maximum number of windows that a filter scans for one page: of one client, or of all clients. */
const WINDOWS_SCANNED = { most: SCAN_BUDGET, ofClient: CLIENT_WINDOWS };

const windowFilterArgument = builder.args((t) => ({
  filter: t.field({
    type: BrowserWindowFilter,
    description: 'Which windows to include. Omitted: all that the requester may see.',
  }),
}));

builder.queryFields((t) => ({
  browserWindows: t.field({
    type: BrowserWindowConnection,
    description: 'Browser windows that clients report now, in order of user, client and window.',
    complexity: ({ filter, ...page }) => scannedPageCost(page, scannedBy(filter, WINDOWS_SCANNED)),
    args: { ...windowFilterArgument, ...pageArguments },
    resolve: (_, { filter, ...page }, { core, requester, reading }) =>
      core.contexts.windows(requester, filter ?? {}, pageOf(page), reading),
  }),
  browserWindow: t.field({
    type: BrowserWindowType,
    nullable: true,
    description:
      'One browser window; null if there is none or it belongs to another user. If several clients report this window id, `clientId` is needed, and the error `ambiguous` says so.',
    args: {
      userId: t.arg.id({ required: true, description: 'The user’s id.' }),
      windowId: t.arg.id({ required: true, description: 'The window’s id.' }),
      clientId: t.arg.id({ description: 'The client that reports the window. Omitted: any, if only one does.' }),
    },
    complexity: scanCost(SCAN_BUDGET),
    resolve: (_, { userId, windowId, clientId }, { core, requester, reading }) =>
      core.contexts.window(requester, userId, windowId, clientId, reading),
  }),
  browserWindowCount: t.field({
    type: CountResult,
    description: 'How many browser windows clients report now.',
    complexity: ({ filter }) => scanCost(scannedBy(filter, { ...WINDOWS_SCANNED, most: COUNT_SCAN })),
    args: { ...windowFilterArgument },
    resolve: (_, { filter }, { core, requester, reading }) =>
      core.contexts.windowCount(requester, filter ?? {}, reading),
  }),
}));

const windowPages = loadPagesBy(
  (query: WindowQuery) => canonicalJson(query),
  ({ core, requester, reading }, queries, first) => core.contexts.windowLists(requester, queries, first, reading),
  ({ core, requester, reading }, query, page) => core.contexts.windows(requester, query, page, reading),
);

builder.objectField(User, 'browserWindows', (t) =>
  t.field({
    type: BrowserWindowConnection,
    description: 'Browser windows that the user’s clients report now, in order of client and window.',
    complexity: ({ first, after: _, ...filter }) => scannedPageCost({ first }, scannedBy(filter)),
    args: {
      status: t.arg({ type: WindowStatusEnum, description: 'Only windows with this status.' }),
      ownership: t.arg({ type: OwnershipEnum, description: 'Only windows with this ownership.' }),
      ...pageArguments,
    },
    resolve: ({ id }, { status, ownership, ...page }, context) =>
      windowPages.page(context, { userId: id, status, ownership }, pageOf(page)),
  }),
);

// The types and fields of workers. Workers are the contexts that background programs report.

/**
 * What the lists of workers need: the user, the kind of client, and the maximum length of each list. A list is read
 * only if the operation selects it.
 */
type WorkersOf = {
  readonly userId: string;
  readonly clientType: ClientType | null | undefined;
  readonly first: number;
};

const workerLists = loadFirstBy(
  (query: WorkerQuery) => canonicalJson(query),
  ({ core, requester, reading }, queries, first) => core.contexts.workers(requester, queries, first, reading),
);

function listOf(context: Context, { first, ...owner }: WorkersOf, view: WorkerView): MaybePromise<WorkerList> {
  return workerLists(context, { ...owner, ...view }, first);
}

async function itemsOf(context: Context, workers: WorkersOf, view: WorkerView): Promise<WorkerList['items']> {
  return context.budget.items(await listOf(context, workers, view), CONTEXT_SIZE);
}

/** The cost of one list besides its workers: reading it may scan as many contexts as a count. */
const { multiplier: _, ...LIST_COST } = scanCost(COUNT_SCAN);

const WorkerListType = builder.objectRef<WorkerList>('WorkerList').implement({
  description: 'Workers in order of client and context, not paged.',
  fields: (t) => ({
    items: t.field({
      type: [ExecutionContextType],
      ...PER_ROW,
      description: 'The workers in the list.',
      resolve: (list, _, { budget }) => budget.items(list, CONTEXT_SIZE),
    }),
    completeness: t.field({
      type: CompletenessType,
      description: 'Whether anything is missing, from which source, and why.',
      resolve: (list, _, { budget }) => budget.list(list, CONTEXT_SIZE).completeness,
    }),
  }),
});

const WorkersType = builder.objectRef<WorkersOf>('Workers').implement({
  description:
    'A user’s workers: execution contexts whose ownership is `worker` and that are not closed. An assignment is what the registry holds now; it shows neither that a durable job system owns the task nor that any effect of it is complete. Reading acquires, renews and releases no worker.',
  fields: (t) => ({
    idle: t.field({
      type: [ExecutionContextType],
      ...PER_ROW,
      complexity: scanCost(COUNT_SCAN),
      description: 'Workers without a task.',
      resolve: (workers, _, context) => itemsOf(context, workers, { view: 'idle' }),
    }),
    assigned: t.field({
      type: [ExecutionContextType],
      ...PER_ROW,
      complexity: scanCost(COUNT_SCAN),
      description:
        'Workers that are assigned to a task now; `taskAssignedAt` says when each assignment was first reported.',
      resolve: (workers, _, context) => itemsOf(context, workers, { view: 'assigned' }),
    }),
    completeness: t.field({
      type: CompletenessType,
      description: 'Whether anything is missing, from which source, and why: first for `idle`, then for `assigned`.',
      resolve: async (workers, _, context) => {
        const sourcesOf = async (view: WorkerView) =>
          context.budget.list(await listOf(context, workers, view), CONTEXT_SIZE).completeness.sources;
        const both = await Promise.all([sourcesOf({ view: 'idle' }), sourcesOf({ view: 'assigned' })]);
        return completenessOf(both.flat());
      },
    }),
    available: t.field({
      type: WorkerListType,
      complexity: LIST_COST,
      description:
        'Workers that could be given a task: they have none, their status is `idle`, and their client’s link is up. Listing a worker does not reserve it.',
      resolve: (workers, _, context) => listOf(context, workers, { view: 'available' }),
    }),
    forTask: t.field({
      type: WorkerListType,
      complexity: LIST_COST,
      description: 'Workers that are assigned to one task now.',
      args: { taskId: t.arg.id({ required: true, description: 'The task’s id.' }) },
      resolve: (workers, { taskId }, context) => listOf(context, workers, { view: 'task', taskId }),
    }),
  }),
});

const workerArguments = builder.args((t) => ({
  clientType: t.field({ type: ClientTypeEnum, description: 'Only workers of clients of this kind.' }),
  first: t.int({
    ...ranged({ min: 1, max: WORKER_LIST, default: PAGE_DEFAULT }),
    description: `The most workers in each list: 1 to ${WORKER_LIST}. \`completeness\` says whether there are more.`,
  }),
}));

builder.queryField('workers', (t) =>
  t.field({
    type: WorkersType,
    description: 'One user’s workers.',
    complexity: pageCost,
    args: { userId: t.arg.id({ required: true, description: 'The user’s id.' }), ...workerArguments },
    resolve: (_, { userId, clientType, first }, { requester }) => ({
      userId: readUserInSight(requester, userId),
      clientType,
      first: pageOf({ first }).first,
    }),
  }),
);

builder.objectField(User, 'workers', (t) =>
  t.field({
    type: WorkersType,
    description: 'The user’s workers.',
    complexity: pageCost,
    args: { ...workerArguments },
    resolve: ({ id }, { clientType, first }) => ({ userId: id, clientType, first: pageOf({ first }).first }),
  }),
);
