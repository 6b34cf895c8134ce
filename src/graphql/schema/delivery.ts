/**
 * Defines the schema of delivery: the records of commands, their listings, and the state of delivery for operators. It
 * only reads.
 */
import { programOf, type CallerLabel } from '../../core/auth/caller-label.ts';
import { requireAdmin, type AdminPrincipal } from '../../core/auth/principal.ts';
import {
  durationOf,
  type Command,
  type CommandCaller,
  type ExecutionEvidence,
  type Outcome,
  type Stage,
} from '../../core/commands/command.ts';
import type { DeliverySummaryView } from '../../core/commands/inspection.ts';
import type { CommandOrder } from '../../core/commands/delivery-inspector.ts';
import { clientKeyText } from '../../core/ids.ts';
import { DELIVERY_SAMPLE, ERROR_CODE_CHARS, NODE_GONE_MS, OWN_COMMANDS, TRACE_MAX_CHARS } from '../../core/limits.ts';
import { thenDo } from '../../core/maybe-promise.ts';
import { SCAN_BUDGET } from '../../core/page.ts';
import { builder, wireEnum, type Types } from './builder.ts';
import { SampledClient } from './connections-samples.ts';
import { ClientTypeEnum, ConnectionSnapshot, LABELS_DESCRIPTION } from './connections.ts';
import type { Context } from './context.ts';
import { DispatcherNodeConnection } from './delivery-nodes.ts';
import { CapacityScopeConnection } from './delivery-scopes.ts';
import { fieldsOf, id, int, nullable, text, time, typed } from './fields.ts';
import { loadBy } from './loaders.ts';
import { nodeIdOf } from './node-ids.ts';
import { NODE_ID, NodeInterface } from './node-interface.ts';
import {
  CompletenessType,
  PAGED,
  connectionOf,
  forAdmins,
  pageArguments,
  pageOf,
  scanCost,
  scannedBy,
  scannedPageCost,
  type AskedPage,
} from './page.ts';
import { ModeEnum } from './server.ts';

/** The arguments that identify one command. */
export const commandArguments = builder.args((t) => ({
  userId: t.id({ required: true, description: 'The id of the user that the target client belongs to.' }),
  clientId: t.id({ required: true, description: 'The id of the target client.' }),
  commandId: t.id({ required: true, description: 'The command’s id.' }),
}));

export const StageEnum = wireEnum<Stage>('Stage', 'How far a command has come.', {
  admitted: 'The command is on record and waits for its client to connect.',
  queued: 'The command is queued for its client’s link.',
  dispatched: 'The node began to write the command to the client’s socket. That proves neither receipt nor execution.',
  acknowledged: 'The client confirmed that it received the command. That does not prove that it ran.',
  terminal: 'The command ended; `outcome` says how.',
});

export const OutcomeEnum = wireEnum<Outcome>(
  'Outcome',
  'How a command ended. No outcome proves anything about effects outside the client.',
  {
    completed: 'The client reported a result.',
    failed: 'The client reported an error or refused the command.',
    cancelled: 'The command was cancelled before dispatch, or the client reported that it stopped.',
    expired: 'The command’s time ran out before dispatch: no socket write began.',
    outcome_unknown:
      'The command was dispatched and may have run; nothing more is known. `lastProvenStage` says how far it certainly came.',
  },
);

export const ExecutionEvidenceEnum = wireEnum<ExecutionEvidence>(
  'ExecutionEvidence',
  'What is proven about execution. It is never proof that an effect outside the client is complete.',
  {
    not_written: 'No socket write began.',
    refused_by_client: 'The client reported that it refused the command before running it.',
    may_have_run: 'The command may have run.',
    reported_by_client: 'The client reported how the command ended.',
  },
);

export const CommandCallerKind = wireEnum<CommandCaller['kind'] | CallerLabel['kind']>(
  'CommandCallerKind',
  'What kind of requester invoked a command, or waits for it.',
  {
    admin: 'An administrator.',
    user: 'A user, for one of their own clients.',
    grant: 'A viewer of a site, through a grant of the session’s owner.',
    mcp: 'An agent, over MCP, in the name of a user.',
  },
);

export const CommandCallerType = builder.objectRef<CommandCaller>('CommandCaller').implement({
  description: 'Who invoked a command, or waits for it.',
  extensions: { shareable: true },
  fields: fieldsOf((t) => ({
    kind: t.field({
      type: CommandCallerKind,
      description: 'The kind of requester.',
      resolve: ({ kind, label }) => label?.kind ?? kind,
    }),
    name: text(
      'The administrator’s name, the user’s id (of an agent: its user’s), or the grant’s id. It stays the same when a token is renewed.',
    ),
    program: t.string({
      nullable: true,
      description: 'The program of an agent and its version, as it described itself; null for other callers.',
      resolve: ({ label }) => programOf(label),
    }),
  })),
});

