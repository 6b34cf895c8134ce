/** Streams and messages: the types, the listings and the redaction of payloads. */
import { notFound } from '../../core/errors.ts';
import {
  MESSAGE_KINDS,
  streamKey,
  type Message,
  type PayloadState,
  type TerminalError,
} from '../../core/history/message.ts';
import type { StreamSummary } from '../../core/history/store.ts';
import { thenDo, type MaybePromise } from '../../core/maybe-promise.ts';
import { SCAN_BUDGET } from '../../core/page.ts';
import { builder } from './builder.ts';
import { MessageKindEnum, MessageOrderEnum, PayloadStateEnum } from './history-enums.ts';
import { LinkDetailsType } from './history-links.ts';
import { nodeIdOf } from './node-ids.ts';
import { NODE_ID, NodeInterface } from './node-interface.ts';
import { connectionOf, pageArguments, pageCost, pageOf, scannedBy, scannedPageCost } from './page.ts';
import type { RowSize } from './page-budget.ts';

export const TerminalErrorType = builder.objectRef<TerminalError>('TerminalError').implement({
  description: 'A bounded error. Details, stacks and exception objects are never kept.',
  fields: (t) => ({
    code: t.exposeString('code', { description: 'An error code of at most 64 characters.' }),
    message: t.exposeString('message', { description: 'An error message of at most 256 characters.' }),
  }),
});

const Stream = builder.objectRef<StreamSummary>('Stream').implement({
  description:
    'One stream of a user’s retained messages. Counts and times are null if the backend cannot tell them cheaply.',
  interfaces: [NodeInterface],
  fields: (t) => ({
    id: t.id({ ...NODE_ID, resolve: (row) => nodeIdOf('Stream', row) }),
    key: t.string({
      description: 'The stream’s full key, `<user>/<suffix>`.',
      resolve: ({ userId, suffix }) => streamKey(userId, suffix),
    }),
    userId: t.exposeID('userId', { description: 'The id of the user that the stream belongs to.' }),
    suffix: t.exposeString('suffix', { description: 'The part of the key after the user.' }),
    messageCount: t.exposeInt('messageCount', {
      nullable: true,
      description: 'How many messages are retained now; null if the backend cannot tell cheaply.',
    }),
    firstAt: t.expose('firstAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When the oldest retained message was retained; null if the backend cannot tell cheaply.',
    }),
    lastAt: t.expose('lastAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When the newest retained message was retained; null if the backend cannot tell cheaply.',
    }),
  }),
});

export const StreamConnection = connectionOf('Stream', Stream, { rows: 'streams' });

const includeArgument = builder.args((t) => ({
  include: t.boolean({
    required: true,
    defaultValue: false,
    description: 'Whether to show the payload. If an administrator requests it, the audit log records that.',
  }),
}));

/** The cost of the details of a link. Their members add no cost, because the whole row is read anyway. */
const LINK_COST = { field: 1, multiplier: 0 };

const MessageType = builder.objectRef<Message>('Message').implement({
  description: 'A summary of a retained message. Its payload is redacted unless it is requested.',
  interfaces: [NodeInterface],
  fields: (t) => ({
    id: t.id({ ...NODE_ID, resolve: (row) => nodeIdOf('Message', row) }),
    messageId: t.exposeID('id', { description: 'The message’s id.' }),
    stream: t.string({
      description: 'The full key of the message’s stream, `<user>/<suffix>`.',
      resolve: ({ userId, suffix }) => streamKey(userId, suffix),
    }),
    kind: t.expose('kind', { type: MessageKindEnum, description: 'What the message records.' }),
    at: t.expose('at', { type: 'DateTime', description: 'When the message was retained.' }),
    clientId: t.exposeID('clientId', {
      nullable: true,
      description: 'The id of the client that the message concerns; null if there is none.',
    }),
    instanceId: t.exposeID('instanceId', {
      nullable: true,
      description: 'The id of the client instance that reported the message; null if no instance did.',
    }),
    commandId: t.exposeID('commandId', {
      nullable: true,
      description: 'The id of the command that the message concerns; null if there is none.',
    }),
    traceId: t.exposeString('traceId', {
      nullable: true,
      description: 'The trace id that the caller or sender gave; null if none was given.',
    }),
    parentSpanId: t.exposeString('parentSpanId', {
      nullable: true,
      description: 'The parent span id that the caller or sender gave; null if none was given.',
    }),
    payload: t.field({
      type: 'JSON',
      nullable: true,
      description: 'The payload as it was sent; null unless `payloadState` says that it is included.',
      args: includeArgument,
      resolve: (message, { include }, { core, requester, readPayload, loaders }) => {
        if (!include || !hasPayload(message) || !core.reveals.shows(requester)) return null;
        const { userId, suffix } = message;
        return thenDo(readPayload({ userId, stream: streamKey(userId, suffix) }), () =>
          thenDo(loaders.payload(message), ({ text }) => text),
        );
      },
    }),
    payloadState: t.field({
      type: PayloadStateEnum,
      description: 'What `payload` shows when it is requested with the same `include`.',
      args: includeArgument,
      resolve: (message, { include }, { core, requester, loaders }): MaybePromise<PayloadState> => {
        if (!hasPayload(message)) return 'none';
        return include && core.reveals.shows(requester)
          ? thenDo(loaders.payload(message), ({ state }) => state)
          : 'redacted';
      },
    }),
    payloadBytes: t.exposeInt('payloadBytes', {
      description: 'Length of the payload’s JSON text in bytes; 0 if there is no payload.',
    }),
    payloadSha256: t.string({
      nullable: true,
      description:
        'SHA-256 of the payload’s JSON text as base64url; null unless the payload belongs in the store for large payloads.',
      resolve: ({ spill }) => spill?.sha256 ?? null,
    }),
    error: t.expose('error', {
      type: TerminalErrorType,
      nullable: true,
      description: 'The error that the message reports; null if it reports none.',
    }),
    link: t.field({
      complexity: LINK_COST,
      type: LinkDetailsType,
      nullable: true,
      description: 'The link that opened or ended; null unless the message is a row of a link history.',
      resolve: ({ link }) => link ?? null,
    }),
  }),
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
 * The size of a message in an answer. Counts inline payloads only. Payloads from the spill store have a bound of their
 * own (ANSWER_SPILL_BYTES) and are redacted beyond it.
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
    resolve: async (_, { stream, afterTime, beforeTime, kinds, order, ...page }, { core, requester }) => {
      const query = { stream, afterTime, beforeTime, kinds };
      return (await core.history.messages(requester, query, { ...pageOf(page), order })) ?? notFound();
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
    resolve: (_, { userId, commandId, order, ...page }, { core, requester }) =>
      core.history.ofCommand(requester, userId, commandId, { ...pageOf(page), order }),
  }),
}));
