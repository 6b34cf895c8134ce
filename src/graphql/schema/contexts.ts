/** Execution contexts that clients report: the type, its filter and the listings. */
import {
  contextStatus,
  type ContextStatus,
  type ExecutionContext,
  type Ownership,
} from '../../core/contexts/context.ts';
import type { ClientKey } from '../../core/ids.ts';
import { CLIENT_CONTEXTS, COUNT_SCAN } from '../../core/limits.ts';
import { SCAN_BUDGET } from '../../core/page.ts';
import { builder } from './builder.ts';
import type { Context } from './context.ts';
import { ClientTypeEnum, ConnectionSnapshot } from './connections.ts';
import { CommandType } from './delivery-command.ts';
import { wireEnum } from './enums.ts';
import { nodeIdOf } from './node-ids.ts';
import { NODE_ID, NodeInterface } from './node-interface.ts';
import {
  connectionOf,
  CountResult,
  pageArguments,
  pageCost,
  pageOf,
  scanCost,
  scannedBy,
  scannedPageCost,
  type AskedPage,
} from './page.ts';
import type { RowSize } from './page-budget.ts';
import { User } from './users.ts';

export const ContextStatusEnum = wireEnum<ContextStatus>('ContextStatus', 'The status of an execution context.', {
  active: 'Its client reports it as active.',
  idle: 'Its client reports it as idle.',
  closed: 'Its client reports it as closed.',
  stale: 'It was last reported as active or idle, but its client’s link is down or silent: nothing newer is known.',
});

export const OwnershipEnum = wireEnum<Ownership>(
  'Ownership',
  'Whether an execution context or window is for the user or for work.',
  {
    'user-owned': 'The user’s own use.',
    worker: 'Work: it was set up to run tasks.',
  },
);

export const ExecutionContextType = builder.objectRef<ExecutionContext>('ExecutionContext').implement({
  description:
    'Where a client can execute something, such as a browser tab or a console flow, as the client last reported it. It is current registry state, not history: the relay drops it when the client stops reporting it, when the tab or flow is closed, or when the client’s connection is forgotten or taken over by another instance. A task on it is a current assignment in this registry only: it shows neither that a durable job system owns the task nor that any effect of it is complete.',
  interfaces: [NodeInterface],
  fields: (t) => ({
    id: t.id({ ...NODE_ID, resolve: (row) => nodeIdOf('ExecutionContext', row) }),
    contextId: t.exposeID('contextId', { description: 'The context’s id, unique within its client.' }),
    userId: t.exposeID('userId', { description: 'The id of the user that the client belongs to.' }),
    clientId: t.exposeID('clientId', { description: 'The id of the client that reports the context.' }),
    instanceId: t.exposeID('instanceId', { description: 'The id of the client instance that reported the context.' }),
    clientType: t.expose('clientType', { type: ClientTypeEnum, description: 'What kind of program the client is.' }),
    status: t.field({
      type: ContextStatusEnum,
      description:
        'The status that the client reported, or STALE while its link is down or silent, unless it reported CLOSED.',
      resolve: (context) => contextStatus(context),
    }),
    ownership: t.expose('ownership', {
      type: OwnershipEnum,
      description: 'Whether the context is for the user or for work.',
    }),
    windowId: t.exposeID('windowId', {
      nullable: true,
      description: 'The id of the browser window that holds the context; null if the client named none.',
    }),
    taskId: t.exposeID('taskId', {
      nullable: true,
      description:
        'The id of the task that the context is assigned to in the registry now; null if it has none. It is not proof that a durable job system owns the task, nor that its external effect is complete.',
    }),
    taskAssignedAt: t.expose('taskAssignedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When the client first reported the current task; null if the context has none.',
    }),
    title: t.exposeString('title', {
      nullable: true,
      description: 'A title for people; null if the client sent none.',
    }),
    metadata: t.field({
      type: 'JSON',
      nullable: true,
      description: 'Other data that the client sent about the context, stored unchanged; null if it sent none.',
      resolve: ({ metadata }) => metadata,
    }),
    reportedAt: t.expose('reportedAt', { type: 'DateTime', description: 'When the client last reported the context.' }),
  }),
});

export const CONTEXT_SIZE: RowSize<ExecutionContext> = {
  fields: ['metadata'],
  bytes: ({ metadata }, asks) => (asks('metadata') ? (metadata?.length ?? 0) : 0),
};

export const ExecutionContextConnection = connectionOf('ExecutionContext', ExecutionContextType, {
  rows: 'execution contexts',
  size: CONTEXT_SIZE,
});

const ContextFilter = builder.inputType('ContextFilter', {
  description: 'Which contexts to include. A context must match every member that is given.',
  fields: (t) => ({
    userId: t.id({
      description: 'Only rows of this user. Omitted: a user gets its own rows, an administrator gets all.',
    }),
    clientId: t.id({ description: 'Only contexts of this client.' }),
    clientType: t.field({ type: ClientTypeEnum, description: 'Only contexts of clients of this kind.' }),
    status: t.field({ type: ContextStatusEnum, description: 'Only contexts with this status.' }),
    ownership: t.field({ type: OwnershipEnum, description: 'Only contexts with this ownership.' }),
    windowId: t.id({ description: 'Only contexts in this browser window.' }),
  }),
});

/** How many contexts a filter may scan for a page: of one client, or of all. */
const CONTEXTS_SCANNED = { most: SCAN_BUDGET, ofClient: CLIENT_CONTEXTS };

const filterArgument = builder.args((t) => ({
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
    args: { ...filterArgument, ...pageArguments },
    resolve: (_, { filter, ...page }, { core, requester, reading }) =>
      core.contexts.list(requester, filter ?? {}, pageOf(page), reading),
  }),
  contextCount: t.field({
    type: CountResult,
    description: 'How many execution contexts clients report now.',
    complexity: ({ filter }) => scanCost(scannedBy(filter, { ...CONTEXTS_SCANNED, most: COUNT_SCAN })),
    args: { ...filterArgument },
    resolve: (_, { filter }, { core, requester, reading }) => core.contexts.count(requester, filter ?? {}, reading),
  }),
}));

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
    resolve: ({ id }, { clientType, status, ownership, ...paging }, { core, requester, loaders, reading }) => {
      const page = pageOf(paging);
      const query = { userId: id, clientType, status, ownership };
      return page.after ? core.contexts.list(requester, query, page, reading) : loaders.contexts(query, page.first);
    },
  }),
);

/**
 * Returns a page of a client's contexts. The first page comes from the loader, which reads the pages of many clients at
 * once.
 */
function contextsOfClient({ userId, clientId }: ClientKey, args: AskedPage, context: Context) {
  const page = pageOf(args);
  const query = { userId, clientId };
  const { core, requester, loaders, reading } = context;
  return page.after ? core.contexts.list(requester, query, page, reading) : loaders.contexts(query, page.first);
}

builder.objectField(ConnectionSnapshot, 'contexts', (t) =>
  t.field({
    type: ExecutionContextConnection,
    description: 'Execution contexts that the client reports now.',
    complexity: pageCost,
    args: { ...pageArguments },
    resolve: contextsOfClient,
  }),
);

builder.objectField(CommandType, 'contexts', (t) =>
  t.field({
    type: ExecutionContextConnection,
    description:
      'Execution contexts that the target client reports now. None of them shows whether or where the command ran.',
    complexity: pageCost,
    args: { ...pageArguments },
    resolve: contextsOfClient,
  }),
);
