/**
 * The GraphQL fields with the operator's view of delivery: summary, nodes, scopes and records. Reading changes nothing.
 */
import { requireAdmin, type AdminPrincipal } from '../../core/auth/principal.ts';
import type { DeliverySummaryView } from '../../core/delivery/observation.ts';
import type { CommandOrder } from '../../core/delivery/inspector.ts';
import { DELIVERY_SAMPLE, ERROR_CODE_CHARS, NODE_GONE_MS } from '../../core/limits.ts';
import { SCAN_BUDGET } from '../../core/page.ts';
import { builder } from './builder.ts';
import { ClientTypeEnum, LABELS_DESCRIPTION } from './connections.ts';
import { commandArguments } from './delivery-command.ts';
import { DispatcherNodeConnection } from './delivery-nodes.ts';
import { CapacityScopeConnection } from './delivery-scopes.ts';
import { DeliveryRecord, OutcomeEnum, StageEnum } from './delivery.ts';
import {
  CompletenessType,
  connectionOf,
  forAdmins,
  pageArguments,
  pageCost,
  pageOf,
  scanCost,
  scannedBy,
  scannedPageCost,
} from './page.ts';
import { wireEnum } from './enums.ts';
import { ModeEnum } from './viewer.ts';

const DeliverySummaryType = builder.objectRef<DeliverySummaryView>('DeliverySummary').implement({
  description:
    'Bounded aggregates of delivery: of this process in direct mode, of the deployment’s namespace in shared mode. Fields named `sampled...` are values of a sample, not an exact global extreme, and none of it proves that anything was executed.',
  fields: (t) => ({
    trackedCommands: t.exposeInt('trackedCommands', {
      description: 'How many commands have a record: live commands, and ended ones whose record is still retained.',
    }),
    dueCommands: t.exposeInt('dueCommands', {
      description:
        'How many live commands are past their connect deadline or their deadline and have not been ended yet.',
    }),
    sampledOldestDeadline: t.expose('sampledOldestDeadline', {
      type: 'DateTime',
      nullable: true,
      description: 'The earliest deadline among the sampled commands; null if none was sampled.',
    }),
    sampledOldestQueuedAgeMs: t.exposeInt('sampledOldestQueuedAgeMs', {
      nullable: true,
      description:
        'Age in milliseconds of the sampled command that has been queued for its client’s link the longest. A sample, not an exact global maximum; null if no sampled command is queued.',
    }),
    sampleSize: t.exposeInt('sampleSize', {
      description: `How many live commands were sampled, at most ${DELIVERY_SAMPLE}.`,
    }),
    legacyCommandStreamDepth: t.exposeInt('legacyCommandStreamDepth', {
      nullable: true,
      description:
        'How many entries of a legacy command stream the migration checks found; null if no legacy keys are configured, as in direct mode.',
    }),
    pendingCommandDepth: t.exposeInt('pendingCommandDepth', {
      nullable: true,
      description:
        'How many pending legacy commands the migration checks found; null if no legacy keys are configured, as in direct mode.',
    }),
    mode: t.field({
      type: ModeEnum,
      description: 'Whether the numbers cover this process (direct mode) or the shared namespace (shared mode).',
      resolve: (_summary, _args, { core }) => core.mode,
    }),
    completeness: t.expose('completeness', {
      type: CompletenessType,
      description:
        'Whether anything is missing, from which source, and why. Each silent node is a source: nothing newer is known about its links.',
    }),
  }),
});

const DeliveryRecordConnection = connectionOf('DeliveryRecord', DeliveryRecord, { rows: 'delivery records' });

const CommandOrderEnum = wireEnum<CommandOrder>('CommandOrder', 'The order of commands.', {
  key: 'By user, client and command.',
  newest: 'The latest admission first. Commands of one millisecond have a fixed order.',
});

