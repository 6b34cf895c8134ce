/** Shows the plots of the overview: small multiples on one time axis. */
import type { OverviewSeriesQuery, Outcome } from '../../generated/console.ts';
import { BarsPlot } from '../plot/bars.tsx';
import { LinesPlot } from '../plot/lines.tsx';
import type { PlotTime } from '../plot/plot.tsx';
import type { TimeSpan } from '../plot/span.ts';
import { silentNodes } from '../shell/facts.tsx';
import { amount, clock, duration, whole } from '../ui/format.ts';
import { Loading } from '../ui/empty.tsx';
import { CutNotice } from '../ui/notice.tsx';
import { OUTCOME_ORDER, outcomeWord } from '../ui/status.tsx';
import { ClientsPlot, InFlightPlot, OldestWaitPlot, QueuedPlot, type PlotData } from './plots-state.tsx';
import { lastOf, mostOf, perMinute, pointsOf, sumOf, timeOf, within, type Points } from './series.ts';

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
