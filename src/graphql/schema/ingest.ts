/**
 * Defines the mutation with which a host ingests events, in which each message gets its own verdict, and the counters
 * of deduplication.
 */
import type { DedupBackend, DedupStats } from '../../core/dedup/dedup.ts';
import type { IngestError, IngestMessage, IngestVerdict } from '../../core/ingest/ingest.ts';
import { trustJson, type RawJson } from '../../core/json.ts';
import { DEDUP_WINDOW_SECONDS, INGEST_BATCH, STREAM_SUFFIX_SEGMENTS } from '../../core/limits.ts';
import type { ProjectionRefusal } from '../../core/sites/projection.ts';
import { builder, ranged, wireEnum } from './builder.ts';
import { fieldsOf, flag, int, list, nullable, text, typed } from './fields.ts';
import { FaultType, RefusalCodeEnum, orRefusal, refusalOf } from './refusal.ts';

const ProjectionRefusalEnum = wireEnum<ProjectionRefusal>(
  'ProjectionRefusal',
  'Which rule prevented a retained event from being published to its site’s viewers.',
  {
    stream: 'The stream is not exactly a site’s event stream.',
    owner: 'The sender owns no site with this id.',
    host: 'The message names another client than the one that hosts the site.',
    name: 'The payload has no valid event name.',
    allowlist: 'The site does not publish events with this name.',
  },
);

const IngestErrorType = builder.objectRef<IngestError>('IngestError').implement({
  description: 'Why a message was refused. Nothing of a refused message is retained.',
  fields: fieldsOf(() => ({
    code: typed(RefusalCodeEnum, 'The error code, for programs.'),
    message: text('The error message, for people.'),
    errors: list(FaultType, 'The invalid members of the message, at most 8; empty if none is invalid.'),
  })),
});

const IngestVerdictType = builder.objectRef<IngestVerdict>('IngestVerdict').implement({
  description:
    'The result of ingesting one message. Being retained and being published to viewers are separate; neither says that anybody acted on it.',
  fields: fieldsOf(() => ({
    messageId: nullable.id(
      'The id under which the message is retained. For a refused message: the given id, or null if none or an invalid one was given.',
    ),
    stream: nullable.text(
      'The full key of the message’s stream, under the authenticated user; null if the given suffix is invalid.',
    ),
    retained: flag('Whether this call retained the message.'),
    duplicate: flag(
      'Whether a message with the same user, client and id was ingested before, within the deduplicator’s TTL. A duplicate is counted, but neither retained nor published again.',
    ),
    published: flag('Whether the message was published to the viewers of its site.'),
    refusedBy: nullable.typed(
      ProjectionRefusalEnum,
      'Which rule prevented a retained event under `sites/` from being published; null for all other messages.',
    ),
    error: nullable.typed(
      IngestErrorType,
      'Why the message was refused; null if it was retained now or is a duplicate.',
    ),
  })),
});

const IngestResult = builder.objectRef<readonly IngestVerdict[]>('IngestResult').implement({
  description: 'The results of ingesting the messages of one call.',
  fields: (t) => ({
    items: t.field({
      type: [IngestVerdictType],
      description: `One result for each message, in the order sent, at most ${INGEST_BATCH}.`,
      resolve: (verdicts) => verdicts,
    }),
  }),
});

const IngestMessagesResult = orRefusal(
  'IngestMessagesResult',
  IngestResult,
  'The result of each message, or a refusal of the whole call.',
);

const IngestMessageInput = builder.inputType('IngestMessageInput', {
  description: 'An event to retain in a stream of the sender’s own user.',
  fields: (t) => ({
    messageId: t.id({
      description:
        'The sender’s own id for the message, which makes it safe to send again. Omitted: the relay generates one.',
    }),
    kind: t.string({ required: true, description: 'Always `event`: nothing else can be ingested.' }),
    streamSuffix: t.string({
      required: true,
      description: `The part of the stream’s key after the user: 1 to ${STREAM_SUFFIX_SEGMENTS} ids joined by \`/\`, such as \`sites/board/events\`. Suffixes that begin with \`clients/\` are reserved for the relay.`,
    }),
    clientId: t.id({ required: true, description: 'The id of the client that sends the event.' }),
    instanceId: t.id({
      required: true,
      description:
        'The id of the client’s instance. While another instance of the client is connected, the event is refused.',
    }),
    traceId: t.string({ description: 'The sender’s trace id, retained with the event. Omitted: none.' }),
    parentSpanId: t.string({ description: 'The sender’s span id, retained with the event. Omitted: none.' }),
    payload: t.field({
      type: 'JSON',
      description: 'Any JSON value; for an event of a site, `{ "name", "data" }`. Omitted: the event has no payload.',
    }),
  }),
});

