/**
 * Everything about one command in one GraphQL type: its delivery, history, sightings and waits. Also the subscriptions
 * to the updates of one command and to the events of many, commands that are found by an id or a trace, and failed
 * commands in groups.
 */
import type { AuditSubject } from '../../core/audit/audit-rows.ts';
import type { Command, CommandEvent, CommandEventStage, Sighting } from '../../core/commands/command.ts';
import type { FailureGroup, FailureKey, Failures, OutcomeCount } from '../../core/commands/lookup.ts';
import type { CommandEventQuery } from '../../core/commands/operator.ts';
import type { CommandUpdate } from '../../core/core.ts';
import { notFound } from '../../core/errors.ts';
import { commandKeyText, type CommandKey } from '../../core/ids.ts';
import {
  ADMITTED_WITHIN_MS,
  COMMAND_EVENTS_PER_SECOND,
  MAX_REASON,
  REVEAL_REASON_MIN,
  SIGHTINGS_PER_COMMAND,
  SHOWN_FAILURES,
  TRACE_MAX_CHARS,
} from '../../core/limits.ts';
import { subscribeTo, type LiveEvent } from '../../core/live.ts';
import { thenDo } from '../../core/maybe-promise.ts';
import { SCAN_BUDGET } from '../../core/page.ts';
import {
  builder,
  fresh,
  wireEnum,
  fieldsOf,
  flag,
  id,
  int,
  list,
  nullable,
  text,
  time,
  NODE_ID,
  NodeInterface,
  nodeIdOf,
  float,
  ranged,
  typed,
} from './builder.ts';
import { ClientTypeEnum, ConnectionSnapshot, loadSized } from './connections.ts';
import { loadBy, type Share } from './context.ts';
import {
  DeliveryRecord,
  OutcomeEnum,
  StageEnum,
  commandArguments,
  Delivery,
  DeliveryFilter,
  DeliveryRecordConnection,
} from './delivery.ts';
import { MessageConnection, TerminalErrorType, orderArgument } from './history.ts';
import { pageArguments, pageCost, pageOf, CompletenessType, scannedPageCost } from './page.ts';

/** Returns the members that identify a command in the audit log. */
export function subjectOfCommand({ userId, clientId, commandId }: CommandKey): AuditSubject {
  return { userId, clientId, commandId };
}

export const loadCommand = loadBy(commandKeyText, ({ core, requester }, keys) => core.delivery.many(requester, keys));

const SightingType = builder.objectRef<Sighting>('DedupSighting').implement({
  description: 'How often the server ingested one message. It does not say how often the client executed anything.',
  fields: fieldsOf(() => ({
    messageId: id('The message’s id, `<command>:<kind>:<instance>`.'),
    firstSeenAt: time('When the server first ingested the message.'),
    lastSeenAt: time('When the server last ingested the message.'),
    count: int('How often the server ingested the message.'),
  })),
});

