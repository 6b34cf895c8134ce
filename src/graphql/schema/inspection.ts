/**
 * The GraphQL fields with the operator's view of delivery: summary, nodes, scopes and records. Reading changes nothing.
 */
import { requireAdmin, type AdminPrincipal } from '../../core/auth/principal.ts';
import type { DeliverySummaryView, Disconnection, ScopeView } from '../../core/commands/operator.ts';
import type { CommandOrder } from '../../core/commands/stores.ts';
import { notFound } from '../../core/errors.ts';
import { DELIVERY_SAMPLE, ERROR_CODE_CHARS, MAX_REASON, NODE_GONE_MS, SCOPE_HOLDERS } from '../../core/limits.ts';
import { SCAN_BUDGET } from '../../core/page.ts';
import { builder, wireEnum } from './builder.ts';
import { fieldsOf, id, int, list, nullable, time, typed } from './builder-fields.ts';
import { commandArguments } from './commands.ts';
import { ClientTypeEnum, ConnectionSnapshot, LABELS_DESCRIPTION } from './connections.ts';
import { DeliveryRecord, DispatcherNodeConnection, OutcomeEnum, StageEnum } from './delivery.ts';
import { NODE_ID, NodeInterface, nodeIdOf } from './node-interface.ts';
import {
  PAGED,
  CompletenessType,
  connectionOf,
  forAdmins,
  pageArguments,
  pageOf,
  scanCost,
  scannedBy,
  scannedPageCost,
} from './page.ts';
import { orRefusal, refusalOf } from './refusal.ts';
import { ModeEnum } from './server.ts';

const DeliverySummaryType = builder.objectRef<DeliverySummaryView>('DeliverySummary').implement({
  description:
    'Bounded aggregates of delivery: of this process in direct mode, of the deployment’s namespace in shared mode. Fields named `sampled...` are values of a sample, not an exact global extreme, and none of it proves that anything was executed.',
  fields: fieldsOf((t) => ({
    trackedCommands: int(
      'How many commands have a record: live commands, and ended ones whose record is still retained.',
    ),
    dueCommands: int(
      'How many live commands are past their connect deadline or their deadline and have not been ended yet.',
    ),
    sampledOldestDeadline: nullable.time('The earliest deadline among the sampled commands; null if none was sampled.'),
    sampledOldestQueuedAgeMs: nullable.int(
      'Age in milliseconds of the sampled command that has been queued for its client’s link the longest. A sample, not an exact global maximum; null if no sampled command is queued.',
    ),
    sampleSize: int(`How many live commands were sampled, at most ${DELIVERY_SAMPLE}.`),
    legacyCommandStreamDepth: nullable.int(
      'How many entries of a legacy command stream the migration checks found; null if no legacy keys are configured, as in direct mode.',
    ),
    pendingCommandDepth: nullable.int(
      'How many pending legacy commands the migration checks found; null if no legacy keys are configured, as in direct mode.',
    ),
    mode: t.field({
      type: ModeEnum,
      description: 'Whether the numbers cover this process (direct mode) or the shared namespace (shared mode).',
      resolve: (_summary, _args, { core }) => core.mode,
    }),
    completeness: typed(
      CompletenessType,
      'Whether anything is missing, from which source, and why. Each silent node is a source: nothing newer is known about its links.',
    ),
  })),
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
      ...PAGED,
      resolve: (requester, page, { core }) => core.delivery.nodes(requester, pageOf(page)),
    }),
    tenants: t.field({
      type: CapacityScopeConnection,
      description: 'Admission scopes that hold reservations now, in order of scope id.',
      ...PAGED,
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

// The mutation by which an operator disconnects a client. Core checks the rights and acts.

const DisconnectStateEnum = wireEnum<Disconnection['state']>(
  'DisconnectState',
  'The state of a requested disconnection.',
  {
    closed: 'The link is closed.',
    requested: 'The link’s node was asked to close it and has not confirmed that yet.',
  },
);

const DisconnectReceipt = builder.objectRef<Disconnection>('DisconnectReceipt').implement({
  description:
    'The state of a requested disconnection. It ends a link, not a command: dispatched commands may have run, and the client may connect again and report their ends.',
  fields: fieldsOf(() => ({
    state: typed(DisconnectStateEnum, 'Whether the link is closed already.'),
    connection: typed(
      ConnectionSnapshot,
      'The connection after the request; the client may have connected again already.',
    ),
  })),
});

const DisconnectResult = orRefusal(
  'DisconnectResult',
  DisconnectReceipt,
  'The receipt of a disconnection, or a refusal.',
);

builder.mutationField('disconnectClient', (t) =>
  t.field({
    type: DisconnectResult,
    description:
      'Closes a client’s link with close code 4451. Administrators only. The client may connect again at once: to keep it away, its token must no longer be accepted. Answers `not_found` if the client has no recent connection; refuses if its link is down. The audit log records the request.',
    args: {
      userId: t.arg.id({ required: true, description: 'The user’s id.' }),
      clientId: t.arg.id({ required: true, description: 'The client’s id.' }),
      reason: t.arg.string({
        description: `The reason for the audit log, at most ${MAX_REASON} characters. Omitted: none.`,
      }),
    },
    resolve: async (_, { reason, ...key }, { core, requester, notes }) =>
      (await core.delivery.disconnectClient(requester, key, reason ?? null, notes?.requestId).catch(refusalOf)) ??
      notFound(),
  }),
);

// The GraphQL type of capacity scopes: how many commands each may have, and which commands hold its reservations.

const CommandRef = builder.objectRef<ScopeView['holders'][number]>('CommandRef').implement({
  description: 'The ids of a command that holds a reservation; `delivery.status` shows its record.',
  fields: fieldsOf(() => ({
    userId: id('The id of the user that the target client belongs to.'),
    clientId: id('The id of the target client.'),
    commandId: id('The command’s id.'),
    deadline: time('When the command ends at the latest.'),
  })),
});

const CapacityScope = builder.objectRef<ScopeView>('CapacityScope').implement({
  description:
    'An admission scope that holds reservations now. It need not be a commercial tenant. A reservation is of admission, not of execution: it says that a command was admitted and has not ended, never that anything runs.',
  interfaces: [NodeInterface],
  fields: fieldsOf((t) => ({
    id: t.id({ ...NODE_ID, resolve: (row) => nodeIdOf('CapacityScope', row) }),
    scopeId: id('The scope’s id: by default a user’s id, or the name of a group in the policy file.'),
    reservedCommands: int('How many commands were admitted in the scope and have not ended.'),
    limit: nullable.int(
      'How many commands the scope may hold at once, by the policy of the node that answers; null if that policy has no such scope.',
    ),
    oldestDeadline: nullable.time('The earliest deadline of the commands in the scope; null if there is none.'),
    holders: list(
      CommandRef,
      `The commands that hold the reservations, earliest deadline first: at most ${SCOPE_HOLDERS}.`,
      { complexity: { field: 1, multiplier: SCOPE_HOLDERS } },
    ),
  })),
});

const CapacityScopeConnection = connectionOf('CapacityScope', CapacityScope, { rows: 'capacity scopes' });
