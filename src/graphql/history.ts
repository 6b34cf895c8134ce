import { notFound } from '../core/errors.ts';
import {
  MESSAGE_KINDS,
  streamKey,
  type Message,
  type MessageKind,
  type PayloadState,
  type TerminalError,
} from '../core/history/message.ts';
import type { MessageOrder, StreamSummary } from '../core/history/store.ts';
import { fromJson } from '../core/json.ts';
import { andThen, type Maybe } from '../core/maybe.ts';
import { builder } from './builder.ts';
import { wireEnum } from './enums.ts';
import { connectionOf, pageArguments, pageCost, pageOf } from './page.ts';

const MessageKindEnum = wireEnum<MessageKind>('MessageKind', 'What a retained message says.', {
  command: 'A command was admitted.',
  progress: 'A client reported progress; at most one row a second is kept per command.',
  result: 'A client reported a result.',
  error: 'A command ended without a result.',
  cancel: 'A cancellation was asked for.',
  event: 'An event was ingested.',
  late_result:
    'An end was reported after the command had ended, or by another instance: evidence that resolves nothing.',
});

const MessageOrderEnum = wireEnum<MessageOrder>('MessageOrder', 'In which order messages are listed.', {
  oldest_first: 'In the order retained.',
  newest_first: 'The newest first. What is retained after the first page was read is on none of the next pages.',
});

const PayloadStateEnum = wireEnum<PayloadState>('PayloadState', 'What `payload` shows, and why not more.', {
  redacted:
    'There is a payload; it was not asked for, or the answer holds 16 MiB of payloads that are kept apart: ask for fewer messages.',
  included: 'It is shown.',
  spilled_included: 'It is shown, out of the store for large payloads.',
  expired: 'It was kept apart and its time is over.',
  unavailable:
    'It was to be kept apart and cannot be read: it could not be stored, or was lost or damaged. Its size and digest are what is left.',
  none: 'There is no payload.',
});

export const TerminalErrorType = builder.objectRef<TerminalError>('TerminalError').implement({
  description: 'A bounded diagnosis. Details, stacks and exception objects are never kept.',
  fields: (t) => ({
    code: t.exposeString('code', { description: 'A code of at most 64 characters.' }),
    message: t.exposeString('message', { description: 'A text of at most 256 characters.' }),
  }),
});

const Stream = builder.objectRef<StreamSummary>('Stream').implement({
  description: 'One stream of a user’s retained messages. Null means that this backend cannot tell cheaply.',
  fields: (t) => ({
    key: t.string({
      description: 'The full key, `<user>/<suffix>`.',
      resolve: ({ userId, suffix }) => streamKey(userId, suffix),
    }),
    userId: t.exposeID('userId', { description: 'The user that it belongs to.' }),
    suffix: t.exposeString('suffix', { description: 'What follows the user in the key.' }),
    messageCount: t.exposeInt('messageCount', { nullable: true, description: 'Messages retained now.' }),
    firstAt: t.expose('firstAt', { type: 'DateTime', nullable: true, description: 'The oldest retained message.' }),
    lastAt: t.expose('lastAt', { type: 'DateTime', nullable: true, description: 'The newest retained message.' }),
  }),
});

export const StreamConnection = connectionOf('Stream', Stream, 'streams');

const includeArgument = builder.args((t) => ({
  include: t.boolean({
    required: true,
    defaultValue: false,
    description: 'Whether to show the payload. An administrator’s asking is written to the audit log.',
  }),
}));

