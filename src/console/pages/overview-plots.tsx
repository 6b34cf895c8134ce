/** Shows the plots of the overview on one time axis, and computes the figures of the overview's time window. */
import type { Outcome, OverviewSeriesQuery } from '../../../generated/console.ts';
import { BarsPlot } from '../plot/bars.tsx';
import { LinesPlot } from '../plot/lines.tsx';
import type { TimeSpan } from '../plot/span.tsx';
import type { PlotTime } from '../plot/pointer.ts';
import type { PlotMark } from '../plot/plot.tsx';
import { silentNodes } from '../shell/facts.tsx';
import { CutNotice, Loading } from '../ui/notices.tsx';
import { OUTCOME_ORDER, outcomeShape, outcomeWord } from '../ui/values.tsx';
import { amount, duration, whole } from '../ui/amounts.ts';
import { clockAt } from '../ui/zones.ts';
import { LONG_WAIT_MS } from '../shell/facts.tsx';

type PlotsProps = {
  readonly series: OverviewSeriesQuery['series'];
  /** The part of the series that is shown; null: all of it. */
  readonly span: TimeSpan | null;
  /** Whether the answer for another window is awaited. */
  readonly isLoading: boolean;
};

export function OverviewPlots({ series, span, isLoading }: PlotsProps) {
  const items = span === null ? series.items : within(series.items, span);
  const time = timeOf(items);
  if (!time && isLoading) return <Loading what="the time series" />;
  if (!time) return <p class="soft">The relay has no series of this span.</p>;
  const marks = silentNodes.value.map(({ nodeId, updatedAt }) => ({
    at: Date.parse(updatedAt),
    text: `${nodeId} silent`,
  }));
  const data = { items, time, marks, missing: missingText(series.completeness) };
  return (
    <section class="sec" aria-label="The window in plots">
      <CutNotice completeness={series.completeness} named={silentNodes.value.map(({ nodeId }) => nodeId)} />
      <div class="plots">
        <EndsPlot {...data} />
        <DurationPlot {...data} />
        {ONE_LINE_PLOTS.map((plot) => (
          <OneLinePlot key={plot.title} plot={plot} {...data} />
        ))}
      </div>
    </section>
  );
}

type PlotData = {
  readonly items: readonly SeriesItem[];
  readonly time: PlotTime;
  readonly marks: readonly PlotMark[];
  /** What the sentence below each plot adds about nodes whose data are missing; empty if none are missing. */
  readonly missing: string;
};

/**
 * Returns the nodes whose data the series lack. This must be shown, because the figures would otherwise seem to cover
 * all nodes.
 */
export function missingNodes({ sources }: OverviewSeriesQuery['series']['completeness']): readonly string[] {
  const named = sources.flatMap(({ complete, nodeId }) => (complete || nodeId === null ? [] : nodeId));
  const silent = silentNodes.value.map(({ nodeId }) => nodeId);
  return [...new Set([...named, ...silent])];
}

function missingText(completeness: OverviewSeriesQuery['series']['completeness']): string {
  const names = missingNodes(completeness);
  return names.length === 0 ? '' : ` Without ${names.join(' and ')}, which did not answer: what it did is not known.`;
}

/**
 * The outcomes from the bottom of a stacked bar to its top: the normal one first, and those that must be noticed last.
 */
const STACK: readonly Outcome[] = ['COMPLETED', 'CANCELLED', 'FAILED', 'EXPIRED', 'OUTCOME_UNKNOWN'];

function EndsPlot({ items, time, marks, missing }: PlotData) {
  const layers = STACK.map((outcome) => ({
    name: outcomeWord(outcome).toLowerCase(),
    points: perMinute(pointsOf(items, 'commands_ended', outcome.toLowerCase()), time),
    fill: `f-${outcomeShape(outcome)}`,
    loud: outcome === 'EXPIRED' || outcome === 'OUTCOME_UNKNOWN',
  }));
  const counts = OUTCOME_ORDER.map((outcome) => {
    const count = sumOf(pointsOf(items, 'commands_ended', outcome.toLowerCase()));
    return `${whole(count)} ${outcomeWord(outcome).toLowerCase()}`;
  });
  return (
    <BarsPlot
      title="Ends by outcome"
      unit="a minute"
      time={time}
      marks={marks}
      layers={layers}
      text={amount}
      summary={`In this window: ${counts.join(', ')}.${missing}`}
    />
  );
}

function DurationPlot({ items, time, marks, missing }: PlotData) {
  const p50 = inMs(pointsOf(items, 'command_p50'));
  const p99 = inMs(pointsOf(items, 'command_p99'));
  const last = [lastOf(p50), lastOf(p99)];
  const most = mostOf(p99);
  const said =
    last[0] === null || last[1] === null || !most
      ? 'No command ended in this window.'
      : `The last p50 was ${duration(last[0] ?? 0)}, the last p99 ${duration(last[1] ?? 0)}. The highest p99 was ${duration(most.value)}, at ${timeText(most.at, time)}.`;
  const summary = said + missing;
  return (
    <LinesPlot
      title="Admission to end"
      unit="logarithmic"
      time={time}
      marks={marks}
      summary={summary}
      lines={[
        { name: 'p99', look: 'strong', points: p99 },
        { name: 'p50', look: 'quiet', points: p50 },
      ]}
      text={duration}
      tickText={powerText}
      log
    />
  );
}

