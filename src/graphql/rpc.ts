import type { InstanceMismatch, PendingRpc, PendingRpcAlert } from '../core/core.ts';
import type { WaitFor } from '../core/delivery/waiter.ts';
import { WAITERS_PER_COMMAND } from '../core/limits.ts';
import type { Live } from '../core/live.ts';
import type { Completeness } from '../core/page.ts';
import { builder } from './builder.ts';
import { CommandType } from './delivery-command.ts';
import { ConnectionSnapshot } from './connections.ts';
import { StageEnum } from './delivery.ts';
import { wireEnum } from './enums.ts';
import { fresh } from './live.ts';
import { CompletenessType, connectionOf, CountResult, pageArguments, pageCost, pageOf } from './page.ts';

export const WaitStageEnum = wireEnum<WaitFor>(
  'WaitStage',
  'What a call waits for. Waiting is not running: a wait that ends leaves the command as it is.',
  {
    admitted: 'That the command is on record.',
    acknowledged: 'That its client said that it has it.',
    completed: 'That it ended.',
  },
);

const InstanceMismatchType = builder.objectRef<InstanceMismatch>('InstanceMismatch').implement({
  description: 'The command expects another instance than the one observed.',
  fields: (t) => ({
    expectedInstanceId: t.exposeID('expectedInstanceId', {
      description: 'The instance believed live when the command was admitted or queued.',
    }),
    observedInstanceId: t.exposeID('observedInstanceId', {
      nullable: true,
      description: 'The instance observed; null: the client is not connected.',
    }),
    observedAt: t.expose('observedAt', { type: 'DateTime', description: 'When it was observed.' }),
  }),
});

const PendingRpcType = builder.objectRef<PendingRpc>('PendingRpc').implement({
  description:
    'One caller’s wait on a command that has not been resolved. Nothing more is shown by it: the command may have been written to the socket, the client may have run it, and a result may have come after the caller stopped waiting.',
  fields: (t) => ({
    rpcId: t.id({ description: 'The wait.', resolve: ({ waiter }) => waiter.rpcId }),
    commandId: t.id({ description: 'The command waited on.', resolve: ({ waiter }) => waiter.commandId }),
    userId: t.id({ description: 'The user of the target.', resolve: ({ waiter }) => waiter.userId }),
    clientId: t.id({ description: 'The target.', resolve: ({ waiter }) => waiter.clientId }),
    action: t.string({ description: 'The action asked for.', resolve: ({ waiter }) => waiter.action }),
    waitFor: t.field({
      type: WaitStageEnum,
      description: 'What the caller waits for.',
      resolve: ({ waiter }) => waiter.waitFor,
    }),
    expectedInstanceId: t.id({
      nullable: true,
      description: 'The instance believed live when the command was admitted or queued.',
      resolve: ({ command }) => command.expectedInstanceId,
    }),
    nodeId: t.id({
      nullable: true,
      description: 'The node of the target’s link; null while the command waits for its client.',
      resolve: ({ command }) => command.nodeId,
    }),
    callerNodeId: t.id({
      description: 'The node on which the caller waits.',
      resolve: ({ waiter }) => waiter.callerNodeId,
    }),
    createdAt: t.field({
      type: 'DateTime',
      description: 'When the wait began.',
      resolve: ({ waiter }) => waiter.createdAt,
    }),
    timesOutAt: t.field({
      type: 'DateTime',
      description: 'When the wait ends at the latest.',
      resolve: ({ waiter }) => waiter.timesOutAt,
    }),
    ageMs: t.exposeInt('ageMs', { description: 'How long it has waited, milliseconds.' }),
    instanceMismatch: t.expose('instanceMismatch', {
      type: InstanceMismatchType,
      nullable: true,
      description: 'Where the expected instance is not the observed one; null when none was observed to differ.',
    }),
    stage: t.field({
      type: StageEnum,
      description: 'How far the command has come.',
      resolve: ({ command }) => command.stage,
    }),
  }),
});

export const PendingRpcConnection = connectionOf('PendingRpc', PendingRpcType, { rows: 'pending RPCs' });

const PendingRpcFilter = builder.inputType('PendingRpcFilter', {
  description: 'Which waits to show; each member narrows.',
  fields: (t) => ({
    userId: t.id({ description: 'Targets of this user; omitted, a user’s own and an administrator’s all.' }),
    clientId: t.id({ description: 'This target.' }),
    nodeId: t.id({ description: 'Targets whose link is on this node.' }),
    callerNodeId: t.id({ description: 'Callers that wait on this node.' }),
    minAgeMs: t.int({ description: 'Waits at least this old, milliseconds.', extensions: { minimum: 0 } }),
    checkInstance: t.id({
      description: 'The instance believed live: a wait that expects another is reported with its mismatch.',
    }),
  }),
});

