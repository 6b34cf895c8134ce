/** Shows the plots of the overview whose values are read at the end of each step: waits, queues and links. */
import { LinesPlot } from '../plot/lines.tsx';
import type { PlotMark, PlotTime } from '../plot/plot.tsx';
import { clock, duration, whole } from '../ui/format.ts';
import { lastOf, mostOf, pointsOf, totalOf, type Most, type Points, type SeriesItem } from './series.ts';

export type PlotData = {
  readonly items: readonly SeriesItem[];
  readonly time: PlotTime;
  readonly marks: readonly PlotMark[];
};

export function OldestWaitPlot({ items, time, marks }: PlotData) {
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

export function QueuedPlot({ items, time, marks }: PlotData) {
  const points = pointsOf(items, 'commands_queued');
  const most = mostOf(points);
  const summary = most ? mostText(most, points, time) : 'No command was queued for a link at the end of any step.';
  return <CountPlot title="Queued" unit="commands" name="queued" {...{ points, time, marks, summary }} />;
}

export function InFlightPlot({ items, time, marks }: PlotData) {
  const points = pointsOf(items, 'commands_in_flight');
  const most = mostOf(points);
  const summary = most ? mostText(most, points, time) : 'No command was in flight at the end of any step.';
  return (
    <CountPlot title="In flight" unit="sent and not ended" name="in flight" {...{ points, time, marks, summary }} />
  );
}

export function ClientsPlot({ items, time, marks }: PlotData) {
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

function timeText(slot: number, time: PlotTime): string {
  return clock(new Date(time.from + slot * time.stepMs).toISOString());
}