builder.mutationField('ingestMessages', (t) =>
  t.field({
    type: IngestMessagesResult,
    description:
      'Ingests events of the authenticated user, whose token needs the scope `host`. Each event is deduplicated and retained in one atomic step, then published if a site projects it. An ingested event never resolves a command. A refused message does not affect the others.',
    args: {
      messages: t.arg({
        type: [IngestMessageInput],
        required: true,
        description: `The messages to ingest: 1 to ${INGEST_BATCH}.`,
      }),
    },
    resolve: (_, { messages }, { core, requester }) =>
      core.ingest.ingest(requester, messages.map(messageOf)).catch(refusalOf),
  }),
);

type IngestInput = Omit<IngestMessage, 'payload'> & { readonly payload?: RawJson | null | undefined };

function messageOf({ payload, ...members }: IngestInput): IngestMessage {
  return { ...members, payload: payload === undefined ? null : (payload?.text ?? trustJson('null')) };
}

// The types and fields of the deduplication counters, which say nothing about execution.

const DedupStatsType = builder.objectRef<DedupStats>('DedupStats').implement({
  description:
    'Counters of ingested messages in a time window: events that hosts sent, and ends of commands that clients reported over links. It describes what the server ingested, and does not say how often any client executed anything.',
  fields: fieldsOf(() => ({
    windowSeconds: int('The requested length of the window, in seconds.'),
    seen: int('How many messages came in, duplicates included. It is not how often any client executed anything.'),
    unique: int(
      'How many of the messages in `seen` were new: events that were not seen within the deduplicator’s TTL, and ends that are not in the record of their command. It is not proof that anything was executed.',
    ),
    duplicates: int(
      'How many of the messages in `seen` were not new. It is not proof that a client executed anything twice, or only once. A backend that cannot tell answers 0, with `exact` false.',
    ),
    exact: flag(
      'Whether the counters are exact for whole buckets of `grainSeconds`; false if deduplication entries were dropped early, or if the counters are estimated from the entries that remain.',
    ),
    grainSeconds: int(
      'Length of one bucket, in seconds. The window consists of whole buckets, the current one included.',
    ),
    liveKeys: nullable.int(
      'How many new messages came in within the TTL and are still remembered, ends in whole buckets; null if the backend cannot tell cheaply.',
    ),
  })),
});

const DedupBackendType = builder.objectRef<DedupBackend>('DedupBackend').implement({
  description: 'The deduplicator’s implementation and settings, without secrets.',
  fields: fieldsOf(() => ({
    implementation: text('The kind of deduplicator.'),
    ttlSeconds: int('How long a message is recognised as a duplicate, in seconds.'),
    namespace: nullable.text('The namespace of the deduplicator’s keys; null if it has none.'),
  })),
});

const Dedup = builder.objectRef<object>('Dedup').implement({
  description: 'The deduplicator of ingested messages.',
  fields: (t) => ({
    stats: t.field({
      type: DedupStatsType,
      description: 'Counters of a window that ends now.',
      args: {
        windowSeconds: t.arg.int({
          ...ranged(DEDUP_WINDOW_SECONDS),
          description: `Length of the window: ${DEDUP_WINDOW_SECONDS.min} to ${DEDUP_WINDOW_SECONDS.max} seconds.`,
        }),
      },
      resolve: (_, { windowSeconds }, { core, requester }) => core.dedup.stats(requester, windowSeconds),
    }),
    backend: t.field({
      type: DedupBackendType,
      description: 'The deduplicator’s implementation and settings.',
      resolve: (_, _args, { core, requester }) => core.dedup.backend(requester),
    }),
  }),
});

builder.queryField('dedup', (t) =>
  t.field({
    type: Dedup,
    description: 'The deduplicator’s counters and settings. Administrators only.',
    resolve(_, _args, { core, requester }) {
      core.dedup.allow(requester);
      return {};
    },
  }),
);