type OneLine = {
  readonly title: string;
  readonly unit: string;
  /** The name of the line. */
  readonly name: string;
  readonly pointsOf: (items: readonly SeriesItem[], time: PlotTime) => Points;
  /** How the plot is drawn (see `LinesPlot`). */
  readonly look: Pick<Parameters<typeof LinesPlot>[0], 'text' | 'tickText' | 'log' | 'area' | 'kind' | 'bound'>;
  /**
   * Returns the sentence below the plot. `most`: the largest value. `at`: the time of the largest value. `last`: the
   * latest value. `sum`: the number of admitted commands.
   */
  readonly says: (of: {
    readonly most: string;
    readonly at: string;
    readonly last: string;
    readonly sum: number;
  }) => string;
  /** The sentence below a plot that has no value above 0. */
  readonly none: string;
};

const COUNTS = { text: whole, kind: 'whole', area: true } as const;
const mostAndLast: OneLine['says'] = ({ most, at, last }) => `The most was ${most}, at ${at}; the last was ${last}.`;

const LONG_WAIT = { value: LONG_WAIT_MS, text: `bound ${LONG_WAIT_MS / 1000} s` };

const ONE_LINE_PLOTS: readonly OneLine[] = [
  {
    title: 'Admitted',
    unit: 'a minute',
    name: 'admitted',
    pointsOf: (items, time) => perMinute(pointsOf(items, 'commands_admitted'), time),
    look: { text: amount, area: true },
    says: ({ most, at, sum }) => `${whole(sum)} in this window; the most was ${most} a minute, at ${at}.`,
    none: 'Nothing was admitted in this window.',
  },
  {
    title: 'Queued to dispatched',
    unit: 'p99, logarithmic',
    name: 'p99',
    pointsOf: (items) => inMs(pointsOf(items, 'dispatch_p99')),
    look: { text: duration, tickText: powerText, log: true },
    says: ({ most, at }) => `The highest p99 was ${most}, at ${at}: how long a command waited for its client’s link.`,
    none: 'Nothing was dispatched in this window.',
  },
  {
    title: 'Oldest waiter',
    unit: 'how long it has waited',
    name: 'oldest',
    pointsOf: (items) => inMs(pointsOf(items, 'oldest_wait_seconds')),
    look: { text: duration, tickText, kind: 'duration', area: true, bound: LONG_WAIT },
    says: ({ most, at, last }) => `The longest was ${most}, at ${at}; the last was ${last}.`,
    none: 'No caller waited at the end of any step.',
  },
  {
    title: 'Queued',
    unit: 'commands',
    name: 'queued',
    pointsOf: (items) => pointsOf(items, 'commands_queued'),
    look: COUNTS,
    says: mostAndLast,
    none: 'No command was queued for a link at the end of any step.',
  },
  {
    title: 'In flight',
    unit: 'sent and not ended',
    name: 'in flight',
    pointsOf: (items) => pointsOf(items, 'commands_in_flight'),
    look: COUNTS,
    says: mostAndLast,
    none: 'No command was in flight at the end of any step.',
  },
  {
    title: 'Clients',
    unit: 'connected',
    name: 'clients',
    pointsOf: (items) => totalOf(items, 'client_links'),
    look: COUNTS,
    says: mostAndLast,
    none: 'No client was connected at the end of any step.',
  },
];

function OneLinePlot({ plot, items, time, marks, missing }: PlotData & { readonly plot: OneLine }) {
  const { title, unit, name, look, says, none } = plot;
  const points = plot.pointsOf(items, time);
  const most = mostOf(points);
  const said = most
    ? says({
        most: look.text(most.value),
        at: timeText(most.at, time),
        last: look.text(lastOf(points) ?? 0),
        sum: sumOf(pointsOf(items, 'commands_admitted')),
      })
    : none;
  const summary = said + missing;
  return (
    <LinesPlot
      title={title}
      unit={unit}
      time={time}
      marks={marks}
      summary={summary}
      lines={[{ name, look: 'strong', points }]}
      {...look}
    />
  );
}

const timeText = (slot: number, time: PlotTime): string => clockAt(time.from + slot * time.stepMs);

/** Returns the label for a power of ten of a millisecond: `10 ms`, `1 s`, `100 s`. */
function powerText(ms: number): string {
  return ms < 1000 ? `${ms} ms` : `${ms / 1000} s`;
}

/** Returns the axis label for a round duration: `0 s`, `1.5 s`, `10 s`, `2 m`, `1 h 30 m`. */
function tickText(ms: number): string {
  if (ms === 0) return '0 s';
  return duration(ms)
    .replace(/\.?0+ s$/, (zeros) => (zeros.startsWith('.') ? ' s' : zeros))
    .replace(/(\.\d)0 s$/, '$1 s')
    .replace(/ 0 [sm]$/, '');
}

