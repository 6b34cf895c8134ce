import { notFound } from '../core/errors.ts';
import type { RawMessages } from '../core/history/raw.ts';
import { RAW_SAMPLE } from '../core/limits.ts';
import { builder } from './builder.ts';
import { CompletenessType } from './page.ts';

const RawSampleType = builder.objectRef<RawMessages>('RawSample').implement({
  description:
    'One bounded sample of what is stored, as this backend stores it: its members differ by backend, and it may hold what summaries omit.',
  fields: (t) => ({
    items: t.field({
      type: ['JSON'],
      nullable: { list: false, items: true },
      description:
        'The newest first: stored messages, or payloads alone. A payload that is kept apart stands in a stored message as its reference; alone it is null where it cannot be read.',
      resolve: ({ items }) => items,
    }),
    completeness: t.expose('completeness', {
      type: CompletenessType,
      description: 'What was and was not observed.',
    }),
  }),
});

builder.queryField('rawMessages', (t) =>
  t.field({
    type: RawSampleType,
    complexity: ({ limit }) => ({ field: 1, multiplier: Math.max(1, limit) }),
    description:
      'A sample of stored messages, at most 100 and 1 MiB, and at least one where there is one. For administrators, where the relay was started with RAW_MESSAGES; each reading is written to the audit log.',
    args: {
      stream: t.arg.string({ description: 'The full key of a stream, `<user>/<suffix>`; omitted, of all streams.' }),
      valuesOnly: t.arg.boolean({
        required: true,
        defaultValue: false,
        description: 'Whether to give payloads alone.',
      }),
      limit: t.arg.int({
        required: true,
        defaultValue: RAW_SAMPLE,
        description: `Messages at most: 1 to ${RAW_SAMPLE}.`,
        extensions: { minimum: 1, maximum: RAW_SAMPLE },
      }),
    },
    resolve: async (_, query, { core, who, auditPayload }) => {
      const sample = (await core.history.raw(who, query)) ?? notFound();
      auditPayload({ stream: query.stream ?? '*', view: 'raw' });
      return sample;
    },
  }),
);
