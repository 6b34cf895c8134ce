import { requireAdmin, type AdminPrincipal } from '../core/auth/principal.ts';
import type { DeliverySummaryView } from '../core/delivery/observation.ts';
import { DELIVERY_SAMPLE, NODE_GONE_MS } from '../core/limits.ts';
import { builder } from './builder.ts';
import { commandArguments } from './delivery-command.ts';
import { DispatcherNodeConnection } from './delivery-nodes.ts';
import { CapacityScopeConnection } from './delivery-scopes.ts';
import { DeliveryRecord, OutcomeEnum, StageEnum } from './delivery.ts';
import { CompletenessType, connectionOf, pageArguments, pageCost, pageOf } from './page.ts';
import { ModeEnum } from './viewer.ts';

const DeliverySummaryType = builder.objectRef<DeliverySummaryView>('DeliverySummary').implement({
  description:
    'Bounded aggregates of delivery: of this process in direct mode, of the deployment’s namespace in shared mode. What is called sampled is of a sample, not an exact global extreme, and none of it proves that anything was executed.',
  fields: (t) => ({
    trackedCommands: t.exposeInt('trackedCommands', {
      description: 'Commands with a record: those that have not ended, and those whose end is still remembered.',
    }),
    dueCommands: t.exposeInt('dueCommands', {
      description: 'Commands past their connect deadline or their deadline that have not been ended for it yet.',
    }),
    sampledOldestDeadline: t.expose('sampledOldestDeadline', {
      type: 'DateTime',
      nullable: true,
      description: 'The earliest deadline among the sampled commands; null when none was sampled.',
    }),
    sampledOldestQueuedAgeMs: t.exposeInt('sampledOldestQueuedAgeMs', {
      nullable: true,
      description:
        'How long ago, in milliseconds, that one of the sampled commands was queued which has been queued for its client’s link the longest. A sample, not an exact global maximum; null when none of them is queued.',
    }),
    sampleSize: t.exposeInt('sampleSize', {
      description: `How many commands were sampled: of those that have not ended, at most ${DELIVERY_SAMPLE}.`,
    }),
    legacyCommandStreamDepth: t.exposeInt('legacyCommandStreamDepth', {
      nullable: true,
      description:
        'Entries of a legacy command stream that migration checks found; null in direct mode, which has none.',
    }),
    pendingCommandDepth: t.exposeInt('pendingCommandDepth', {
      nullable: true,
      description: 'Pending legacy commands that migration checks found; null in direct mode, which has none.',
    }),
    mode: t.field({
      type: ModeEnum,
      description: 'Which evidence this is: one process’ own, or that of the shared namespace.',
      resolve: (_summary, _args, { core }) => core.mode,
    }),
    completeness: t.expose('completeness', {
      type: CompletenessType,
      description:
        'What was and was not observed: a source for each silent node, of whose links nothing newer is known.',
    }),
  }),
});

const DeliveryRecordConnection = connectionOf('DeliveryRecord', DeliveryRecord, 'delivery records');

const DeliveryFilter = builder.inputType('DeliveryFilter', {
  description: 'Which commands to list; each member narrows.',
  fields: (t) => ({
    userId: t.id({ description: 'Targets of this user.' }),
    clientId: t.id({ description: 'This target.' }),
    stage: t.field({ type: StageEnum, description: 'Those that have come just so far.' }),
    outcome: t.field({
      type: OutcomeEnum,
      description: 'Those that ended so. With a stage other than TERMINAL it is refused.',
    }),
    nodeId: t.id({ description: 'Those whose target’s link is, or was, on this node.' }),
    admittedAfter: t.field({ type: 'DateTime', description: 'Those admitted after this time, exclusive.' }),
  }),
});

const Delivery = builder.objectRef<AdminPrincipal>('Delivery').implement({
  description:
    'How delivery goes, for administrators. No payload of a command can be reached from here, and no status here ever means that an effect outside a client is complete.',
  fields: (t) => ({
    summary: t.field({
      type: DeliverySummaryType,
      description: 'Bounded aggregates.',
      resolve: (who, _, { core }) => core.delivery.summary(who),
    }),
    nodes: t.field({
      type: DispatcherNodeConnection,
      description: `Nodes that reported lately, in order of node. One that died is listed as stale for ${NODE_GONE_MS / 1000} seconds.`,
      complexity: pageCost,
      args: { ...pageArguments },
      resolve: (who, page, { core }) => core.delivery.nodes(who, pageOf(page)),
    }),
    tenants: t.field({
      type: CapacityScopeConnection,
      description: 'Admission scopes that hold something now, in order of scope.',
      complexity: pageCost,
      args: { ...pageArguments },
      resolve: (who, page, { core }) => core.delivery.tenants(who, pageOf(page)),
    }),
    status: t.field({
      type: DeliveryRecord,
      nullable: true,
      description:
        'The record of one command; null when none is kept: it was never admitted, its idempotency window is over, or a mark alone is left of it. Ids that no command can have are refused.',
      args: { ...commandArguments },
      resolve: (who, key, { core }) => core.delivery.status(who, key),
    }),
    commands: t.field({
      type: DeliveryRecordConnection,
      description: 'Commands with a record, in order of user, client and command.',
      complexity: pageCost,
      args: { filter: t.arg({ type: DeliveryFilter, description: 'Which.' }), ...pageArguments },
      resolve: (who, { filter, ...page }, { core }) => core.delivery.commands(who, filter ?? {}, pageOf(page)),
    }),
  }),
});

builder.queryField('delivery', (t) =>
  t.field({
    type: Delivery,
    description: 'How delivery goes. Administrators only.',
    resolve: (_root, _args, { who }) => requireAdmin(who),
  }),
);