// Computes figures and plot points from the relay's time series.

type SeriesItem = OverviewSeriesQuery['series']['items'][number];
type Points = readonly (number | null)[];

/** The figures of a time window. Times are epoch milliseconds. */
export type WindowFigures = {
  readonly from: number;
  readonly to: number;
  readonly admitted: number;
  /** The number of admitted commands per minute, over the recorded steps; null if no step was recorded. */
  readonly perMinute: number | null;
  readonly ends: Readonly<Record<Outcome, number>>;
  readonly endsTotal: number;
  /**
   * How long commands took, in milliseconds. Null if none ended, and for a span, because the relay computes quantiles
   * only for windows up to now.
   */
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
};

/** Returns the figures of the answer's window, or of the chosen span in it; null if the answer has no series for it. */
export function windowOf(
  { series, whole: quantiles }: OverviewSeriesQuery,
  span: TimeSpan | null,
): WindowFigures | null {
  const items = span === null ? series.items : within(series.items, span);
  const time = timeOf(items);
  if (!time) return null;
  const admitted = pointsOf(items, 'commands_admitted');
  const minutes = (admitted.filter((point) => point !== null).length * time.stepMs) / 60_000;
  const endsOf = (outcome: Outcome): number => sumOf(pointsOf(items, 'commands_ended', outcome.toLowerCase()));
  const ends = {
    COMPLETED: endsOf('COMPLETED'),
    FAILED: endsOf('FAILED'),
    CANCELLED: endsOf('CANCELLED'),
    EXPIRED: endsOf('EXPIRED'),
    OUTCOME_UNKNOWN: endsOf('OUTCOME_UNKNOWN'),
  };
  const msOf = (name: string): number | null => {
    const points = quantiles.items.find((item) => item.name === name && item.label === null)?.points ?? [];
    return span === null ? lastOf(inMs(points)) : null;
  };
  return {
    from: time.from,
    to: time.from + time.slots * time.stepMs,
    admitted: sumOf(admitted),
    perMinute: minutes === 0 ? null : sumOf(admitted) / minutes,
    ends,
    endsTotal: sumOf(Object.values(ends)),
    p50Ms: msOf('command_p50'),
    p99Ms: msOf('command_p99'),
  };
}

/** The names of the series that the overview reads. */
export const SERIES_NAMES = [
  ...['commands_ended', 'commands_admitted', 'command_p50', 'command_p99', 'dispatch_p99'],
  ...['oldest_wait_seconds', 'commands_queued', 'commands_in_flight', 'client_links'],
];

/** Returns the steps of each series that overlap the span. A series without such steps is left out. */
function within(items: readonly SeriesItem[], { from, to }: TimeSpan): readonly SeriesItem[] {
  return items.flatMap((item) => {
    const [start, stepMs] = [Date.parse(item.from), item.stepSeconds * 1000];
    const first = Math.max(0, Math.floor((from - start) / stepMs));
    const points = item.points.slice(first, Math.max(first, Math.ceil((to - start) / stepMs)));
    return points.length === 0 ? [] : [{ ...item, from: new Date(start + first * stepMs).toISOString(), points }];
  });
}

function timeOf(items: readonly SeriesItem[]): PlotTime | null {
  const [first] = items;
  if (!first) return null;
  return { from: Date.parse(first.from), stepMs: first.stepSeconds * 1000, slots: first.points.length };
}

/** Returns the points of one series, which are all null if the series is missing. */
function pointsOf(items: readonly SeriesItem[], name: string, label: string | null = null): Points {
  const found = items.find((item) => item.name === name && (label === null || item.label === label));
  return found?.points ?? items[0]?.points.map(() => null) ?? [];
}

/**
 * Returns the points of a series, summed over all label values. A sum is null where `commands_admitted` has no value.
 */
function totalOf(items: readonly SeriesItem[], name: string): Points {
  const lines = items.filter((item) => item.name === name);
  const known = items.find((item) => item.name === 'commands_admitted')?.points ?? [];
  return known.map((value, i) => (value === null ? null : sumOf(lines.map(({ points }) => points[i] ?? 0))));
}

const inMs = (points: Points): Points => points.map((value) => (value === null ? null : value * 1000));

function perMinute(points: Points, time: PlotTime): Points {
  return points.map((value) => (value === null ? null : (value * 60_000) / time.stepMs));
}

const sumOf = (points: Points): number => points.reduce((sum: number, value) => sum + (value ?? 0), 0);

const lastOf = (points: Points): number | null => points.findLast((value) => value !== null) ?? null;

type Most = { readonly value: number; readonly at: number };

/** Returns the largest value and its index; null if no value is above 0. */
function mostOf(points: Points): Most | null {
  let most: Most | null = null;
  points.forEach((value, at) => {
    if (value !== null && value > (most?.value ?? 0)) most = { value, at };
  });
  return most;
}