export const CommandType = builder.objectRef<Command>('Command').implement({
  description:
    'Everything the relay can prove about one command, each part with its own times. The parts are read one after the other, so they may differ by what happened between the reads.',
  interfaces: [NodeInterface],
  fields: fieldsOf((t) => ({
    id: t.id({ ...NODE_ID, resolve: (row) => nodeIdOf('Command', row) }),
    userId: id('The id of the user that the target client belongs to.'),
    clientId: id('The id of the target client.'),
    commandId: id('The command’s id.'),
    action: text('The name of the requested action.'),
    delivery: t.field({
      type: DeliveryRecord,
      nullable: true,
      description: 'What is proven about the delivery; null if the record is no longer kept.',
      resolve: (command) => command,
    }),
    history: t.field({
      type: MessageConnection,
      description: 'Retained messages that name this command. Reading this may scan the user’s streams.',
      complexity: pageCost,
      args: { ...orderArgument, ...pageArguments },
      resolve: ({ userId, commandId }, { order, ...page }, { core, requester, reading }) =>
        core.history.ofCommand(requester, userId, commandId, { ...pageOf(page), order, reading }),
    }),
    sightings: list(
      SightingType,
      `How often the relay ingested each end that the client reported, repeated reports included: at most ${SIGHTINGS_PER_COMMAND}.`,
      { complexity: { field: 1, multiplier: SIGHTINGS_PER_COMMAND } },
    ),
    connection: t.field({
      type: ConnectionSnapshot,
      nullable: true,
      description:
        'The target’s connection as it is now; null if there is none. The command may have gone to another one.',
      resolve: (command, _, context) => loadSized(context, command),
    }),
    outcome: nullable.typed(OutcomeEnum, 'How the command ended; null while it is live.'),
    result: t.field({
      type: 'JSON',
      nullable: true,
      description: 'The result that the client reported; null unless `reveal` is true, and if no result is retained.',
      args: {
        reveal: t.arg.boolean({
          required: true,
          defaultValue: false,
          description: 'Whether to show the result. If an administrator requests it, the audit log records that.',
        }),
      },
      resolve: async (command, { reveal }, { core, readPayload }) => {
        if (!reveal) return null;
        await readPayload(subjectOfCommand(command));
        return core.delivery.result(command);
      },
    }),
    resultExpired: flag('Whether the command ended with a result that is no longer retained.'),
    error: nullable.typed(
      TerminalErrorType,
      'The error with which the command ended; null while it is live, and if it ended without an error.',
    ),
  })),
});

builder.queryField('command', (t) =>
  t.field({
    type: CommandType,
    nullable: true,
    description:
      'Everything the relay can prove about one command; null if there is no record or it belongs to another user.',
    args: { ...commandArguments },
    resolve: (_, key, { core, requester }) => core.delivery.command(requester, key),
  }),
);

const CommandUpdateType = builder.objectRef<LiveEvent<CommandUpdate>>('CommandUpdate').implement({
  description: 'The state of a command at one change.',
  fields: fieldsOf((t) => ({
    command: t.field({ type: CommandType, description: 'The command.', resolve: ({ event }) => event.command }),
    stage: t.field({
      type: StageEnum,
      description: 'How far the command came.',
      resolve: ({ event }) => event.command.stage,
    }),
    outcome: t.field({
      type: OutcomeEnum,
      nullable: true,
      description: 'How the command ended; null while it is live.',
      resolve: ({ event }) => event.command.outcome,
    }),
    progress: t.field({
      type: 'JSON',
      nullable: true,
      description:
        'The progress that the client reported; null if the change is not a progress report. If an administrator reads it, the audit log has one row for the subscription.',
      resolve: ({ event }, _, { payloadReads }) => {
        const subject = subjectOfCommand(event.command);
        if (event.progress === null || !payloadReads.mayRead(subject)) return null;
        return thenDo(payloadReads.read(subject), () => event.progress);
      },
    }),
    isProgress: t.boolean({
      description: 'Whether the change is a report of progress. It shows nothing of the report.',
      resolve: ({ event }) => event.progress !== null,
    }),
    progressNumber: t.int({
      nullable: true,
      description:
        'How many reports of progress the client had made by then, this one and those that it did not send included; null without `progress`, and if the client does not number its reports.',
      resolve: ({ event }) => event.number,
    }),
    at: t.field({ type: 'DateTime', description: 'When the command changed.', resolve: ({ event }) => event.at }),
    missed: int(
      'At least how many updates were lost since the previous one: those that the subscriber read too slowly, reports of progress that did not arrive, and one for each interruption between the relay and other relays.',
    ),
  })),
});

