/** Shows the plots of the overview: small multiples on one time axis. */
import type { Outcome, OverviewSeriesQuery } from '../../../generated/console.ts';
import { BarsPlot, LinesPlot, type PlotMark, type PlotTime } from '../plot/plot.tsx';
import type { TimeSpan } from '../plot/span.tsx';
import { silentNodes } from '../shell/facts.tsx';
import { CutNotice, Loading } from '../ui/page.tsx';
import { OUTCOME_ORDER, outcomeWord } from '../ui/values.tsx';
import { amount, clock, duration, whole } from '../ui/words.ts';

type Data = PlotData;

type PlotsProps = {
  readonly series: OverviewSeriesQuery['series'];
  /** The part of the series that is shown; null: all. */
  readonly span: TimeSpan | null;
  /** Whether another answer is awaited. */
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
  const data = { items, time, marks };
  return (
    <section class="sec" aria-label="The window in plots">
      <CutNotice completeness={series.completeness} />
      <div class="plots">
        <EndsPlot {...data} />
        <DurationPlot {...data} />
        <AdmittedPlot {...data} />
        <DispatchPlot {...data} />
        <OldestWaitPlot {...data} />
        <QueuedPlot {...data} />
        <InFlightPlot {...data} />
        <ClientsPlot {...data} />
      </div>
    </section>
  );
}

/** The outcomes from the bottom of the stack to its top: the normal one first, those that must not be missed last. */
const STACK: readonly Outcome[] = ['COMPLETED', 'CANCELLED', 'FAILED', 'EXPIRED', 'OUTCOME_UNKNOWN'];
const FILLS: Readonly<Record<Outcome, string>> = {
  COMPLETED: 'f-completed',
  CANCELLED: 'f-cancelled',
  FAILED: 'f-failed',
  EXPIRED: 'f-expired',
  OUTCOME_UNKNOWN: 'f-unknown',
};

