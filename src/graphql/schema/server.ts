/**
 * Defines what a requester may know about the relay (version, mode, limits, optional features) and about itself, and
 * the time series of metrics.
 */
import { requireScope, type CallingPrincipal, type Scope } from '../../core/auth/principal.ts';
import type { Away, Durability } from '../../core/backend.ts';
import type { Core } from '../../core/core.ts';
import type { ServerFeature } from '../../core/server-info.ts';
import * as limits from '../../core/limits.ts';
import { SERIES_LINES, SERIES_POINTS, SERIES_WINDOW_SECONDS } from '../../core/limits.ts';
import { SAMPLED_GAUGE_NAMES } from '../../core/metrics.ts';
import type { SeriesAnswer, SeriesView } from '../../core/metrics/series.ts';
import { builder, wireEnum } from './builder.ts';
import { fieldsOf, fieldsOfPart, flag, id, int, list, nullable, text, time, typed } from './fields.ts';
import { CompletenessType, forAdmins, scanCost } from './page.ts';

const ServerFeatureEnum = wireEnum<ServerFeature>('ServerFeature', 'An optional ability of a relay.', {
  raw_messages: 'Administrators may read the raw sample of history.',
  exact_dedup_counters: 'The counters of deduplication are exact.',
  cheap_stream_summaries: 'Streams tell the number of their messages, and the times of the first and the last one.',
});

type Range = { readonly min: number; readonly max: number; readonly default: number };

const IntRange = builder.objectRef<Range>('IntRange').implement({
  description: 'The range of a number, and its default.',
  fields: fieldsOf(() => ({
    min: int('The smallest value.'),
    max: int('The largest value.'),
    default: int('The value if none is given.'),
  })),
});

type Limited = { readonly core: Core; readonly kind: CallingPrincipal['kind'] };

/** Returns the limits that apply to one kind of requester. */
function limitsOf({ core, kind }: Limited) {
  return {
    pageRows: { min: 1, max: limits.PAGE_MAX, default: limits.PAGE_DEFAULT },
    documentCost: kind === 'admin' ? limits.QUERY_COST_ADMIN : limits.QUERY_COST_USER,
    documentDepth: limits.QUERY_DEPTH,
    documentChars: limits.QUERY_CHARS,
    bodyBytes: core.server.maxBodyBytes,
    frameBytes: limits.MAX_FRAME_BYTES,
    inlinePayloadBytes: limits.INLINE_PAYLOAD_BYTES,
    connectWithinMs: limits.CONNECT_WITHIN_MS,
    respondWithinMs: limits.RESPOND_WITHIN_MS,
    awaitWithinMs: limits.AWAIT_WITHIN_MS,
    idempotencyWindowMs: core.idempotencyWindowMs,
    inFlight: limits.IN_FLIGHT,
    queuedPerClient: limits.QUEUE_PER_CLIENT,
    waitersPerCommand: limits.WAITERS_PER_COMMAND,
    eventStreams: kind === 'admin' ? limits.SSE_PER_ADMIN : limits.SSE_PER_PRINCIPAL,
    subscriptionEvents: limits.SUBSCRIPTION_QUEUE,
  };
}

const ServerLimits = builder.objectRef<ReturnType<typeof limitsOf>>('ServerLimits').implement({
  description: 'Limits that a client must know. Those of the requester are the requester’s own.',
  fields: fieldsOf(() => ({
    pageRows: typed(IntRange, 'How many rows a page may have: the argument `first`.'),
    documentCost: int('The highest cost that a document of the requester may have.'),
    documentDepth: int('How many levels deep the fields of a document may be nested.'),
    documentChars: int('How many characters a document may have.'),
    bodyBytes: int('How many bytes the body of one HTTP request may have.'),
    frameBytes: int('How many bytes one frame of a link may have.'),
    inlinePayloadBytes: int(
      'How many bytes a payload may have that history keeps with its message. Larger ones go to the spill store.',
    ),
    connectWithinMs: typed(IntRange, 'How long a command may wait for its client to connect, in milliseconds.'),
    respondWithinMs: typed(IntRange, 'How long a client may take to answer, in milliseconds.'),
    awaitWithinMs: typed(IntRange, 'How long an await may wait, in milliseconds.'),
    idempotencyWindowMs: int(
      'How long the id of an ended command is known, in milliseconds: no id runs twice within it.',
    ),
    inFlight: int('How many commands one client may have been given that have not ended.'),
    queuedPerClient: int('How many commands may wait for one client.'),
    waitersPerCommand: int('How many callers may wait for one command.'),
    eventStreams: int('How many event streams the requester may have open on one node.'),
    subscriptionEvents: int(
      'How many events one subscription queues. If there are more, the oldest are dropped and counted in `missed`.',
    ),
  })),
});

