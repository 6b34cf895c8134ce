import type { DedupBackend, DedupStats } from '../core/dedup/store.ts';
import { DEDUP_WINDOW_SECONDS } from '../core/limits.ts';
import { builder } from './builder.ts';

const DedupStatsType = builder.objectRef<DedupStats>('DedupStats').implement({
  description:
    'What ingestion saw in a window: events ingested, and ends of commands that links reported. It describes what the server ingested, and does not say how often any client executed anything.',
  fields: (t) => ({
    windowSeconds: t.exposeInt('windowSeconds', { description: 'The window asked for, in seconds.' }),
    seen: t.exposeInt('seen', {
      description: 'Messages that came in, duplicates included: not how often any client executed anything.',
    }),
    unique: t.exposeInt('unique', {
      description:
        'Those that had not been seen within the deduplicator’s time to live: not proof that anything was executed.',
    }),
    duplicates: t.exposeInt('duplicates', {
      description:
        'Those that had: not proof that a client executed anything twice, or only once. A backend that cannot tell says 0, and `exact` is then false.',
    }),
    exact: t.exposeBoolean('exact', {
      description:
        'Whether the counters are exact for whole buckets of `grainSeconds`; false where marks were dropped early or counted from what is left.',
    }),
    grainSeconds: t.exposeInt('grainSeconds', {
      description: 'The window is taken in whole buckets of so many seconds, the present one included.',
    }),
    liveKeys: t.exposeInt('liveKeys', {
      nullable: true,
      description: 'Messages that would be recognised now; null where the backend cannot tell cheaply.',
    }),
  }),
});

const DedupBackendType = builder.objectRef<DedupBackend>('DedupBackend').implement({
  description: 'What deduplicates, without secrets.',
  fields: (t) => ({
    implementation: t.exposeString('implementation', { description: 'Its kind.' }),
    ttlSeconds: t.exposeInt('ttlSeconds', { description: 'How long a message is recognised, in seconds.' }),
    namespace: t.exposeString('namespace', {
      nullable: true,
      description: 'The namespace of its keys; null where it has none.',
    }),
  }),
});

const Dedup = builder.objectRef<object>('Dedup').implement({
  description: 'The deduplicator at ingestion, as it can be observed.',
  fields: (t) => ({
    stats: t.field({
      type: DedupStatsType,
      description: 'Counters of the latest window.',
      args: {
        windowSeconds: t.arg.int({
          required: true,
          defaultValue: DEDUP_WINDOW_SECONDS.default,
          description: `Length of the window: ${DEDUP_WINDOW_SECONDS.min} to ${DEDUP_WINDOW_SECONDS.max} seconds.`,
          extensions: { minimum: DEDUP_WINDOW_SECONDS.min, maximum: DEDUP_WINDOW_SECONDS.max },
        }),
      },
      resolve: (_, { windowSeconds }, { core, who }) => core.dedup.stats(who, windowSeconds),
    }),
    backend: t.field({
      type: DedupBackendType,
      description: 'What it is.',
      resolve: (_, _args, { core, who }) => core.dedup.backend(who),
    }),
  }),
});

builder.queryField('dedup', (t) =>
  t.field({
    type: Dedup,
    description: 'What the deduplicator observed. For administrators.',
    resolve(_, _args, { core, who }) {
      core.dedup.allow(who);
      return {};
    },
  }),
);
