/** Defines the subscriptions to the updates of one command and to the events of many commands. */
import type { CommandEvent, CommandEventStage } from '../../core/commands/command-event.ts';
import type { CommandEventQuery } from '../../core/commands/event-access.ts';
import type { CommandUpdate } from '../../core/core.ts';
import { notFound } from '../../core/errors.ts';
import { ADMITTED_WITHIN_MS, COMMAND_EVENTS_PER_SECOND, MAX_REASON, REVEAL_REASON_MIN } from '../../core/limits.ts';
import { subscribeTo, type LiveEvent } from '../../core/live.ts';
import { thenDo } from '../../core/maybe-promise.ts';
import { builder, wireEnum } from './builder.ts';
import { CommandType, subjectOfCommand } from './commands.ts';
import { ClientTypeEnum } from './connections.ts';
import { DeliveryRecord, OutcomeEnum, StageEnum, commandArguments } from './delivery.ts';
import { fieldsOf, int } from './fields.ts';
import { fresh, type Share } from './subscription-fields.ts';

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

// The subscription to events of many commands, and its types.

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
