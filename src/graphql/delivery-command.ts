import type { CommandUpdate } from '../core/core.ts';
import type { Command, Sighting } from '../core/delivery/command.ts';
import { notFound } from '../core/errors.ts';
import { fromJson } from '../core/json.ts';
import { SIGHTINGS_PER_COMMAND } from '../core/limits.ts';
import type { Live } from '../core/live.ts';
import { builder } from './builder.ts';
import { ConnectionSnapshot } from './connections.ts';
import { DeliveryRecord, OutcomeEnum, StageEnum } from './delivery.ts';
import { MessageConnection, orderArgument, TerminalErrorType } from './history.ts';
import { fresh } from './live.ts';
import { pageArguments, pageCost, pageOf } from './page.ts';

/** The arguments that name one command. */
export const commandArguments = builder.args((t) => ({
  userId: t.id({ required: true, description: 'The user of the target.' }),
  clientId: t.id({ required: true, description: 'The target.' }),
  commandId: t.id({ required: true, description: 'The command.' }),
}));

/** What the audit log names a command by. */
export function subjectOfCommand({ userId, clientId, commandId }: Command): Record<string, string> {
  return { userId, clientId, commandId };
}

const SightingType = builder.objectRef<Sighting>('DedupSighting').implement({
  description: 'How often the server ingested one message. It does not say how often the client executed anything.',
  fields: (t) => ({
    messageId: t.exposeID('messageId', { description: 'The message, `<command>:<kind>:<instance>`.' }),
    firstSeenAt: t.expose('firstSeenAt', { type: 'DateTime', description: 'When it was first ingested.' }),
    lastSeenAt: t.expose('lastSeenAt', { type: 'DateTime', description: 'When it was last ingested.' }),
    count: t.exposeInt('count', { description: 'How often it was ingested.' }),
  }),
});

export const CommandType = builder.objectRef<Command>('Command').implement({
  description:
    'The case file of one command: what each part of callboard can prove about it, each with its own time. The parts are read one after the other and may differ by what happened in between.',
  fields: (t) => ({
    userId: t.exposeID('userId', { description: 'The user of the target.' }),
    clientId: t.exposeID('clientId', { description: 'The target.' }),
    commandId: t.exposeID('commandId', { description: 'The command.' }),
    action: t.exposeString('action', { description: 'The action asked for.' }),
    delivery: t.field({
      type: DeliveryRecord,
      nullable: true,
      description: 'What is proven about its delivery; null when no record is left.',
      resolve: (command) => command,
    }),
    history: t.field({
      type: MessageConnection,
      description: 'Retained messages that name this command. It may scan the user’s streams.',
      complexity: pageCost,
      args: { ...orderArgument, ...pageArguments },
      resolve: ({ userId, commandId }, { order, ...page }, { core, who }) =>
        core.history.ofCommand(who, userId, commandId, { ...pageOf(page), order }),
    }),
    sightings: t.expose('sightings', {
      type: [SightingType],
      complexity: { field: 1, multiplier: SIGHTINGS_PER_COMMAND },
      description: `What ingestion saw of the ends that the client reported, a re-sent one included: at most ${SIGHTINGS_PER_COMMAND}.`,
    }),
    connection: t.field({
      type: ConnectionSnapshot,
      nullable: true,
      description: 'The target’s connection as it is now, which need not be the one that the command went to.',
      resolve: (command, _, { loaders }) => loaders.connection(command),
    }),
    outcome: t.expose('outcome', {
      type: OutcomeEnum,
      nullable: true,
      description: 'How it ended; null while it is live.',
    }),
    result: t.field({
      type: 'JSON',
      nullable: true,
      description: 'The result that the client reported; null unless revealed, and where there is none.',
      args: {
        reveal: t.arg.boolean({
          required: true,
          defaultValue: false,
          description: 'Whether to show it. An administrator’s asking is written to the audit log.',
        }),
      },
      resolve: async (command, { reveal }, { core, auditPayload }) => {
        if (!reveal) return null;
        auditPayload(subjectOfCommand(command));
        return fromJson(await core.delivery.result(command));
      },
    }),
    resultExpired: t.exposeBoolean('resultExpired', {
      description: 'Whether it ended with a result that is no longer retained.',
    }),
    error: t.expose('error', {
      type: TerminalErrorType,
      nullable: true,
      description: 'Why it failed or was not completed.',
    }),
  }),
});

builder.queryField('command', (t) =>
  t.field({
    type: CommandType,
    nullable: true,
    description: 'The case file of one command; null when there is no record, or it is another user’s.',
    args: { ...commandArguments },
    resolve: (_, key, { core, who }) => core.delivery.command(who, key),
  }),
);

const CommandUpdateType = builder.objectRef<Live<CommandUpdate>>('CommandUpdate').implement({
  description: 'How a command stood when it moved.',
  fields: (t) => ({
    command: t.field({ type: CommandType, description: 'The case file.', resolve: ({ event }) => event.command }),
    stage: t.field({
      type: StageEnum,
      description: 'How far it has come.',
      resolve: ({ event }) => event.command.stage,
    }),
    outcome: t.field({
      type: OutcomeEnum,
      nullable: true,
      description: 'How it ended; null while it is live.',
      resolve: ({ event }) => event.command.outcome,
    }),
    progress: t.field({
      type: 'JSON',
      nullable: true,
      description:
        'The progress that the client reported, where that is what moved. An administrator’s reading is written to the audit log.',
      resolve: ({ event }, _, { auditPayload }) => {
        if (event.progress !== null) auditPayload(subjectOfCommand(event.command));
        return fromJson(event.progress);
      },
    }),
    at: t.field({ type: 'DateTime', description: 'When it moved.', resolve: ({ event }) => event.at }),
    missed: t.exposeInt('missed', {
      description: 'Updates dropped since the one before, because they were not taken in time.',
    }),
  }),
});

builder.subscriptionField('commandUpdates', (t) =>
  t.field({
    type: CommandUpdateType,
    description: 'One command’s way: begins with how it stands now, and ends after the update that ends it.',
    args: { ...commandArguments },
    subscribe: async (_, key, { core, who }) => (await core.delivery.updates(who, key)) ?? notFound(),
    resolve: fresh,
  }),
);
