import { contextStatus, type ContextStatus, type ExecutionContext, type Ownership } from '../core/contexts/context.ts';
import { builder } from './builder.ts';
import { ClientTypeEnum, ConnectionSnapshot } from './connections.ts';
import { CommandType } from './delivery-command.ts';
import { wireEnum } from './enums.ts';
import { connectionOf, CountResult, pageArguments, pageCost, pageOf } from './page.ts';
import type { RowSize } from './page-budget.ts';
import { User } from './users.ts';

export const ContextStatusEnum = wireEnum<ContextStatus>('ContextStatus', 'How an execution context stands.', {
  active: 'Its client reports it as active.',
  idle: 'Its client reports it as idle.',
  closed: 'Its client reports it as closed.',
  stale: 'It was reported and not closed, but the link of its client is down or silent: nothing newer is known.',
});

export const OwnershipEnum = wireEnum<Ownership>('Ownership', 'Whose an execution context or window is.', {
  'user-owned': 'The user’s own.',
  worker: 'One that was set up to do work.',
});

export const ExecutionContextType = builder.objectRef<ExecutionContext>('ExecutionContext').implement({
  description:
    'Where a client can execute something, such as a browser tab or a console flow, as the client last reported it. It is current registry state and no history: it vanishes when the client stops reporting it, when what it stands for is closed, and with its client. A task on it is a current assignment in this registry only: it shows neither that a durable job system owns the task nor that any effect of it is complete.',
  fields: (t) => ({
    id: t.exposeID('contextId', { description: 'The context; unique within its client.' }),
    userId: t.exposeID('userId', { description: 'The user of the client.' }),
    clientId: t.exposeID('clientId', { description: 'The client that reports it.' }),
    instanceId: t.exposeID('instanceId', { description: 'The run of the client that reported it.' }),
    clientType: t.expose('clientType', { type: ClientTypeEnum, description: 'What kind of program its client is.' }),
    status: t.field({
      type: ContextStatusEnum,
      description: 'As reported, or stale while the client’s link is down or silent.',
      resolve: (context) => contextStatus(context),
    }),
    ownership: t.expose('ownership', { type: OwnershipEnum, description: 'Whose it is.' }),
    windowId: t.exposeID('windowId', { nullable: true, description: 'The browser window that it is in.' }),
    taskId: t.exposeID('taskId', {
      nullable: true,
      description:
        'The task that the registry has it assigned to now: not proof that a durable job system owns the task, nor that its external effect is complete.',
    }),
    taskAssignedAt: t.expose('taskAssignedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When the present task was first reported; null without one.',
    }),
    title: t.exposeString('title', { nullable: true, description: 'Its title, for a reader.' }),
    metadata: t.field({
      type: 'JSON',
      nullable: true,
      description: 'Whatever else the client said of it, kept as sent.',
      resolve: ({ metadata }) => metadata,
    }),
    reportedAt: t.expose('reportedAt', { type: 'DateTime', description: 'When it was last reported.' }),
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
  description: 'Which contexts to show; each member narrows.',
  fields: (t) => ({
    userId: t.id({ description: 'Only this user’s; omitted, a user’s own and an administrator’s all.' }),
    clientId: t.id({ description: 'Only those of this client.' }),
    clientType: t.field({ type: ClientTypeEnum, description: 'Only those of clients of this kind.' }),
    status: t.field({ type: ContextStatusEnum, description: 'Only those with this status.' }),
    ownership: t.field({ type: OwnershipEnum, description: 'Only those of this ownership.' }),
    windowId: t.id({ description: 'Only those in this browser window.' }),
  }),
});

const filterArgument = builder.args((t) => ({
  filter: t.field({ type: ContextFilter, description: 'Which to show; omitted, all that the asker may see.' }),
}));

builder.queryFields((t) => ({
  contexts: t.field({
    type: ExecutionContextConnection,
    description: 'Execution contexts that clients report now, in order of user, client and context.',
    complexity: pageCost,
    args: { ...filterArgument, ...pageArguments },
    resolve: (_, { filter, ...page }, { core, who }) => core.contexts.list(who, filter ?? {}, pageOf(page)),
  }),
  contextCount: t.field({
    type: CountResult,
    description: 'How many execution contexts clients report now.',
    args: { ...filterArgument },
    resolve: (_, { filter }, { core, who }) => core.contexts.count(who, filter ?? {}),
  }),
}));

builder.objectField(User, 'contexts', (t) =>
  t.field({
    type: ExecutionContextConnection,
    description: 'Execution contexts that the user’s clients report now, in order of client and context.',
    complexity: pageCost,
    args: {
      clientType: t.arg({ type: ClientTypeEnum, description: 'Only those of clients of this kind.' }),
      status: t.arg({ type: ContextStatusEnum, description: 'Only those with this status.' }),
      ownership: t.arg({ type: OwnershipEnum, description: 'Only those of this ownership.' }),
      ...pageArguments,
    },
    resolve: ({ id }, { clientType, status, ownership, ...asked }, { core, who, loaders }) => {
      const page = pageOf(asked);
      const query = { userId: id, clientType, status, ownership };
      return page.after ? core.contexts.list(who, query, page) : loaders.contexts(query, page.first);
    },
  }),
);

builder.objectField(ConnectionSnapshot, 'contexts', (t) =>
  t.field({
    type: ExecutionContextConnection,
    description: 'Execution contexts that the client reports now.',
    complexity: pageCost,
    args: { ...pageArguments },
    resolve: ({ userId, clientId }, asked, { core, who, loaders }) => {
      const page = pageOf(asked);
      const query = { userId, clientId };
      return page.after ? core.contexts.list(who, query, page) : loaders.contexts(query, page.first);
    },
  }),
);

builder.objectField(CommandType, 'contexts', (t) =>
  t.field({
    type: ExecutionContextConnection,
    description:
      'Execution contexts of the target as it reports them now. None of them shows where, or whether, the command ran.',
    complexity: pageCost,
    args: { ...pageArguments },
    resolve: ({ userId, clientId }, asked, { core, who, loaders }) => {
      const page = pageOf(asked);
      const query = { userId, clientId };
      return page.after ? core.contexts.list(who, query, page) : loaders.contexts(query, page.first);
    },
  }),
);
