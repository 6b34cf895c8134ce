/**
 * The GraphQL type with what a signed-in requester may know of the relay: its version, mode, limits and optional
 * features.
 */
import { requireScope, type CallingPrincipal } from '../../core/auth/principal.ts';
import type { Core } from '../../core/core.ts';
import * as limits from '../../core/limits.ts';
import type { ServerFeature } from '../../core/server.ts';
import { builder } from './builder.ts';
import { wireEnum } from './enums.ts';
import { ModeEnum } from './viewer.ts';

const ServerFeatureEnum = wireEnum<ServerFeature>('ServerFeature', 'An optional ability of a relay.', {
  raw_messages: 'Administrators may read the raw sample of history.',
  exact_dedup_counters: 'The counters of deduplication are exact.',
  cheap_stream_summaries: 'Streams tell the number of their messages, and the times of the first and the last one.',
});

type Range = { readonly min: number; readonly max: number; readonly default: number };

const IntRange = builder.objectRef<Range>('IntRange').implement({
  description: 'The range of a number, and its default.',
  fields: (t) => ({
    min: t.exposeInt('min', { description: 'The smallest value.' }),
    max: t.exposeInt('max', { description: 'The largest value.' }),
    default: t.exposeInt('default', { description: 'The value if none is given.' }),
  }),
});

/** The limits for one requester. */
type Limited = { readonly core: Core; readonly kind: CallingPrincipal['kind'] };

const ServerLimits = builder.objectRef<Limited>('ServerLimits').implement({
  description: 'Limits that a client must know. Those of the requester are the requester’s own.',
  fields: (t) => ({
    pageRows: t.field({
      type: IntRange,
      description: 'How many rows a page may have: the argument `first`.',
      resolve: () => ({ min: 1, max: limits.PAGE_MAX, default: limits.PAGE_DEFAULT }),
    }),
    documentCost: t.int({
      description: 'The highest cost that a document of the requester may have.',
      resolve: ({ kind }) => (kind === 'admin' ? limits.QUERY_COST_ADMIN : limits.QUERY_COST_USER),
    }),
    documentDepth: t.int({
      description: 'How many levels deep the fields of a document may be nested.',
      resolve: () => limits.QUERY_DEPTH,
    }),
    documentChars: t.int({
      description: 'How many characters a document may have.',
      resolve: () => limits.QUERY_CHARS,
    }),
    bodyBytes: t.int({
      description: 'How many bytes the body of one HTTP request may have.',
      resolve: ({ core }) => core.server.maxBodyBytes,
    }),
    frameBytes: t.int({
      description: 'How many bytes one frame of a link may have.',
      resolve: () => limits.MAX_FRAME_BYTES,
    }),
    inlinePayloadBytes: t.int({
      description:
        'How many bytes a payload may have that history keeps with its message. Larger ones go to the spill store.',
      resolve: () => limits.INLINE_PAYLOAD_BYTES,
    }),
    connectWithinMs: t.field({
      type: IntRange,
      description: 'How long a command may wait for its client to connect, in milliseconds.',
      resolve: () => limits.CONNECT_WITHIN_MS,
    }),
    respondWithinMs: t.field({
      type: IntRange,
      description: 'How long a client may take to answer, in milliseconds.',
      resolve: () => limits.RESPOND_WITHIN_MS,
    }),
    awaitWithinMs: t.field({
      type: IntRange,
      description: 'How long an await may wait, in milliseconds.',
      resolve: () => limits.AWAIT_WITHIN_MS,
    }),
    idempotencyWindowMs: t.int({
      description: 'How long the id of an ended command is known, in milliseconds: no id runs twice within it.',
      resolve: ({ core }) => core.idempotencyWindowMs,
    }),
    inFlight: t.int({
      description: 'How many commands one client may have been given that have not ended.',
      resolve: () => limits.IN_FLIGHT,
    }),
    queuedPerClient: t.int({
      description: 'How many commands may wait for one client.',
      resolve: () => limits.QUEUE_PER_CLIENT,
    }),
    waitersPerCommand: t.int({
      description: 'How many callers may wait for one command.',
      resolve: () => limits.WAITERS_PER_COMMAND,
    }),
    eventStreams: t.int({
      description: 'How many event streams the requester may have open on one node.',
      resolve: ({ kind }) => (kind === 'admin' ? limits.SSE_PER_ADMIN : limits.SSE_PER_PRINCIPAL),
    }),
    subscriptionEvents: t.int({
      description:
        'How many events one subscription queues. If there are more, the oldest are dropped and counted in `missed`.',
      resolve: () => limits.SUBSCRIPTION_QUEUE,
    }),
  }),
});

const Server = builder.objectRef<Limited>('Server').implement({
  description: 'The relay that answers.',
  fields: (t) => ({
    version: t.string({ description: 'The version of the program.', resolve: ({ core }) => core.server.version }),
    label: t.string({
      nullable: true,
      description: 'The name of the deployment for people (the setting LABEL); null if it has none.',
      resolve: ({ core }) => core.server.label,
    }),
    mode: t.field({
      type: ModeEnum,
      description: 'How this deployment keeps its state.',
      resolve: ({ core }) => core.mode,
    }),
    nodeId: t.id({ description: 'The id of the node that answers.', resolve: ({ core }) => core.nodeId }),
    startedAt: t.field({
      type: 'DateTime',
      description: 'When the node that answers was started.',
      resolve: ({ core }) => core.server.startedAt,
    }),
    limits: t.field({
      type: ServerLimits,
      description: 'Limits that a client must know.',
      resolve: (limited) => limited,
    }),
    features: t.field({
      type: [ServerFeatureEnum],
      description: 'The optional abilities that this relay has.',
      resolve: ({ core }) => core.server.features,
    }),
  }),
});

builder.queryField('server', (t) =>
  t.field({
    type: Server,
    description: 'The relay that answers: its version, its mode, its limits and its optional features.',
    resolve: (_, _args, { core, requester }) => ({ core, kind: requireScope(requester, 'invoke').kind }),
  }),
);