const MessageType = builder.objectRef<Message>('Message').implement({
  description: 'A retained message, summarized. Its payload is redacted unless asked for.',
  fields: (t) => ({
    id: t.exposeID('id', { description: 'The message.' }),
    stream: t.string({
      description: 'The full key of its stream.',
      resolve: ({ userId, suffix }) => streamKey(userId, suffix),
    }),
    kind: t.expose('kind', { type: MessageKindEnum, description: 'What it says.' }),
    at: t.expose('at', { type: 'DateTime', description: 'When it was retained.' }),
    clientId: t.exposeID('clientId', { nullable: true, description: 'The client concerned.' }),
    instanceId: t.exposeID('instanceId', { nullable: true, description: 'The instance that reported it.' }),
    commandId: t.exposeID('commandId', { nullable: true, description: 'The command concerned.' }),
    traceId: t.exposeString('traceId', { nullable: true, description: 'The trace that the caller gave.' }),
    parentSpanId: t.exposeString('parentSpanId', { nullable: true, description: 'The span that the caller gave.' }),
    payload: t.field({
      type: 'JSON',
      nullable: true,
      description: 'The payload, as it was sent; null unless it is included.',
      args: includeArgument,
      resolve: (message, { include }, { auditPayload, loaders }) => {
        if (!include || !hasPayload(message)) return null;
        auditPayload({ stream: streamKey(message.userId, message.suffix) });
        return andThen(loaders.payload(message), ({ text }) => fromJson(text));
      },
    }),
    payloadState: t.field({
      type: PayloadStateEnum,
      description: 'What `payload` shows when asked with the same `include`.',
      args: includeArgument,
      resolve: (message, { include }, { loaders }): Maybe<PayloadState> => {
        if (!hasPayload(message)) return 'none';
        return include ? andThen(loaders.payload(message), ({ state }) => state) : 'redacted';
      },
    }),
    payloadBytes: t.exposeInt('payloadBytes', {
      description: 'Length of the payload’s JSON text in bytes; 0 without one.',
    }),
    payloadSha256: t.string({
      nullable: true,
      description: 'SHA-256 of the payload’s JSON text, base64url, where it is kept apart; else null.',
      resolve: ({ spill }) => spill?.sha256 ?? null,
    }),
    error: t.expose('error', {
      type: TerminalErrorType,
      nullable: true,
      description: 'The bounded error, if it says one.',
    }),
  }),
});

/** Of every field that lists messages. */
export const orderArgument = builder.args((t) => ({
  order: t.field({
    type: MessageOrderEnum,
    required: true,
    defaultValue: 'oldest_first',
    description: 'In which order. A cursor opens only for the order in which it was given.',
  }),
}));

function hasPayload({ payload, spill }: Message): boolean {
  return payload !== null || spill !== null;
}

export const MessageConnection = connectionOf('Message', MessageType, 'messages');

builder.queryFields((t) => ({
  streams: t.field({
    type: StreamConnection,
    description: 'One user’s streams in order of suffix.',
    complexity: pageCost,
    args: {
      userId: t.arg.id({ required: true, description: 'The user.' }),
      prefix: t.arg.string({ description: 'Only suffixes that begin so.' }),
      ...pageArguments,
    },
    resolve: (_, { userId, prefix, ...page }, { core, who }) =>
      core.history.streams(who, userId, prefix ?? null, pageOf(page)),
  }),
  messages: t.field({
    type: MessageConnection,
    description: 'One stream’s retained messages. An absent stream is `not_found`, and so is another user’s.',
    complexity: pageCost,
    args: {
      stream: t.arg.string({ required: true, description: 'The full key, `<user>/<suffix>`.' }),
      afterTime: t.arg({ type: 'DateTime', description: 'Only messages retained after this time, exclusive.' }),
      beforeTime: t.arg({ type: 'DateTime', description: 'Only messages retained before this time, exclusive.' }),
      kinds: t.arg({ type: [MessageKindEnum], description: `Only these of the ${MESSAGE_KINDS.length} kinds.` }),
      ...orderArgument,
      ...pageArguments,
    },
    resolve: async (_, { stream, afterTime, beforeTime, kinds, order, ...page }, { core, who }) => {
      const query = { stream, afterTime, beforeTime, kinds };
      return (await core.history.messages(who, query, { ...pageOf(page), order })) ?? notFound();
    },
  }),
  commandHistory: t.field({
    type: MessageConnection,
    description:
      'Retained messages that name this command, whichever of the user’s clients it was sent to. It may scan the user’s streams; what is no longer retained is not shown.',
    complexity: pageCost,
    args: {
      userId: t.arg.id({ required: true, description: 'The user.' }),
      commandId: t.arg.id({ required: true, description: 'The command.' }),
      ...orderArgument,
      ...pageArguments,
    },
    resolve: (_, { userId, commandId, order, ...page }, { core, who }) =>
      core.history.ofCommand(who, userId, commandId, { ...pageOf(page), order }),
  }),
}));
