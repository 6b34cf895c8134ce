/** Defines the schema of callers that wait for commands: their listings, counts and alerts. */
import type { WaitFor } from '../../core/commands/waiter.ts';
import type { InstanceMismatch, PendingRpc, PendingRpcAlert } from '../../core/core.ts';
import { clientKeyText, commandKeyText, type ClientKey } from '../../core/ids.ts';
import { MIN_AGE_MS, OLDER_THAN_MS, WAITERS_PER_COMMAND } from '../../core/limits.ts';
import type { LiveEvent } from '../../core/live.ts';
import { thenDo, type MaybePromise } from '../../core/maybe-promise.ts';
import type { Completeness } from '../../core/completeness.ts';
import { SHARE_BOUNDS } from '../../core/shares/share-bounds.ts';
import { fieldsOf, fieldsOfPart, flag, id, int, list, nullable, text, time, typed } from './fields.ts';
import { builder, wireEnum } from './builder.ts';
import { fresh } from './subscription-fields.ts';
import { NODE_ID, NodeInterface } from './node-interface.ts';
import { nodeIdOf } from './node-ids.ts';
import { CommandType } from './commands.ts';
import { ConnectionSnapshot } from './connections.ts';
import { SampledClient } from './connections-samples.ts';
import { loadBy, loadPagesBy } from './loaders.ts';
import type { Context } from './context.ts';
import { CommandCallerType, StageEnum, callerFilterFields } from './delivery.ts';
import {
  CompletenessType,
  CountResult,
  PAGED,
  connectionOf,
  pageArguments,
  pageOf,
  scanCost,
  scannedBy,
  scannedPageCost,
} from './page.ts';

export const WaitStageEnum = wireEnum<WaitFor>(
  'WaitStage',
  'What a call waits for. The end of a wait does not change the command.',
  {
    admitted: 'Until the command is on record.',
    acknowledged: 'Until the client confirmed that it received the command.',
    completed: 'Until the command ended.',
  },
);

const InstanceMismatchType = builder.objectRef<InstanceMismatch>('InstanceMismatch').implement({
  description: 'The command expects another client instance than the one that was observed.',
  fields: fieldsOf(() => ({
    expectedInstanceId: id(
      'The id of the instance that the command was written to or, before dispatch, of the one believed to be live when it was admitted or queued.',
    ),
    observedInstanceId: nullable.id(
      'The id of the observed instance: `checkInstance` if the filter names one, otherwise the connected instance. Null would mean that the client is not connected, but then no mismatch is reported.',
    ),
    observedAt: time('When the instance was observed.'),
  })),
});

const PendingRpcType = builder.objectRef<PendingRpc>('PendingRpc').implement({
  description:
    'One caller’s wait on a command that has not been resolved. Nothing more is shown: the command may have been written to the socket, the client may have run it, and a result may have come after the caller stopped waiting.',
  interfaces: [NodeInterface],
  fields: fieldsOf((t) => ({
    id: t.id({ ...NODE_ID, resolve: ({ waiter }) => nodeIdOf('PendingRpc', waiter) }),
    ...fieldsOfPart(t, 'waiter', {
      rpcId: id('The id of the wait.'),
      commandId: id('The id of the awaited command.'),
      userId: id('The id of the user that the target client belongs to.'),
      clientId: id('The id of the target client.'),
      action: text('The name of the requested action.'),
      waitFor: typed(WaitStageEnum, 'What the caller waits for.'),
      caller: typed(CommandCallerType, 'Who waits. It may be another caller than the one that invoked the command.'),
    }),
    ...fieldsOfPart(t, 'command', {
      expectedInstanceId: nullable.id(
        'The id of the instance believed to be live when the command was admitted or queued; null if none was known.',
      ),
      nodeId: nullable.id(
        'The id of the node that holds the target’s link; null while the command waits for its client.',
      ),
    }),
    ...fieldsOfPart(t, 'waiter', {
      callerNodeId: id('The id of the node on which the caller waits.'),
      createdAt: time('When the wait began.'),
      timesOutAt: time('When the wait ends at the latest.'),
    }),
    ageMs: int('How long the caller has waited, in milliseconds.'),
    instanceMismatch: nullable.typed(
      InstanceMismatchType,
      'The difference between the expected and the observed instance; null if no different instance was observed.',
    ),
    contextId: t.id({
      nullable: true,
      description: 'The id of the client’s context that the command names; null if it names none.',
      resolve: ({ command }) => command.contextId ?? null,
    }),
    connectDeadline: t.field({
      type: 'DateTime',
      description:
        'When the command expires unless it was queued for its client’s link by then. It decides nothing once the command was queued.',
      resolve: ({ command }) => command.connectDeadline,
    }),
    stage: t.field({
      type: StageEnum,
      description: 'How far the command came.',
      resolve: ({ command }) => command.stage,
    }),
  })),
});

