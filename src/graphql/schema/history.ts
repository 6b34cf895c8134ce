/** Defines the schema of streams and messages: the types, the listings, and the redaction of payloads. */
import { programOf } from '../../core/auth/caller-label.ts';
import { notFound } from '../../core/errors.ts';
import {
  MESSAGE_KINDS,
  streamKey,
  type Message,
  type MessageKind,
  type MessageOrder,
  type PayloadState,
  type StreamSummary,
  type TerminalError,
} from '../../core/history/message.ts';
import { thenDo, type MaybePromise } from '../../core/maybe-promise.ts';
import { SCAN_BUDGET } from '../../core/page.ts';
import type { RowSize } from './answer-budget.ts';
import { builder, wireEnum } from './builder.ts';
import { fieldsOf, id, int, nullable, text, time, typed } from './fields.ts';
import { LinkDetailsType } from './history-links.ts';
import { loadPayload } from './history-payloads.ts';
import { nodeIdOf } from './node-ids.ts';
import { NODE_ID, NodeInterface } from './node-interface.ts';
import { connectionOf, pageArguments, pageCost, pageOf, scannedBy, scannedPageCost } from './page.ts';

const MessageKindEnum = wireEnum<MessageKind>('MessageKind', 'What a retained message records.', {
  command: 'A command was admitted.',
  progress: 'A client reported progress. At most one such row per second is kept for a command.',
  result: 'A client reported a result.',
  error: 'A command ended without a result.',
  cancel: 'A cancellation was requested.',
  event: 'An event was ingested.',
  late_result:
    'An end was reported after the command had ended, or by another instance than the command’s own. It is evidence and resolves nothing.',
  link_opened: 'A client link opened. Only in the stream `<user>/links`.',
  link_closed:
    'A client link ended, and no newer link of the client had taken over. Only in the stream `<user>/links`.',
  link_replaced:
    'A newer link of the same client took over from a link that was up. Only in the stream `<user>/links`.',
  relay_away:
    'The relay had been away, and started on its data directory. Its message id names the time of the last record before. `error` says how the relay had ended; null: it was stopped in order. Only in the stream `<user>/links` of users whose clients were connected in the last minute before.',
});

const MessageOrderEnum = wireEnum<MessageOrder>('MessageOrder', 'The order in which messages are listed.', {
  oldest_first: 'Oldest first: the order in which messages were retained.',
  newest_first: 'Newest first. Messages that are retained after the first page was read appear on no later page.',
});

const PayloadStateEnum = wireEnum<PayloadState>('PayloadState', 'What `payload` shows, or why it shows nothing.', {
  redacted:
    'There is a payload, but it was not requested, or the answer already holds 16 MiB of payloads from the store for large payloads: request fewer messages.',
  included: 'The payload is shown.',
  spilled_included: 'The payload is shown; it was read from the store for large payloads.',
  expired: 'The payload was in the store for large payloads and has expired.',
  unavailable:
    'The payload belongs in the store for large payloads and cannot be read: it could not be stored, or it was lost or damaged. Only its size and digest are known.',
  none: 'There is no payload.',
});

export const TerminalErrorType = builder.objectRef<TerminalError>('TerminalError').implement({
  description: 'A bounded error. Details, stacks and exception objects are never kept.',
  fields: fieldsOf(() => ({
    code: text('An error code of at most 64 characters.'),
    message: text('An error message of at most 256 characters.'),
  })),
});

const Stream = builder.objectRef<StreamSummary>('Stream').implement({
  description:
    'One stream of a user’s retained messages. Counts and times are null if the backend cannot tell them cheaply.',
  interfaces: [NodeInterface],
  fields: fieldsOf((t) => ({
    id: t.id({ ...NODE_ID, resolve: (row) => nodeIdOf('Stream', row) }),
    key: t.string({
      description: 'The stream’s full key, `<user>/<suffix>`.',
      resolve: ({ userId, suffix }) => streamKey(userId, suffix),
    }),
    userId: id('The id of the user that the stream belongs to.'),
    suffix: text('The part of the key after the user.'),
    messageCount: nullable.int('How many messages are retained now; null if the backend cannot tell cheaply.'),
    firstAt: nullable.time('When the oldest retained message was retained; null if the backend cannot tell cheaply.'),
    lastAt: nullable.time('When the newest retained message was retained; null if the backend cannot tell cheaply.'),
  })),
});

export const StreamConnection = connectionOf('Stream', Stream, { rows: 'streams' });

const includeArgument = builder.args((t) => ({
  include: t.boolean({
    required: true,
    defaultValue: false,
    description: 'Whether to show the payload. If an administrator requests it, the audit log records that.',
  }),
}));

/** The cost of the details of a link. Their members add none, because the whole row is read anyway. */
const LINK_COST = { field: 1, multiplier: 0 };

