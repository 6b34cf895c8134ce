import type { Fault } from '../core/errors.ts';
import type { IngestError, IngestMessage, IngestVerdict } from '../core/ingest/room.ts';
import { trustJson, type RawJson } from '../core/json.ts';
import { INGEST_BATCH, STREAM_SUFFIX_SEGMENTS } from '../core/limits.ts';
import type { ProjectionRefusal } from '../core/sites/projector.ts';
import { builder } from './builder.ts';
import { wireEnum } from './enums.ts';
import { DEED } from './nature.ts';
import { RefusalCodeEnum } from './refusal.ts';

const ProjectionRefusalEnum = wireEnum<ProjectionRefusal>(
  'ProjectionRefusal',
  'Which rule kept a retained event from being published to its site’s viewers.',
  {
    stream: 'It is not on the exact stream of a site’s events.',
    owner: 'The sender does not own such a site.',
    name: 'Its payload has no valid event name.',
    allowlist: 'Its name is not among those that the site publishes.',
  },
);

const FaultType = builder.objectRef<Fault>('Fault').implement({
  description: 'One wrong input.',
  fields: (t) => ({
    parameter: t.exposeString('parameter', { description: 'Its name on the wire.' }),
    detail: t.exposeString('detail', { description: 'What is wrong with it.' }),
  }),
});

const IngestErrorType = builder.objectRef<IngestError>('IngestError').implement({
  description: 'Why nothing of a message was retained.',
  fields: (t) => ({
    code: t.expose('code', { type: RefusalCodeEnum, description: 'Why, for a program.' }),
    message: t.exposeString('message', { description: 'Why, for a reader.' }),
    errors: t.expose('errors', {
      type: [FaultType],
      description: 'Every wrong member of the message, at most 8; empty where none is.',
    }),
  }),
});

const IngestVerdictType = builder.objectRef<IngestVerdict>('IngestVerdict').implement({
  description:
    'What became of one ingested message. Retained is one thing, published to viewers another; neither says that anybody acted on it.',
  fields: (t) => ({
    messageId: t.exposeID('messageId', {
      nullable: true,
      description: 'The id that it is retained under; of a refused one the id that was given, if it was one.',
    }),
    stream: t.exposeString('stream', {
      nullable: true,
      description: 'The full key of its stream, under the authenticated user; null where the suffix is none.',
    }),
    retained: t.exposeBoolean('retained', { description: 'Whether it was retained by this call.' }),
    duplicate: t.exposeBoolean('duplicate', {
      description:
        'Whether it had been ingested before, by user, client and id: then it is counted, and neither retained nor published again.',
    }),
    published: t.exposeBoolean('published', { description: 'Whether it was published to the viewers of its site.' }),
    refusedBy: t.expose('refusedBy', {
      type: ProjectionRefusalEnum,
      nullable: true,
      description: 'Why a retained event under `sites/` was not published; null for everything else.',
    }),
    error: t.expose('error', {
      type: IngestErrorType,
      nullable: true,
      description: 'Why nothing of it was retained; null where it was, or had been before.',
    }),
  }),
});

const IngestResult = builder.objectRef<readonly IngestVerdict[]>('IngestResult').implement({
  description: 'What became of the messages of one call.',
  fields: (t) => ({
    items: t.field({
      type: [IngestVerdictType],
      description: `One verdict a message, in the order sent, at most ${INGEST_BATCH}.`,
      resolve: (verdicts) => verdicts,
    }),
  }),
});

const IngestMessageInput = builder.inputType('IngestMessageInput', {
  description: 'An event to retain in a stream of the sender’s own user.',
  fields: (t) => ({
    messageId: t.id({
      description: 'The sender’s own id, which makes it safe to send again. Omitted, the relay makes one.',
    }),
    kind: t.string({ required: true, description: 'Always `event`: nothing else can be ingested.' }),
    streamSuffix: t.string({
      required: true,
      description: `What follows the user in the stream’s key: 1 to ${STREAM_SUFFIX_SEGMENTS} ids joined by \`/\`, such as \`sites/board/events\`. What begins with \`clients/\` is the relay’s own.`,
    }),
    clientId: t.id({ required: true, description: 'The client that it comes from.' }),
    instanceId: t.id({
      required: true,
      description: 'The client’s instance. While another one is connected, the event is refused.',
    }),
    traceId: t.string({ description: 'The sender’s trace, retained with it.' }),
    parentSpanId: t.string({ description: 'The sender’s span, retained likewise.' }),
    payload: t.field({ type: 'JSON', description: 'Any JSON; of a site’s event `{ "name", "data" }`.' }),
  }),
});

builder.mutationField('ingestMessages', (t) =>
  t.field({
    type: IngestResult,
    description:
      'Ingests events of the authenticated user, who needs the scope `host`: each is deduplicated and retained in one act, then published where a site projects it. Nothing ingested can resolve a command. A refused message costs the others nothing.',
    args: {
      messages: t.arg({
        type: [IngestMessageInput],
        required: true,
        description: `1 to ${INGEST_BATCH} messages.`,
      }),
    },
    extensions: DEED,
    resolve: (_, { messages }, { core, who }) => core.ingest.ingest(who, messages.map(messageOf)),
  }),
);

type Given = Omit<IngestMessage, 'payload'> & { readonly payload?: RawJson | null | undefined };

function messageOf({ payload, ...members }: Given): IngestMessage {
  return { ...members, payload: payload === undefined ? null : (payload?.text ?? trustJson('null')) };
}