export const PendingRpcConnection = connectionOf('PendingRpc', PendingRpcType, { rows: 'pending RPCs' });

const PendingRpcFilter = builder.inputType('PendingRpcFilter', {
  description: 'Which waits to include. A wait must match every member that is given.',
  fields: (t) => ({
    userId: t.id({
      description:
        'Only waits whose target belongs to this user. Omitted: a user gets waits on its own clients, an administrator gets all.',
    }),
    clientId: t.id({ description: 'Only waits whose target is this client.' }),
    nodeId: t.id({ description: 'Only waits whose target’s link is on this node.' }),
    callerNodeId: t.id({ description: 'Only waits of callers on this node.' }),
    contextId: t.id({ description: 'Only waits on commands that name this context.' }),
    ...callerFilterFields(t, 'waits of'),
    minAgeMs: t.int({
      description: `Only waits that are at least this old, ${MIN_AGE_MS.min} to ${MIN_AGE_MS.max} milliseconds.`,
      extensions: { minimum: MIN_AGE_MS.min, maximum: MIN_AGE_MS.max },
    }),
    checkInstance: t.id({
      description:
        'The id of the instance that the requester believes to be live. A wait that expects another one is reported with `instanceMismatch`.',
    }),
  }),
});

const NodeCount = builder.objectRef<{ readonly nodeId: string | null; readonly count: number }>('NodeCount').implement({
  description: 'How many waits have their target’s link on one node.',
  fields: fieldsOf(() => ({
    nodeId: nullable.id('The node’s id; null for commands that wait for their client.'),
    count: int('The number of waits.'),
  })),
});

type CountsByNode = {
  readonly items: readonly { readonly nodeId: string | null; readonly count: number }[];
  readonly completeness: Completeness;
};

const NodeCounts = builder.objectRef<CountsByNode>('NodeCounts').implement({
  description: 'Numbers of waits by the node of the target’s link, one for each node that has any.',
  fields: fieldsOf(() => ({
    items: list(NodeCount, 'The counts, one for each node.'),
    completeness: typed(CompletenessType, 'Whether anything is missing, from which source, and why.'),
  })),
});

/** The cost of counting waits: the count may scan as many waits as the default share guarantees to one user. */
const COUNT_COST = scanCost(SHARE_BOUNDS.waits.guarantee);

const filterArgument = builder.args((t) => ({
  filter: t.field({
    type: PendingRpcFilter,
    description: 'Which waits to include. Omitted: all that the requester may see.',
  }),
}));

builder.queryFields((t) => ({
  pendingRpcs: t.field({
    type: PendingRpcConnection,
    description: 'Callers that still wait, oldest first. Reading a wait neither resolves nor renews it.',
    complexity: ({ filter, ...page }) => scannedPageCost(page, scannedBy(filter)),
    args: { ...filterArgument, ...pageArguments },
    resolve: (_, { filter, ...page }, { core, requester }) => core.rpc.pending(requester, filter ?? {}, pageOf(page)),
  }),
  pendingRpcCount: t.field({
    type: CountResult,
    description: 'How many callers still wait.',
    complexity: COUNT_COST,
    args: { ...filterArgument },
    resolve: (_, { filter }, { core, requester }) => core.rpc.count(requester, filter ?? {}),
  }),
  pendingRpcCountByNode: t.field({
    type: NodeCounts,
    description: 'How many callers still wait, by the node of the target’s link.',
    complexity: COUNT_COST,
    args: { ...filterArgument },
    resolve: (_, { filter }, { core, requester }) => core.rpc.countByNode(requester, filter ?? {}),
  }),
}));

