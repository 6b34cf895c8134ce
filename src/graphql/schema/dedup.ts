/** The GraphQL types and fields of the deduplication counters. They say nothing about execution. */
import type { DedupBackend, DedupStats } from '../../core/dedup/store.ts';
import { DEDUP_WINDOW_SECONDS } from '../../core/limits.ts';
import { builder } from './builder.ts';

const DedupStatsType = builder.objectRef<DedupStats>('DedupStats').implement({
  description:
    'Counters of ingested messages in a time window: events that hosts sent, and ends of commands that clients reported over links. It describes what the server ingested, and does not say how often any client executed anything.',
  fields: (t) => ({
    windowSeconds: t.exposeInt('windowSeconds', { description: 'The requested length of the window, in seconds.' }),
    seen: t.exposeInt('seen', {
      description: 'How many messages came in, duplicates included. It is not how often any client executed anything.',
    }),
    unique: t.exposeInt('unique', {
      description:
        'How many of the messages in `seen` had not been seen within the deduplicator’s TTL. It is not proof that anything was executed.',
    }),
    duplicates: t.exposeInt('duplicates', {
      description:
        'How many of the messages in `seen` had been seen within the TTL. It is not proof that a client executed anything twice, or only once. A backend that cannot tell answers 0, with `exact` false.',
    }),
    exact: t.exposeBoolean('exact', {
      description:
        'Whether the counters are exact for whole buckets of `grainSeconds`; false if deduplication entries were dropped early, or if the counters are estimated from the entries that remain.',
    }),
    grainSeconds: t.exposeInt('grainSeconds', {
      description: 'Length of one bucket, in seconds. The window consists of whole buckets, the current one included.',
    }),
    liveKeys: t.exposeInt('liveKeys', {
      nullable: true,
      description: 'How many messages would be recognised as duplicates now; null if the backend cannot tell cheaply.',
    }),
  }),
});

const DedupBackendType = builder.objectRef<DedupBackend>('DedupBackend').implement({
  description: 'The deduplicator’s implementation and settings, without secrets.',
  fields: (t) => ({
    implementation: t.exposeString('implementation', { description: 'The kind of deduplicator.' }),
    ttlSeconds: t.exposeInt('ttlSeconds', {
      description: 'How long a message is recognised as a duplicate, in seconds.',
    }),
    namespace: t.exposeString('namespace', {
      nullable: true,
      description: 'The namespace of the deduplicator’s keys; null if it has none.',
    }),
  }),
});

const Dedup = builder.objectRef<object>('Dedup').implement({
  description: 'The deduplicator of ingested messages.',
  fields: (t) => ({
    stats: t.field({
      type: DedupStatsType,
      description: 'Counters of a window that ends now.',
      args: {
        windowSeconds: t.arg.int({
          required: true,
          defaultValue: DEDUP_WINDOW_SECONDS.default,
          description: `Length of the window: ${DEDUP_WINDOW_SECONDS.min} to ${DEDUP_WINDOW_SECONDS.max} seconds.`,
          extensions: { minimum: DEDUP_WINDOW_SECONDS.min, maximum: DEDUP_WINDOW_SECONDS.max },
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