function EndsPlot({ items, time, marks }: Data) {
  const layers = STACK.map((outcome) => ({
    name: outcomeWord(outcome).toLowerCase(),
    points: perMinute(pointsOf(items, 'commands_ended', outcome.toLowerCase()), time),
    fill: FILLS[outcome],
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
      {...{ time, marks, layers }}
      text={amount}
      summary={`In this window: ${counts.join(', ')}.`}
    />
  );
}

function DurationPlot({ items, time, marks }: Data) {
  const p50 = inMs(pointsOf(items, 'command_p50'));
  const p99 = inMs(pointsOf(items, 'command_p99'));
  const last = [lastOf(p50), lastOf(p99)];
  const most = mostOf(p99);
  const summary =
    last[0] === null || last[1] === null || !most
      ? 'No command ended in this window.'
      : `The last p50 was ${duration(last[0] ?? 0)}, the last p99 ${duration(last[1] ?? 0)}. The highest p99 was ${duration(most.value)}, at ${timeText(most.at, time)}.`;
  return (
    <LinesPlot
      title="Admission to end"
      unit="logarithmic"
      {...{ time, marks, summary }}
      lines={[
        { name: 'p99', look: 'strong', points: p99 },
        { name: 'p50', look: 'quiet', points: p50 },
      ]}
      text={duration}
      tickText={tickOf}
      log
    />
  );
}

function AdmittedPlot({ items, time, marks }: Data) {
  const points = perMinute(pointsOf(items, 'commands_admitted'), time);
  const most = mostOf(points);
  const sum = whole(sumOf(pointsOf(items, 'commands_admitted')));
  const summary = most
    ? `${sum} in this window; the most was ${amount(most.value)} a minute, at ${timeText(most.at, time)}.`
    : 'Nothing was admitted in this window.';
  return (
    <LinesPlot
      title="Admitted"
      unit="a minute"
      {...{ time, marks, summary }}
      lines={[{ name: 'admitted', look: 'strong', points }]}
      text={amount}
      area
    />
  );
}

function DispatchPlot({ items, time, marks }: Data) {
  const points = inMs(pointsOf(items, 'dispatch_p99'));
  const most = mostOf(points);
  const summary = most
    ? `The highest p99 was ${duration(most.value)}, at ${timeText(most.at, time)}: how long a command waited for its client’s link.`
    : 'Nothing was dispatched in this window.';
  return (
    <LinesPlot
      title="Queued to dispatched"
      unit="p99, logarithmic"
      {...{ time, marks, summary }}
      lines={[{ name: 'p99', look: 'strong', points }]}
      text={duration}
      tickText={tickOf}
      log
    />
  );
}

function inMs(points: Points): Points {
  return points.map((value) => (value === null ? null : value * 1000));
}

function timeText(slot: number, time: PlotTime): string {
  return clock(new Date(time.from + slot * time.stepMs).toISOString());
}

/** Returns the label of a power of ten of a millisecond: `10 ms`, `1 s`, `100 s`. */
function tickOf(ms: number): string {
  return ms < 1000 ? `${ms} ms` : `${ms / 1000} s`;
}

// Shows the plots of the overview whose values are read at the end of each step: waits, queues and links.

type PlotData = {
  readonly items: readonly SeriesItem[];
  readonly time: PlotTime;
  readonly marks: readonly PlotMark[];
};

function OldestWaitPlot({ items, time, marks }: PlotData) {
  const points = pointsOf(items, 'oldest_wait_seconds').map((value) => (value === null ? null : value * 1000));
  const most = mostOf(points);
  const summary = most
    ? `The longest was ${duration(most.value)}, at ${timeText(most.at, time)}; the last was ${duration(lastOf(points) ?? 0)}.`
    : 'No caller waited at the end of any step.';
  return (
    <LinesPlot
      title="Oldest waiter"
      unit="how long it has waited"
      {...{ time, marks, summary }}
      lines={[{ name: 'oldest', look: 'strong', points }]}
      text={duration}
      tickText={tickText}
      area
    />
  );
}

function QueuedPlot({ items, time, marks }: PlotData) {
  const points = pointsOf(items, 'commands_queued');
  const most = mostOf(points);
  const summary = most ? mostText(most, points, time) : 'No command was queued for a link at the end of any step.';
  return <CountPlot title="Queued" unit="commands" name="queued" {...{ points, time, marks, summary }} />;
}

function InFlightPlot({ items, time, marks }: PlotData) {
  const points = pointsOf(items, 'commands_in_flight');
  const most = mostOf(points);
  const summary = most ? mostText(most, points, time) : 'No command was in flight at the end of any step.';
  return (
    <CountPlot title="In flight" unit="sent and not ended" name="in flight" {...{ points, time, marks, summary }} />
  );
}

function ClientsPlot({ items, time, marks }: PlotData) {
  const points = totalOf(items, 'client_links');
  const most = mostOf(points);
  const summary = most ? mostText(most, points, time) : 'No client was connected at the end of any step.';
  return <CountPlot title="Clients" unit="connected" name="clients" {...{ points, time, marks, summary }} />;
}

type CountProps = Omit<PlotData, 'items'> & {
  readonly title: string;
  readonly unit: string;
  readonly name: string;
  readonly summary: string;
  readonly points: Points;
};

function CountPlot({ title, unit, name, points, time, marks, summary }: CountProps) {
  const lines = [{ name, look: 'strong', points }] as const;
  return <LinesPlot {...{ title, unit, time, marks, summary, lines }} text={whole} isWhole area />;
}

function mostText(most: Most, points: Points, time: PlotTime): string {
  return `The most was ${whole(most.value)}, at ${timeText(most.at, time)}; the last was ${whole(lastOf(points) ?? 0)}.`;
}

/** Returns the text of a duration on the axis, without the zeros of a fraction. */
function tickText(ms: number): string {
  return ms === 0 ? '0 s' : duration(ms).replace(/\.0+ s$/, ' s');
}

// Turns the time series of the relay into what the plots of the overview show.

type SeriesItem = OverviewSeriesQuery['series']['items'][number];
type Points = readonly (number | null)[];

export const SERIES_NAMES = [
  ...['commands_ended', 'commands_admitted', 'command_p50', 'command_p99', 'dispatch_p99'],
  ...['oldest_wait_seconds', 'commands_queued', 'commands_in_flight', 'client_links'],
];

/**
 * Returns the part of each series that lies in the span. It includes the steps that lie in the span only partly. Series
 * without a step in the span are left out.
 */
function within(items: readonly SeriesItem[], { from, to }: TimeSpan): readonly SeriesItem[] {
  return items.flatMap((item) => {
    const [start, stepMs] = [Date.parse(item.from), item.stepSeconds * 1000];
    const first = Math.max(0, Math.floor((from - start) / stepMs));
    const points = item.points.slice(first, Math.max(first, Math.ceil((to - start) / stepMs)));
    return points.length === 0 ? [] : [{ ...item, from: new Date(start + first * stepMs).toISOString(), points }];
  });
}

/** Returns the time range of the series; null if there are no series. */
function timeOf(items: readonly SeriesItem[]): PlotTime | null {
  const [first] = items;
  if (!first) return null;
  return { from: Date.parse(first.from), stepMs: first.stepSeconds * 1000, slots: first.points.length };
}

/** Returns the points of one series. All of them are null if there is no such series. */
function pointsOf(items: readonly SeriesItem[], name: string, label: string | null = null): Points {
  const found = items.find((item) => item.name === name && (label === null || item.label === label));
  return found?.points ?? items[0]?.points.map(() => null) ?? [];
}

/**
 * Returns the sums of the points of a series over all its labels. A sum is null where the series `commands_admitted`
 * has no value.
 */
function totalOf(items: readonly SeriesItem[], name: string): Points {
  const lines = items.filter((item) => item.name === name);
  const known = items.find((item) => item.name === 'commands_admitted')?.points ?? [];
  return known.map((value, i) => (value === null ? null : sumOf(lines.map(({ points }) => points[i] ?? 0))));
}

/** Converts counts per step to counts per minute. */
function perMinute(points: Points, time: PlotTime): Points {
  return points.map((value) => (value === null ? null : (value * 60_000) / time.stepMs));
}

function sumOf(points: Points): number {
  return points.reduce((sum: number, value) => sum + (value ?? 0), 0);
}

/** Returns the latest known value; null if none is known. */
function lastOf(points: Points): number | null {
  return points.findLast((value) => value !== null) ?? null;
}

type Most = { readonly value: number; readonly at: number };

/** Returns the largest known value and its index; null if none is above 0. */
function mostOf(points: Points): Most | null {
  let most: Most | null = null;
  points.forEach((value, at) => {
    if (value !== null && value > (most?.value ?? 0)) most = { value, at };
  });
  return most;
}