export const loadWaiters = loadBy(commandKeyText, ({ core, requester }, keys) => core.rpc.ofCommands(requester, keys));

builder.objectField(CommandType, 'waiters', (t) =>
  t.field({
    type: [PendingRpcType],
    complexity: { field: 1, multiplier: WAITERS_PER_COMMAND },
    description: `Callers that still wait on the command: at most ${WAITERS_PER_COMMAND}.`,
    resolve: (command, _, context) => loadWaiters(context, command),
  }),
);

const pendingOfClient = loadPagesBy(
  clientKeyText,
  ({ core, requester }, keys, first) => core.rpc.ofClients(requester, keys, first),
  ({ core, requester }, key, page) => core.rpc.pending(requester, key, page),
);

const WAITING = 'How many callers still wait on this client.';
const countOfClient = ({ userId, clientId }: ClientKey, context: Context): MaybePromise<number> =>
  thenDo(pendingOfClient.first(context, { userId, clientId }, 1), ({ total }) => total);

builder.objectField(ConnectionSnapshot, 'pendingRpcCount', (t) =>
  t.int({ description: WAITING, resolve: (connection, _, context) => countOfClient(connection, context) }),
);

builder.objectField(SampledClient, 'pendingRpcCount', (t) =>
  t.int({ description: WAITING, resolve: (client, _, context) => countOfClient(client, context) }),
);

builder.objectField(ConnectionSnapshot, 'pendingRpcs', (t) =>
  t.field({
    type: PendingRpcConnection,
    description: 'Callers that still wait on this client, oldest first.',
    ...PAGED,
    resolve: ({ userId, clientId }, page, context) => pendingOfClient.page(context, { userId, clientId }, pageOf(page)),
  }),
);

const PendingRpcAlertType = builder.objectRef<LiveEvent<PendingRpcAlert>>('PendingRpcAlert').implement({
  description: 'The oldest wait reached the bound, or no wait has reached it any more.',
  fields: fieldsOf((t) => ({
    ...fieldsOfPart(t, 'event', {
      over: flag('Whether the oldest wait has reached the bound: its age is the bound or more.'),
      oldestAgeMs: int('Age of the oldest wait, in milliseconds; 0 if no caller waits.'),
      count: int('How many waits have reached the bound.'),
      oldest: nullable.typed(PendingRpcType, 'The oldest wait; null if no caller waits.'),
      at: time('When the relay observed this.'),
    }),
    missed: int('How many alerts were dropped since the previous one because the subscriber read too slowly.'),
  })),
});

builder.subscriptionField('pendingRpcAlerts', (t) =>
  t.field({
    type: PendingRpcAlertType,
    description:
      'Sends an alert when the oldest wait reaches the bound, and when no wait has reached it any more. The first alert is the current state. The relay looks once a second.',
    args: {
      olderThanMs: t.arg.int({
        required: true,
        description: `The bound on the age of a wait, ${OLDER_THAN_MS.min} to ${OLDER_THAN_MS.max} milliseconds.`,
        extensions: { minimum: OLDER_THAN_MS.min, maximum: OLDER_THAN_MS.max },
      }),
      userId: t.arg.id({
        description:
          'Only waits whose target belongs to this user. Omitted: a user gets waits on its own clients, an administrator gets all.',
      }),
    },
    subscribe: (_, { olderThanMs, userId }, { core, requester }) =>
      core.rpc.alerts(requester, olderThanMs, userId ?? null),
    resolve: fresh,
  }),
);
