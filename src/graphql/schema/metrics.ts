/** The field `series`: how counters, gauges and durations changed over time. */
import { SERIES_LINES, SERIES_POINTS, SERIES_WINDOW_SECONDS } from '../../core/limits.ts';
import { SAMPLED_GAUGE_NAMES } from '../../core/metrics.ts';
import type { SeriesAnswer, SeriesView } from '../../core/metrics/series.ts';
import { builder } from './builder.ts';
import { CompletenessType, forAdmins, scanCost } from './page.ts';

const SeriesType = builder.objectRef<SeriesView>('Series').implement({
  description: 'One line of a plot: a counter, a gauge, or a quantile of a duration, in equal steps of time.',
  fields: (t) => ({
    name: t.exposeString('name', { description: 'The name as it was requested, such as `commands_ended`.' }),
    label: t.exposeString('label', {
      nullable: true,
      description:
        'The value of the metric’s label, such as `completed`; null if the metric has no label, or the line is a quantile over all of its labels.',
    }),
    nodeId: t.exposeID('nodeId', {
      nullable: true,
      description: 'The id of the requested node; null if the line is of all nodes together.',
    }),
    from: t.expose('from', { type: 'DateTime', description: 'When the first step begins.' }),
    stepSeconds: t.exposeInt('stepSeconds', { description: 'The length of each step, in seconds.' }),
    points: t.exposeFloatList('points', {
      nullable: { list: false, items: true },
      description:
        'One value for each step, the oldest first; the last step is still going on. For a counter: how often it happened in the step. For a gauge: its value when the step ended, of all nodes together; of `oldest_wait_seconds` the highest in the step, of any node. For a quantile: seconds, at most 6 % off. Null: nothing was recorded in the step, for example because the node was not running, or nothing was measured in it.',
    }),
  }),
});

const SeriesListType = builder.objectRef<SeriesAnswer>('SeriesList').implement({
  description: `Series of one window: at most ${SERIES_LINES}, of at most ${SERIES_POINTS} points each.`,
  fields: (t) => ({
    items: t.expose('items', {
      type: [SeriesType],
      complexity: { field: 1, multiplier: SERIES_LINES },
      description:
        'The series, in the order of the requested names and then of labels. Labels that did not occur in the window are left out.',
    }),
    completeness: t.expose('completeness', {
      type: CompletenessType,
      description: 'Which nodes contributed, and which did not answer.',
    }),
  }),
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