const DeliveryFilter = builder.inputType('DeliveryFilter', {
  description: 'Which commands to list. A command must match every member that is given.',
  fields: (t) => ({
    userId: t.id({ description: 'Only commands for clients of this user.' }),
    clientId: t.id({ description: 'Only commands for this client.' }),
    stage: t.field({ type: StageEnum, description: 'Only commands at exactly this stage.' }),
    outcome: t.field({
      type: OutcomeEnum,
      description: 'Only commands with this outcome. Refused together with a stage other than TERMINAL.',
    }),
    nodeId: t.id({ description: 'Only commands whose target’s link is or was on this node.' }),
    action: t.string({ description: 'Only commands that invoke this action.' }),
    code: t.string({
      description: `Only commands that ended with an error of this code, at most ${ERROR_CODE_CHARS} characters.`,
    }),
    clientType: t.field({
      type: ClientTypeEnum,
      description: 'Only commands whose client was a program of this kind at admission.',
    }),
    labels: t.stringList({
      description: `${LABELS_DESCRIPTION} The labels are those of the client’s connection now: commands of a client without one never match.`,
    }),
    admittedAfter: t.field({ type: 'DateTime', description: 'Only commands admitted after this time, exclusive.' }),
    admittedBefore: t.field({ type: 'DateTime', description: 'Only commands admitted before this time, exclusive.' }),
  }),
});

const Delivery = builder.objectRef<AdminPrincipal>('Delivery').implement({
  description:
    'The state of delivery, for administrators. It gives access to no command payload, and no status here ever means that an effect outside a client is complete.',
  fields: (t) => ({
    summary: t.field({
      type: DeliverySummaryType,
      description: 'Bounded aggregates of delivery.',
      resolve: (requester, _, { core }) => core.delivery.summary(requester),
    }),
    nodes: t.field({
      type: DispatcherNodeConnection,
      description: `Nodes that reported recently, in order of node id. A node that died is listed as stale for ${NODE_GONE_MS / 1000} seconds.`,
      complexity: pageCost,
      args: { ...pageArguments },
      resolve: (requester, page, { core }) => core.delivery.nodes(requester, pageOf(page)),
    }),
    tenants: t.field({
      type: CapacityScopeConnection,
      description: 'Admission scopes that hold reservations now, in order of scope id.',
      complexity: pageCost,
      args: { ...pageArguments },
      resolve: (requester, page, { core }) => core.delivery.tenants(requester, pageOf(page)),
    }),
    status: t.field({
      type: DeliveryRecord,
      nullable: true,
      description:
        'The record of one command; null if none is kept: the command was never admitted, its idempotency window is over, or only its mark is left. Invalid ids are refused.',
      args: { ...commandArguments },
      resolve: (requester, key, { core }) => core.delivery.status(requester, key),
    }),
    commands: t.field({
      type: DeliveryRecordConnection,
      description: `Commands with a record. A page reads at most ${SCAN_BUDGET} commands; if it ends there, \`completeness\` has the reason LIMIT_REACHED, and the listing continues with the next page.`,
      complexity: ({ filter, first }) => scannedPageCost({ first }, scannedBy(filter)),
      args: {
        filter: t.arg({ type: DeliveryFilter, description: 'Which commands to list. Omitted: all.' }),
        order: t.arg({
          type: CommandOrderEnum,
          required: true,
          defaultValue: 'key',
          description: 'The order of the list. A cursor is valid only for the order in which it was issued.',
        }),
        ...pageArguments,
      },
      resolve: (requester, { filter, order, ...page }, { core }) =>
        core.delivery.commands(requester, filter ?? {}, { ...pageOf(page), order }),
    }),
  }),
});

builder.queryField('delivery', (t) =>
  t.field({
    type: Delivery,
    description: 'The state of delivery. Administrators only.',
    complexity: forAdmins(() => scanCost(0)),
    resolve: (_root, _args, { requester }) => requireAdmin(requester),
  }),
);