export const DeliveryRecord = builder.objectRef<Command>('DeliveryRecord').implement({
  description:
    'What the relay can prove about the delivery of one command. It holds no payload, and no field of it ever means that an effect outside the client is complete.',
  extensions: { shareable: true },
  interfaces: [NodeInterface],
  fields: fieldsOf((t) => ({
    id: t.id({ ...NODE_ID, resolve: (row) => nodeIdOf('DeliveryRecord', row) }),
    userId: id('The id of the user that the target client belongs to.'),
    clientId: id('The id of the target client.'),
    commandId: id('The command’s id.'),
    action: text('The name of the requested action.'),
    clientType: nullable.typed(
      ClientTypeEnum,
      'What kind of program the client was at admission; null if it was not connected then.',
    ),
    contextId: t.id({
      nullable: true,
      description: 'The id of the client’s context that the call named; null if it named none.',
      resolve: ({ contextId }) => contextId ?? null,
    }),
    caller: typed(
      CommandCallerType,
      'Who invoked the command first. A repeated invocation of the same id does not change it.',
    ),
    scopeId: id('The admission scope whose capacity the command counts against.'),
    stage: typed(StageEnum, 'How far the command came. It is not proof that an effect outside the client is complete.'),
    outcome: nullable.typed(
      OutcomeEnum,
      'How the command ended, as far as the relay knows; null while it is live. It is not proof that an effect outside the client is complete.',
    ),
    lastProvenStage: typed(StageEnum, 'The last stage that the command is proven to have reached before it ended.'),
    execution: typed(ExecutionEvidenceEnum, 'What is proven about execution.'),
    attempts: int('How many dispatches began: 0 or 1, since the relay never writes a command twice.'),
    admittedAt: time('When the command was admitted.'),
    queuedAt: nullable.time('When the command was queued for its client’s link; null if it was not queued.'),
    dispatchedAt: nullable.time(
      'When the node began to write the command to the client’s socket; null if it never began.',
    ),
    acknowledgedAt: nullable.time('When the client confirmed receipt; null if it did not.'),
    terminalAt: nullable.time('When the command ended; null while it is live.'),
    durationMs: t.int({
      nullable: true,
      description: 'How long the command took from its admission to its end, in milliseconds; null while it is live.',
      resolve: durationOf,
    }),
    connectDeadline: time('When the command expires unless it was queued for its client’s link by then.'),
    deadline: time(
      'When the command ends at the latest: `admittedAt` plus the connect and response budgets (`connectWithinMs` and `respondWithinMs`).',
    ),
    nodeId: nullable.id(
      'The id of the node that holds the target’s link; null while the command waits for its client.',
    ),
    boundInstanceId: nullable.id(
      'The id of the instance that the command was written to: only reports of this instance count. Null before dispatch.',
    ),
    recoveredFromNodeId: nullable.id(
      'The id of the node that held the command before its current one; null if it never moved.',
    ),
    cancelRequestedAt: nullable.time('When cancellation was first requested; null if it was not.'),
    lateResults: int(
      'How many ends were reported after the command had ended, or by an instance other than `boundInstanceId`.',
    ),
    firstLateAt: t.field({
      type: 'DateTime',
      nullable: true,
      description: 'When the first late result arrived; null if there was none.',
      resolve: ({ firstLate }) => firstLate?.at ?? null,
    }),
    code: t.string({
      nullable: true,
      description:
        'The code of the error with which the command ended; null while it is live, and if it ended without an error.',
      resolve: ({ error }) => error?.code ?? null,
    }),
    message: t.string({
      nullable: true,
      description:
        'The bounded message of the error with which the command ended, at most 256 characters; null where `code` is.',
      resolve: ({ error }) => error?.message ?? null,
    }),
    reason: nullable.text(
      'Why the command ended, as an error code, or who cancelled it or requested its cancellation. Null if neither applies.',
    ),
  })),
});

const IN_FLIGHT = 'How many commands were dispatched to the client and have not ended.';
const QUEUED = 'How many commands wait to be dispatched to the client.';
const loadOfClient = loadBy(clientKeyText, ({ core }, keys) => core.delivery.loads(keys));

builder.objectFields(ConnectionSnapshot, (t) => ({
  inFlight: t.int({
    description: IN_FLIGHT,
    resolve: (connection, _, context) => thenDo(loadOfClient(context, connection), ({ inFlight }) => inFlight),
  }),
  queued: t.int({
    description: QUEUED,
    resolve: (connection, _, context) => thenDo(loadOfClient(context, connection), ({ queued }) => queued),
  }),
}));

