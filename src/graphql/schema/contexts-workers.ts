/** The GraphQL types and fields of workers: the contexts that background programs report. */
import { readUser } from '../../core/auth/principal.ts';
import type { ClientType } from '../../core/connections/connection.ts';
import type { WorkerList, WorkerView } from '../../core/contexts/api.ts';
import { completenessOf } from '../../core/cursor.ts';
import { COUNT_SCAN, PAGE_DEFAULT, WORKER_LIST } from '../../core/limits.ts';
import type { MaybePromise } from '../../core/maybe-promise.ts';
import { builder } from './builder.ts';
import { ClientTypeEnum } from './connections.ts';
import type { Context } from './context.ts';
import { CONTEXT_SIZE, ExecutionContextType } from './contexts.ts';
import { CompletenessType, pageCost, pageOf, PER_ROW, scanCost } from './page.ts';
import { User } from './users.ts';

/**
 * The user, the kind of client, and how many workers each list may hold. Each list is read only when a query selects
 * it.
 */
type WorkersOf = {
  readonly userId: string;
  readonly clientType: ClientType | null | undefined;
  readonly first: number;
};

function listOf({ loaders }: Context, { first, ...owner }: WorkersOf, view: WorkerView): MaybePromise<WorkerList> {
  return loaders.workers({ ...owner, ...view }, first);
}

/** Returns the list, cut to what fits into the answer’s byte budget. */
async function boundedListOf(
  context: Context,
  workers: WorkersOf,
  view: WorkerView,
): Promise<Pick<WorkerList, 'completeness'>> {
  return context.budget.list(await listOf(context, workers, view), CONTEXT_SIZE);
}

async function itemsOf(context: Context, workers: WorkersOf, view: WorkerView): Promise<WorkerList['items']> {
  return context.budget.items(await listOf(context, workers, view), CONTEXT_SIZE);
}

/** What one list costs besides its workers: it may scan as many contexts as a count. */
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
        const idle = boundedListOf(context, workers, { view: 'idle' });
        const assigned = boundedListOf(context, workers, { view: 'assigned' });
        return completenessOf((await Promise.all([idle, assigned])).flatMap((list) => list.completeness.sources));
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
    required: true,
    defaultValue: PAGE_DEFAULT,
    description: `The most workers in each list: 1 to ${WORKER_LIST}. \`completeness\` says whether there are more.`,
    extensions: { minimum: 1, maximum: WORKER_LIST },
  }),
}));

builder.queryField('workers', (t) =>
  t.field({
    type: WorkersType,
    description: 'One user’s workers.',
    complexity: pageCost,
    args: { userId: t.arg.id({ required: true, description: 'The user’s id.' }), ...workerArguments },
    resolve: (_, { userId, clientType, first }, { requester }) => ({
      userId: readUser(requester, userId),
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