const MessageType = builder.objectRef<Message>('Message').implement({
  description: 'A summary of a retained message. Its payload is redacted unless it is requested.',
  interfaces: [NodeInterface],
  fields: fieldsOf((t) => ({
    id: t.id({ ...NODE_ID, resolve: (row) => nodeIdOf('Message', row) }),
    messageId: t.exposeID('id', { description: 'The message’s id.' }),
    stream: t.string({
      description: 'The full key of the message’s stream, `<user>/<suffix>`.',
      resolve: ({ userId, suffix }) => streamKey(userId, suffix),
    }),
    kind: typed(MessageKindEnum, 'What the message records.'),
    at: time('When the message was retained.'),
    clientId: nullable.id('The id of the client that the message concerns; null if there is none.'),
    instanceId: nullable.id('The id of the client instance that reported the message; null if no instance did.'),
    commandId: nullable.id('The id of the command that the message concerns; null if there is none.'),
    traceId: nullable.text('The trace id that the caller or sender gave; null if none was given.'),
    parentSpanId: nullable.text('The parent span id that the caller or sender gave; null if none was given.'),
    contextId: t.id({
      nullable: true,
      description: 'The id of the client’s context that the call of the command named; null if it named none.',
      resolve: ({ contextId }) => contextId ?? null,
    }),
    program: t.string({
      nullable: true,
      description:
        'The program of the agent that made the call, in messages of the kind `COMMAND`; null for other callers.',
      resolve: ({ callerLabel }) => programOf(callerLabel),
    }),
    payload: t.field({
      type: 'JSON',
      nullable: true,
      description: 'The payload as it was sent; null unless `payloadState` says that it is included.',
      args: includeArgument,
      resolve: (message, { include }, context) => {
        if (!include || !hasPayload(message) || !context.core.reveals.shows(context.requester)) return null;
        const { userId, suffix } = message;
        return thenDo(context.readPayload({ userId, stream: streamKey(userId, suffix) }), () =>
          thenDo(loadPayload(context, message), ({ text }) => text),
        );
      },
    }),
    payloadState: t.field({
      type: PayloadStateEnum,
      description: 'What `payload` shows when it is requested with the same `include`.',
      args: includeArgument,
      resolve: (message, { include }, context): MaybePromise<PayloadState> => {
        if (!hasPayload(message)) return 'none';
        return include && context.core.reveals.shows(context.requester)
          ? thenDo(loadPayload(context, message), ({ state }) => state)
          : 'redacted';
      },
    }),
    payloadBytes: int('Length of the payload’s JSON text in bytes; 0 if there is no payload.'),
    payloadSha256: t.string({
      nullable: true,
      description:
        'SHA-256 of the payload’s JSON text as base64url; null unless the payload belongs in the store for large payloads.',
      resolve: ({ spill }) => spill?.sha256 ?? null,
    }),
    error: nullable.typed(TerminalErrorType, 'The error that the message reports; null if it reports none.'),
    link: nullable.typed(
      LinkDetailsType,
      'The link that opened or ended; null unless the message is a row of a link history.',
      { complexity: LINK_COST },
    ),
  })),
});

/** The order argument of every field that lists messages. */
export const orderArgument = builder.args((t) => ({
  order: t.field({
    type: MessageOrderEnum,
    required: true,
    defaultValue: 'oldest_first',
    description: 'The order of the list. A cursor is valid only for the order in which it was issued.',
  }),
}));

function hasPayload({ payload, spill }: Message): boolean {
  return payload !== null || spill !== null;
}

/**
 * The size of a message in an answer. Only inline payloads are counted. Payloads from the spill store have a limit of
 * their own (ANSWER_SPILL_BYTES) and are redacted beyond it.
 */
export const MESSAGE_SIZE: RowSize<Message> = {
  fields: ['payload'],
  bytes: ({ payload }, asks) => (asks('payload') ? (payload?.length ?? 0) : 0),
};

export const MessageConnection = connectionOf('Message', MessageType, { rows: 'messages', size: MESSAGE_SIZE });

builder.queryFields((t) => ({
  streams: t.field({
    type: StreamConnection,
    description: 'The streams of one user, in order of suffix.',
    complexity: pageCost,
    args: {
      userId: t.arg.id({ required: true, description: 'The user’s id.' }),
      prefix: t.arg.string({ description: 'Only streams whose suffix begins with this text.' }),
      ...pageArguments,
    },
    resolve: (_, { userId, prefix, ...page }, { core, requester }) =>
      core.history.streams(requester, userId, prefix ?? null, pageOf(page)),
  }),
  messages: t.field({
    type: MessageConnection,
    description:
      'The retained messages of one stream. Answers `not_found` if there is no such stream or it belongs to another user.',
    complexity: ({ first, afterTime, beforeTime, kinds }) =>
      scannedPageCost({ first }, scannedBy({ afterTime, beforeTime, kinds })),
    args: {
      stream: t.arg.string({ required: true, description: 'The stream’s full key, `<user>/<suffix>`.' }),
      afterTime: t.arg({ type: 'DateTime', description: 'Only messages retained after this time, exclusive.' }),
      beforeTime: t.arg({ type: 'DateTime', description: 'Only messages retained before this time, exclusive.' }),
      kinds: t.arg({
        type: [MessageKindEnum],
        description: `Only messages of these kinds. Omitted: all ${MESSAGE_KINDS.length} kinds.`,
      }),
      ...orderArgument,
      ...pageArguments,
    },
    resolve: async (_, { stream, afterTime, beforeTime, kinds, order, ...page }, { core, requester, reading }) => {
      const query = { stream, afterTime, beforeTime, kinds };
      return (await core.history.messages(requester, query, { ...pageOf(page), order, reading })) ?? notFound();
    },
  }),
  commandHistory: t.field({
    type: MessageConnection,
    description:
      'Retained messages that name this command, for any client of the user. Reading this may scan the user’s streams. Messages that are no longer retained are not shown.',
    complexity: (page) => scannedPageCost(page, SCAN_BUDGET),
    args: {
      userId: t.arg.id({ required: true, description: 'The user’s id.' }),
      commandId: t.arg.id({ required: true, description: 'The command’s id.' }),
      ...orderArgument,
      ...pageArguments,
    },
    resolve: (_, { userId, commandId, order, ...page }, { core, requester, reading }) =>
      core.history.ofCommand(requester, userId, commandId, { ...pageOf(page), order, reading }),
  }),
}));
