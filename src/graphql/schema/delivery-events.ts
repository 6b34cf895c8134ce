/** The GraphQL subscription to what happens to commands. */
import type { CommandEvent, CommandEventStage } from '../../core/delivery/command-event.ts';
import type { CommandEventQuery } from '../../core/delivery/command-events-listen.ts';
import { COMMAND_EVENTS_PER_SECOND } from '../../core/limits.ts';
import { subscribeTo, type LiveEvent } from '../../core/live.ts';
import { builder } from './builder.ts';
import { ClientTypeEnum } from './connections.ts';
import type { Context } from './context.ts';
import { DeliveryRecord, OutcomeEnum } from './delivery.ts';
import { wireEnum } from './enums.ts';
import type { Share } from './live-share.ts';
import { fresh } from './live.ts';

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

const shareEvents: Share<EventsArgs, Context> = ({ filter }, { core, requester }) =>
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
