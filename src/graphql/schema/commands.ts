/**
 * Defines the GraphQL type of a command, with everything that is known about it, and the queries that find commands.
 */
import type { AuditSubject } from '../../core/audit/audit-rows.ts';
import type { Command, Sighting } from '../../core/commands/command.ts';
import { commandKeyText, type CommandKey } from '../../core/ids.ts';
import { SIGHTINGS_PER_COMMAND, TRACE_MAX_CHARS } from '../../core/limits.ts';
import { SCAN_BUDGET } from '../../core/page.ts';
import { builder } from './builder.ts';
import { ConnectionSnapshot, loadSized } from './connections.ts';
import { DeliveryRecord, OutcomeEnum, commandArguments, DeliveryRecordConnection } from './delivery.ts';
import { fieldsOf, flag, id, int, list, nullable, text, time } from './fields.ts';
import { MessageConnection, TerminalErrorType, orderArgument } from './history.ts';
import { loadBy } from './loaders.ts';
import { nodeIdOf } from './node-ids.ts';
import { NODE_ID, NodeInterface } from './node-interface.ts';
import { pageArguments, pageCost, pageOf, scannedPageCost } from './page.ts';

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