builder.objectFields(SampledClient, (t) => ({
  inFlight: t.int({
    description: IN_FLIGHT,
    resolve: (client, _, context) => thenDo(loadOfClient(context, client), ({ inFlight }) => inFlight),
  }),
  queued: t.int({
    description: QUEUED,
    resolve: (client, _, context) => thenDo(loadOfClient(context, client), ({ queued }) => queued),
  }),
}));

// The summary and the records of delivery, for operators.

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

export const DeliveryRecordConnection = connectionOf('DeliveryRecord', DeliveryRecord, { rows: 'delivery records' });

const CommandOrderEnum = wireEnum<CommandOrder>('CommandOrder', 'The order of commands.', {
  key: 'By user, client and command.',
  newest: 'The latest admission first. Commands of one millisecond have a fixed order.',
});

type FilterFields = PothosSchemaTypes.InputFieldBuilder<Types, 'InputObject'>;

/**
 * Returns the members of a filter by which callers are selected. `which`: the rows, and what the caller does with them.
 */
export function callerFilterFields(t: FilterFields, which: string) {
  return {
    caller: t.string({
      description: `Only ${which} this caller: the name of an administrator, the id of a user, the id of a grant, or the name of an agent’s program.`,
    }),
    callerKind: t.field({ type: CommandCallerKind, description: `Only ${which} a caller of this kind.` }),
  };
}

export const DeliveryFilter = builder.inputType('DeliveryFilter', {
  description: 'Which commands to list. A command must match every member that is given.',
  fields: (t) => ({
    userId: t.id({ description: 'Only commands for clients of this user.' }),
    clientId: t.id({ description: 'Only commands for this client.' }),
    stage: t.field({ type: StageEnum, description: 'Only commands at exactly this stage.' }),
    outcome: t.field({
      type: OutcomeEnum,
      description: 'Only commands with this outcome. Refused together with a stage other than TERMINAL.',
    }),
    outcomes: t.field({
      type: [OutcomeEnum],
      description: 'Only commands that ended in one of these ways.',
    }),
    nodeId: t.id({ description: 'Only commands whose target’s link is or was on this node.' }),
    action: t.string({ description: 'Only commands that invoke this action.' }),
    contextId: t.id({ description: 'Only commands that name this context.' }),
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
    idOrTrace: t.id({
      description: `Only commands with this id, with an id that ends with this text of at least 8 characters, or with this trace id: at most ${TRACE_MAX_CHARS} characters.`,
    }),
    ...callerFilterFields(t, 'commands invoked by'),
  }),
});

const commandsArguments = builder.args((t) => ({
  filter: t.field({ type: DeliveryFilter, description: 'Which commands to list. Omitted: all.' }),
  order: t.field({
    type: CommandOrderEnum,
    required: true,
    defaultValue: 'key',
    description: 'The order of the list. A cursor is valid only for the order in which it was issued.',
  }),
  ...pageArguments,
}));

type CommandsArguments = AskedPage & {
  readonly filter?: typeof DeliveryFilter.$inferInput | null | undefined;
  readonly order: CommandOrder;
};

/** Returns the cost of a page of commands. To find the newest commands of one user, those of all users are searched. */
function commandsCost({ filter, order, first }: CommandsArguments, { requester }: Pick<Context, 'requester'>) {
  const isOfUser = requester?.kind !== 'admin' || filter?.userId != null || filter?.clientId != null;
  return scannedPageCost({ first }, order === 'newest' && isOfUser ? SCAN_BUDGET : scannedBy(filter));
}

builder.queryField('commands', (t) =>
  t.field({
    type: DeliveryRecordConnection,
    description: `Commands with a record. Administrators see those of all users, users those for their own clients. A page reads at most ${SCAN_BUDGET} commands; if it ends there, \`completeness\` has the reason LIMIT_REACHED, and the listing continues with the next page. In the order NEWEST, a page for one user, or for one client of a user, reads only their commands if there are at most ${OWN_COMMANDS}. If there are more, it searches the newest commands of all users for theirs, so it may be short.`,
    complexity: commandsCost,
    args: { ...commandsArguments },
    resolve: (_, { filter, order, ...page }, { core, requester, reading }) =>
      core.delivery.commands(requester, filter ?? {}, { ...pageOf(page), order, reading }),
  }),
);

export const Delivery = builder.objectRef<AdminPrincipal>('Delivery').implement({
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
      complexity: commandsCost,
      args: { ...commandsArguments },
      resolve: (requester, { filter, order, ...page }, { core, reading }) =>
        core.delivery.commands(requester, filter ?? {}, { ...pageOf(page), order, reading }),
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