const DurabilityKindEnum = wireEnum<Durability['kind']>(
  'DurabilityKind',
  'Where a relay keeps what outlives its process.',
  {
    memory: 'Nowhere: a restart forgets everything.',
    directory: 'In the data directory of this relay.',
    store: 'In the store that all nodes share.',
  },
);

const AwayType = builder.objectRef<Away>('Away').implement({
  description: 'The time between two processes with one data directory.',
  fields: fieldsOf(() => ({
    since: time('When the process before recorded its last act.'),
    clean: flag('Whether that process was closed in order.'),
    lost: flag('Whether the system itself ended, so that records that were not synced may be missing.'),
    tornBytes: int(
      'The bytes of an unfinished batch at the end of the journal, which were cut off; 0 if there were none.',
    ),
  })),
});

const DurabilityType = builder.objectRef<Durability>('Durability').implement({
  description: 'How much of what a relay keeps outlives its process.',
  fields: fieldsOf(() => ({
    kind: typed(DurabilityKindEnum, 'Where it is kept.'),
    sync: nullable.text(
      'When records are synced to the disk: after so many milliseconds at most, such as `100 ms`, `always` before an answer, or `off`; null without a data directory.',
    ),
    bytes: nullable.float('The size of the data directory without large payloads; null if there is none.'),
    full: flag('Whether the disk is full, so that nothing new is admitted.'),
    snapshotAt: nullable.time('When the last snapshot was complete; null if this process wrote none.'),
    away: nullable.typed(AwayType, 'How the relay was away before it was started; null if it is not known.'),
  })),
});

const Server = builder.objectRef<Limited>('Server').implement({
  description: 'The relay that answers.',
  fields: fieldsOf((t) => ({
    version: t.string({ description: 'The version of the program.', resolve: ({ core }) => core.server.version }),
    label: t.string({
      nullable: true,
      description: 'The name of the deployment for people (the setting LABEL); null if it has none.',
      resolve: ({ core }) => core.server.label,
    }),
    traceUrl: t.string({
      nullable: true,
      description:
        'Where the traces of this deployment are shown: an address with `{traceId}` in place of the id of a trace (the setting TRACE_URL). Null if it is not set, and for users.',
      resolve: ({ core, kind }) => (kind === 'admin' ? core.server.traceUrl : null),
    }),
    ...fieldsOfPart(t, 'core', {
      mode: typed(ModeEnum, 'How this deployment keeps its state.'),
      nodeId: id('The id of the node that answers.'),
    }),
    startedAt: t.field({
      type: 'DateTime',
      description: 'When the node that answers was started.',
      resolve: ({ core }) => core.server.startedAt,
    }),
    limits: t.field({
      type: ServerLimits,
      description: 'Limits that a client must know.',
      resolve: limitsOf,
    }),
    durability: t.field({
      type: DurabilityType,
      nullable: true,
      description: 'How much of what the relay keeps outlives its process. Null for users.',
      resolve: ({ core, kind }) => (kind === 'admin' ? core.durability() : null),
    }),
    features: t.field({
      type: [ServerFeatureEnum],
      description: 'The optional abilities that this relay has.',
      resolve: ({ core }) => core.server.features,
    }),
  })),
});

builder.queryField('server', (t) =>
  t.field({
    type: Server,
    description: 'The relay that answers: its version, its mode, its limits and its optional features.',
    resolve: (_, _args, { core, requester }) => ({ core, kind: requireScope(requester, 'invoke').kind }),
  }),
);

// The field `series` shows how counters, gauges and durations changed over time.

const SeriesType = builder.objectRef<SeriesView>('Series').implement({
  description: 'One line of a plot: a counter, a gauge, or a quantile of a duration, in equal steps of time.',
  fields: fieldsOf((t) => ({
    name: text('The name as it was requested, such as `commands_ended`.'),
    label: nullable.text(
      'The value of the metric’s label, such as `completed`; null if the metric has no label, or the line is a quantile over all of its labels.',
    ),
    nodeId: nullable.id('The id of the requested node; null if the line is of all nodes together.'),
    from: time('When the first step begins.'),
    stepSeconds: int('The length of each step, in seconds.'),
    points: t.exposeFloatList('points', {
      nullable: { list: false, items: true },
      description:
        'One value for each step, the oldest first; the last step is still going on. For a counter: how often it happened in the step. For a gauge: its value when the step ended, of all nodes together; of `oldest_wait_seconds` the highest in the step, of any node. For a quantile: seconds, at most 6 % off. Null: nothing was recorded in the step, for example because the node was not running, or nothing was measured in it.',
    }),
  })),
});