const NodeCount = builder.objectRef<{ readonly nodeId: string | null; readonly count: number }>('NodeCount').implement({
  description: 'How many waits have their target on one node.',
  fields: (t) => ({
    nodeId: t.exposeID('nodeId', {
      nullable: true,
      description: 'The node; null for commands that wait for their client.',
    }),
    count: t.exposeInt('count', { description: 'How many.' }),
  }),
});

type CountsByNode = {
  readonly items: readonly { readonly nodeId: string | null; readonly count: number }[];
  readonly completeness: Completeness;
};

const NodeCounts = builder.objectRef<CountsByNode>('NodeCounts').implement({
  description: 'Counts by the node of the target’s link, one for each node that has any.',
  fields: (t) => ({
    items: t.expose('items', { type: [NodeCount], description: 'The counts.' }),
    completeness: t.expose('completeness', { type: CompletenessType, description: 'What was and was not observed.' }),
  }),
});

const filterArgument = builder.args((t) => ({
  filter: t.field({ type: PendingRpcFilter, description: 'Which waits to show; omitted, all that the asker may see.' }),
}));

builder.queryFields((t) => ({
  pendingRpcs: t.field({
    type: PendingRpcConnection,
    description: 'Callers that still wait, oldest first. Looking at a wait neither resolves nor renews it.',
    complexity: pageCost,
    args: { ...filterArgument, ...pageArguments },
    resolve: (_, { filter, ...page }, { core, who }) => core.rpc.pending(who, filter ?? {}, pageOf(page)),
  }),
  pendingRpcCount: t.field({
    type: CountResult,
    description: 'How many callers still wait.',
    args: { ...filterArgument },
    resolve: (_, { filter }, { core, who }) => core.rpc.count(who, filter ?? {}),
  }),
  pendingRpcCountByNode: t.field({
    type: NodeCounts,
    description: 'How many callers still wait, by the node of the target’s link.',
    args: { ...filterArgument },
    resolve: (_, { filter }, { core, who }) => core.rpc.countByNode(who, filter ?? {}),
  }),
}));

builder.objectField(CommandType, 'waiters', (t) =>
  t.field({
    type: [PendingRpcType],
    complexity: { field: 1, multiplier: WAITERS_PER_COMMAND },
    description: `Callers that still wait on it: at most ${WAITERS_PER_COMMAND}.`,
    resolve: (command, _, { loaders }) => loaders.waitersOfCommand(command),
  }),
);

builder.objectField(ConnectionSnapshot, 'pendingRpcs', (t) =>
  t.field({
    type: PendingRpcConnection,
    description: 'Callers that still wait on this client, oldest first.',
    complexity: pageCost,
    args: { ...pageArguments },
    resolve: ({ userId, clientId }, asked, { core, who, loaders }) => {
      const page = pageOf(asked);
      const key = { userId, clientId };
      return page.after ? core.rpc.pending(who, key, page) : loaders.pendingOfClient(key, page.first);
    },
  }),
);

const PendingRpcAlertType = builder.objectRef<Live<PendingRpcAlert>>('PendingRpcAlert').implement({
  description: 'The oldest wait crossed the bound, or none is over it any more.',
  fields: (t) => ({
    over: t.boolean({ description: 'Whether the oldest wait is over the bound.', resolve: ({ event }) => event.over }),
    oldestAgeMs: t.int({
      description: 'Age of the oldest wait, milliseconds; 0 when nobody waits.',
      resolve: ({ event }) => event.oldestAgeMs,
    }),
    count: t.int({ description: 'How many waits are over the bound.', resolve: ({ event }) => event.count }),
    oldest: t.field({
      type: PendingRpcType,
      nullable: true,
      description: 'The oldest wait; null when nobody waits.',
      resolve: ({ event }) => event.oldest,
    }),
    at: t.field({ type: 'DateTime', description: 'When this was observed.', resolve: ({ event }) => event.at }),
    missed: t.exposeInt('missed', {
      description: 'Alerts dropped since the one before, because they were not taken in time.',
    }),
  }),
});

builder.subscriptionField('pendingRpcAlerts', (t) =>
  t.field({
    type: PendingRpcAlertType,
    description:
      'Says whenever the oldest wait crosses the bound or all are back under it; begins with how it stands now.',
    args: {
      olderThanMs: t.arg.int({ required: true, description: 'The bound, milliseconds.', extensions: { minimum: 0 } }),
      userId: t.arg.id({ description: 'Only targets of this user; omitted, a user’s own and an administrator’s all.' }),
    },
    subscribe: (_, { olderThanMs, userId }, { core, who }) => core.rpc.alerts(who, olderThanMs, userId ?? null),
    resolve: fresh,
  }),
);
