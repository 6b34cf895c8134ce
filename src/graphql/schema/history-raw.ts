/** Defines the raw sample of history, for administrators of deployments that allow it. */
import type { AuditSubject } from '../../core/audit/audit-rows.ts';
import { notFound } from '../../core/errors.ts';
import { splitStreamKey } from '../../core/history/message.ts';
import type { RawMessages } from '../../core/history/raw-sample.ts';
import { canonicalUser } from '../../core/ids.ts';
import { RAW_SAMPLE } from '../../core/limits.ts';
import { builder, ranged } from './builder.ts';
import { fieldsOf, typed } from './fields.ts';
import { CompletenessType, forAdmins, pageCost } from './page.ts';

const RawSampleType = builder.objectRef<RawMessages>('RawSample').implement({
  description:
    'A bounded sample of messages as this backend stores them. The members of an item differ by backend, and an item may hold data that message summaries omit.',
  fields: fieldsOf((t) => ({
    items: t.field({
      type: ['JSON'],
      nullable: { list: false, items: true },
      description:
        'The sampled items, newest first: stored messages, or only payloads. A stored message holds a large payload as a reference; an item is null if only payloads were requested and this one cannot be read.',
      resolve: ({ items }) => items,
    }),
    completeness: typed(CompletenessType, 'Whether anything is missing, from which source, and why.'),
  })),
});

builder.queryField('rawMessages', (t) =>
  t.field({
    type: RawSampleType,
    complexity: forAdmins(({ limit }: { readonly limit: number }) => pageCost({ first: limit })),
    description:
      'A sample of the newest stored messages: at most 100, and at most 1 MiB unless a single message is larger. Administrators only, and only if the relay was started with RAW_MESSAGES. The audit log records each request.',
    args: {
      stream: t.arg.string({ description: 'The full key of a stream, `<user>/<suffix>`. Omitted: all streams.' }),
      valuesOnly: t.arg.boolean({
        required: true,
        defaultValue: false,
        description: 'Whether to return only payloads, of messages that have one.',
      }),
      limit: t.arg.int({
        ...ranged({ min: 1, max: RAW_SAMPLE, default: RAW_SAMPLE }),
        description: `The most items to return: 1 to ${RAW_SAMPLE}.`,
      }),
    },
    resolve: async (_, query, { core, requester, readPayload }) => {
      const sample = (await core.history.raw(requester, query)) ?? notFound();
      await readPayload(subjectOfStream(query.stream ?? null));
      return sample;
    },
  }),
);

/** Returns the subject that the audit records for this read. `*` stands for all streams of all users. */
function subjectOfStream(stream: string | null): AuditSubject {
  const userId = stream === null ? undefined : splitStreamKey(stream)?.userId;
  return { stream: stream ?? '*', view: 'raw', ...(userId !== undefined && { userId: canonicalUser(userId) }) };
}