const SeriesListType = builder.objectRef<SeriesAnswer>('SeriesList').implement({
  description: `Series of one window: at most ${SERIES_LINES}, of at most ${SERIES_POINTS} points each.`,
  fields: fieldsOf(() => ({
    items: list(
      SeriesType,
      'The series, in the order of the requested names and then of labels. Labels that did not occur in the window are left out.',
      { complexity: { field: 1, multiplier: SERIES_LINES } },
    ),
    completeness: typed(CompletenessType, 'Which nodes contributed, and which did not answer.'),
  })),
});

builder.queryField('series', (t) =>
  t.field({
    type: SeriesListType,
    complexity: forAdmins(() => scanCost(0)),
    description:
      'How counters, gauges and durations changed over time, up to now. Administrators only. Each node keeps steps of 5 seconds for an hour and of a minute for a day, in its memory: a restart begins anew. The other nodes are asked when this is read, and have one second to answer.',
    args: {
      names: t.arg.stringList({
        required: true,
        description: `At most ${SERIES_LINES} names: counters as in \`/metrics\` without \`callboard_\` and \`_total\`, such as \`commands_ended\`, the gauges ${SAMPLED_GAUGE_NAMES.map((name) => `\`${name}\``).join(', ')}, and quantiles of durations, such as \`command_p50\` and \`command_p99\` (also \`p90\` and \`p95\`; of \`command\`, \`dispatch\`, \`ack\`, \`client_rtt\` and \`http\`).`,
      }),
      windowSeconds: t.arg.int({
        required: true,
        description: `How far to look back, in seconds: ${SERIES_WINDOW_SECONDS.min} to ${SERIES_WINDOW_SECONDS.max}.`,
        extensions: { minimum: SERIES_WINDOW_SECONDS.min, maximum: SERIES_WINDOW_SECONDS.max },
      }),
      stepSeconds: t.arg.int({
        description: `The length of a step, in seconds. It is rounded up to a multiple of 5, or of 60 for windows over an hour, and to what gives at most ${SERIES_POINTS} points. Omitted: as fine as it is kept, up to 720 points.`,
        extensions: { minimum: 1 },
      }),
      nodeId: t.arg.id({ description: 'Only this node. Omitted: all nodes together.' }),
    },
    resolve: (_, query, { core, requester }) => core.series.read(requester, query),
  }),
);

// The type `Viewer` tells the requester who it is and what it may do.

const ViewerKindEnum = wireEnum<CallingPrincipal['kind']>('ViewerKind', 'The kind of requester.', {
  admin: 'An administrator.',
  user: 'A user.',
});

const ScopeEnum = wireEnum<Scope>('Scope', 'What a user’s token allows.', {
  connect: 'Connect clients of the user.',
  invoke: 'Read the user’s own data and invoke actions of its clients.',
  host: 'Host sites of the user and ingest events.',
  mcp: 'Call actions of the user’s clients as an agent, over MCP, and nothing else.',
});

export const ModeEnum = wireEnum<Core['mode']>('Mode', 'How this deployment keeps its state.', {
  direct: 'One process keeps everything in memory.',
  shared: 'Several processes share one store.',
});

const Viewer = builder.objectRef<CallingPrincipal>('Viewer').implement({
  description: 'The requester, and the node that answers.',
  fields: fieldsOf((t) => ({
    kind: typed(ViewerKindEnum, 'The kind of requester.'),
    name: t.string({
      nullable: true,
      description:
        'The administrator’s name, as `admin:<name>` in the audit: the name of the token, `token-<n>` for the n-th configured token if it has no name, or the subject of a JWT. Null for a user.',
      resolve: (requester) => (requester.kind === 'admin' ? requester.name : null),
    }),
    userId: t.id({
      nullable: true,
      description: 'The requester’s canonical user id; null for an administrator.',
      resolve: (requester) => (requester.kind === 'user' ? requester.userId : null),
    }),
    scopes: t.field({
      type: [ScopeEnum],
      description: 'The scopes of the user’s token; empty for an administrator, whose rights are not scopes.',
      resolve: (requester) => (requester.kind === 'user' ? [...requester.scopes] : []),
    }),
    expiresAt: nullable.time('When the requester’s token expires; null if it does not expire.'),
    tokenId: t.id({
      nullable: true,
      description: 'The id of the requester’s token (`jti`), by which it can be revoked; null if it has none.',
      resolve: ({ token }) => token?.id ?? null,
    }),
    nodeId: t.id({ description: 'The id of the node that answers.', resolve: (_who, _args, { core }) => core.nodeId }),
    mode: t.field({
      type: ModeEnum,
      description: 'How this deployment keeps its state.',
      resolve: (_who, _args, { core }) => core.mode,
    }),
  })),
});

builder.queryField('viewer', (t) =>
  t.field({
    type: Viewer,
    description: 'The requester.',
    resolve: (_, _args, { requester }) => requireScope(requester, 'invoke'),
  }),
);