builder.subscriptionField('commandUpdates', (t) =>
  t.field({
    type: CommandUpdateType,
    description:
      'Updates of one command. The first update is its current state; the subscription ends after the update that ends the command.',
    args: {
      ...commandArguments,
      admittedWithinMs: t.arg.int({
        extensions: { minimum: ADMITTED_WITHIN_MS.min, maximum: ADMITTED_WITHIN_MS.max },
        description: `How long the command may not exist yet, 0 to ${ADMITTED_WITHIN_MS.max}; default 0. So a caller can subscribe before it invokes, and misses no progress. After this time the subscription fails with \`not_found\`. The wait counts in the share \`waits\`.`,
      }),
      revealReason: t.arg.string({
        description: `Why an administrator reads \`progress\`, ${REVEAL_REASON_MIN} to ${MAX_REASON} characters. The audit row of the subscription then has it, and progress is also shown with REVEAL=mutation.`,
      }),
    },
    subscribe: async (_, { admittedWithinMs, revealReason, ...key }, { core, requester, payloadReads }) => {
      const updates = (await core.delivery.updates(requester, key, admittedWithinMs)) ?? notFound();
      try {
        if (revealReason != null) await payloadReads.readFor(revealReason, subjectOfCommand(key));
        return updates;
      } catch (error) {
        await updates.return();
        throw error;
      }
    },
    resolve: fresh,
  }),
);

// The GraphQL subscription to what happens to commands.

const CommandEventStageEnum = wireEnum<CommandEventStage>('CommandEventStage', 'What happened to a command.', {
  admitted: 'The relay admitted the command.',
  dispatched: 'The node began to write the command to the client’s socket.',
  acknowledged: 'The client confirmed that it received the command.',
  ended: 'The command ended; `record.outcome` says how.',
  late: 'An end was reported after the command had ended, or by an instance that the command was not written to.',
});

const CommandEventType = builder.objectRef<LiveEvent<CommandEvent>>('CommandEvent').implement({
  description: 'One thing that happened to a command, with its delivery record afterwards. It holds no payload.',
  extensions: { shareable: true },
  fields: (t) => ({
    stage: t.field({
      type: CommandEventStageEnum,
      description: 'What happened.',
      resolve: ({ event }) => event.stage,
    }),
    record: t.field({
      type: DeliveryRecord,
      description: 'What was proven about the delivery after the event.',
      resolve: ({ event }) => event.command,
    }),
    at: t.field({ type: 'DateTime', description: 'When the node noticed it.', resolve: ({ event }) => event.at }),
    missed: t.int({
      description: `At least how many matching events were left out since the previous one: those beyond ${COMMAND_EVENTS_PER_SECOND} a second, those that the subscriber read too slowly, and one for each interruption between the relay and other relays.`,
      resolve: ({ event, missed }) => event.missed + missed,
    }),
  }),
});

const CommandEventFilter = builder.inputType('CommandEventFilter', {
  description: 'Which events to send. An event must match every member that is given.',
  fields: (t) => ({
    userId: t.id({
      description: 'Only commands for clients of this user. Omitted: a user gets its own, an administrator gets all.',
    }),
    clientId: t.id({ description: 'Only commands for this client.' }),
    action: t.string({ description: 'Only commands that invoke this action.' }),
    clientType: t.field({
      type: ClientTypeEnum,
      description: 'Only commands whose client was a program of this kind at admission.',
    }),
    outcomes: t.field({
      type: [OutcomeEnum],
      description: 'Only ENDED and LATE, of commands that ended in one of these ways.',
    }),
  }),
});

type EventsArgs = { readonly filter?: CommandEventQuery | null };

const shareEvents: Share<EventsArgs> = ({ filter }, { core, requester }) =>
  core.delivery.events(requester, filter ?? {});

builder.subscriptionField('commandEvents', (t) =>
  t.field({
    type: CommandEventType,
    description: `What happens to commands from now on, over all nodes: one event for each stage, at most ${COMMAND_EVENTS_PER_SECOND} a second; \`missed\` counts the rest. A user sees the commands for its own clients. Each different filter counts in its requester’s share \`feeds\`.`,
    args: { filter: t.arg({ type: CommandEventFilter, description: 'Which events to send. Omitted: all.' }) },
    extensions: { share: shareEvents },
    subscribe: (_, { filter }, { core, requester }) => subscribeTo(core.delivery.events(requester, filter ?? {})),
    resolve: fresh,
  }),
);

builder.queryField('findCommands', (t) =>
  t.field({
    type: DeliveryRecordConnection,
    description: `Commands with a record that have this id, whose id ends with this text of at least 8 characters, or that have this trace id. An administrator finds those of all users, a user those for its own clients. A page reads at most ${SCAN_BUDGET} commands, so a page before the last one may be empty.`,
    complexity: (page) => scannedPageCost(page, SCAN_BUDGET),
    args: {
      idOrTrace: t.arg.id({
        required: true,
        description: `An id of a command, the end of one, or a trace id: 1 to ${TRACE_MAX_CHARS} characters.`,
      }),
      ...pageArguments,
    },
    resolve: (_, { idOrTrace, ...page }, { core, requester, reading }) =>
      core.lookup.find(requester, idOrTrace, { ...pageOf(page), reading }),
  }),
);

// Failures in groups.

const FailureKeyEnum = wireEnum<FailureKey>('FailureKey', 'What failures are grouped by.', {
  action: 'The action.',
  code: 'The code of the error that they ended with.',
  client: 'The target client, with its user.',
  node: 'The node of the target’s link.',
});

const FailureGroupType = builder.objectRef<FailureGroup>('FailureGroup').implement({
  description: 'Failed commands that have the same values for all keys of the grouping.',
  fields: fieldsOf((t) => ({
    action: nullable.text('Their action; null unless the failures are grouped by action.'),
    code: nullable.text(
      'The code of their errors; null unless the failures are grouped by code, and if they ended without an error.',
    ),
    userId: t.id({
      nullable: true,
      description: 'The user of their client; null unless the failures are grouped by client.',
      resolve: ({ client }) => client?.userId ?? null,
    }),
    clientId: t.id({
      nullable: true,
      description: 'Their client; null unless the failures are grouped by client.',
      resolve: ({ client }) => client?.clientId ?? null,
    }),
    nodeId: nullable.id(
      'The node of their target’s link; null unless the failures are grouped by node, and if the target was on none.',
    ),
    count: int('The number of failures in the group.'),
    share: float('The fraction of all failures that were counted, above 0 and at most 1.'),
    last: typed(DeliveryRecord, 'The failure that was admitted last.'),
  })),
});

const OutcomeCountType = builder.objectRef<OutcomeCount>('OutcomeCount').implement({
  description: 'How many commands ended in one way.',
  fields: fieldsOf(() => ({
    outcome: typed(OutcomeEnum, 'How they ended.'),
    count: int('Their number.'),
  })),
});

const FailuresType = builder.objectRef<Failures>('Failures').implement({
  description: 'Failed commands in groups, the largest groups first.',
  fields: fieldsOf(() => ({
    groups: list(FailureGroupType, 'The largest groups.', { complexity: { field: 1, multiplier: 1 } }),
    groupCount: int('The number of all groups.'),
    count: int('The number of failures that were counted.'),
    outcomes: list(OutcomeCountType, 'The failures by their outcome, without outcomes that none of them has.', {
      complexity: { field: 1, multiplier: 5 },
    }),
    completeness: typed(
      CompletenessType,
      `Whether anything is missing, from which source, and why. The newest ${SCAN_BUDGET} commands are read; with the reason LIMIT_REACHED there are older ones, which are not counted.`,
    ),
  })),
});

builder.objectField(Delivery, 'failures', (t) =>
  t.field({
    type: FailuresType,
    description:
      'Commands that failed, in groups. Without an outcome in the filter, failures are the outcomes FAILED, EXPIRED and OUTCOME_UNKNOWN.',
    complexity: ({ first }) => scannedPageCost({ first }, SCAN_BUDGET),
    args: {
      filter: t.arg({ type: DeliveryFilter, description: 'Which commands to count. Omitted: all.' }),
      by: t.arg({
        type: [FailureKeyEnum],
        required: true,
        defaultValue: ['action', 'code'],
        description:
          'What the failures are grouped by: at least one key. Failures of a group have the same values for all of them.',
      }),
      first: t.arg.int({
        ...ranged(SHOWN_FAILURES),
        description: `The most groups to return: ${SHOWN_FAILURES.min} to ${SHOWN_FAILURES.max}.`,
      }),
    },
    resolve: (requester, { filter, by, first }, { core, reading }) =>
      core.lookup.failures(requester, filter ?? {}, { by, first, reading }),
  }),
);
