/** Shows the overview: current figures, how calls ended, plots over a chosen time, longest waits and fullest scopes. */
import { useMemo, useState } from 'preact/hooks';
import {
  OverviewDocument,
  OverviewSeriesDocument,
  type Outcome,
  type OverviewQuery,
  type OverviewSeriesQuery,
} from '../../../generated/console.ts';
import { useQuery } from '../api/query.ts';
import { now } from '../api/request.ts';
import { callHref, pagePath } from '../base.ts';
import { InvokeButton } from '../invoke/open.tsx';
import {
  BarsPlot,
  KEPT_MS,
  LinesPlot,
  SpanDialog,
  useSpan,
  type PlotMark,
  type PlotTime,
  type TimeSpan,
} from '../plot/plot.tsx';
import { LONG_WAIT_MS, PauseButton, Sources, isEveryNodeHeard, silentNodes } from '../shell/facts.tsx';
import { useUrlState, useKeys } from '../ui/filters.tsx';
import { CutNotice, ErrorNotice, Information, Loading, PageHead, Readouts, Section, Views } from '../ui/page.tsx';
import { Table } from '../ui/table.tsx';
import { OUTCOME_ORDER, OutcomeMark, outcomeWord } from '../ui/values.tsx';
import { age, amount, clockAt, duration, percent, plural, whole, zoneName } from '../ui/words.ts';
import { WindowFailures } from './failures.tsx';
import { SCOPE_COLUMNS, WAIT_COLUMNS, outcomeCounter, queueFigures, shareOf } from './columns.tsx';

/** The pause after each answer before the overview is read again, in milliseconds. */
const EVERY_MS = 3_000;
const WAITS_SHOWN = ['Stage', 'Action', 'Client', 'Caller', 'Waits'];
/** The number of admission scopes that the page shows: the fullest ones. */
const SCOPES_SHOWN = 5;

export function OverviewPage() {
  const query = useQuery(OverviewDocument, {}, { everyMs: EVERY_MS });
  const { span, windowSeconds, stepSeconds, everyMs } = useRange();
  const { seconds, text } = useWindow();
  const plots = useQuery(OverviewSeriesDocument, { names: SERIES_NAMES, windowSeconds, stepSeconds }, { everyMs });
  return (
    <>
      <PageHead
        title="Overview"
        acts={
          <>
            <PauseButton isPolled />
            <InvokeButton />
          </>
        }
      />
      <ErrorNotice query={query} what="the overview" />
      <Sources completeness={query.data?.delivery.nodes.completeness} />
      {!query.data && query.loading && <Loading what="the overview" />}
      {query.data && (
        <>
          <Readouts figures={figuresOf(query.data)} />
          <Ends data={query.data} />
          <WindowFailures seconds={seconds} text={text} />
          <ErrorNotice query={plots} what="the time series" />
          <RangeBar />
          {plots.data && <OverviewPlots series={plots.data.series} span={span} isLoading={plots.loading} />}
          <div class="cols">
            <LongestWaits data={query.data} />
            <FullestScopes data={query.data} />
          </div>
        </>
      )}
    </>
  );
}

function LongestWaits({ data }: { readonly data: OverviewQuery }) {
  const { nodes } = data.pendingRpcs;
  const { count } = data.pendingRpcCount;
  return (
    <Section
      title="Who waits longest"
      about={count > 0 ? `${nodes.length} of ${count}` : undefined}
      side={<a href={pagePath('waits')}>All waits</a>}
    >
      <Table
        caption="The longest waits"
        columns={WAIT_COLUMNS.filter(({ head }) => WAITS_SHOWN.includes(head))}
        rows={nodes}
        keyOf={({ rpcId }) => rpcId}
        hrefOf={callHref}
        none={
          isEveryNodeHeard()
            ? 'No caller waits. Every caller has its answer.'
            : 'No caller waits on a node that answers. Those of a silent node are not known.'
        }
      />
    </Section>
  );
}

function FullestScopes({ data }: { readonly data: OverviewQuery }) {
  const fullest = [...data.delivery.tenants.nodes]
    .sort((one, other) => shareOf(other) - shareOf(one) || other.reservedCommands - one.reservedCommands)
    .slice(0, SCOPES_SHOWN);
  return (
    <Section
      title="Fullest admission scopes"
      about="held now, of what each may hold at once"
      side={<a href={pagePath('capacity')}>All scopes</a>}
    >
      <Table
        caption="The fullest scopes"
        columns={SCOPE_COLUMNS}
        rows={fullest}
        keyOf={({ scopeId }) => scopeId}
        look="small"
        none="No scope holds a reservation: every admitted command has ended."
      />
    </Section>
  );
}

/** Returns the current figures. */
function figuresOf({ delivery, pendingRpcs, pendingRpcCount }: OverviewQuery) {
  const live = delivery.nodes.nodes.filter(({ stale }) => !stale);
  const links = live.reduce((sum, node) => sum + node.links, 0);
  const unfinished = live.reduce((sum, node) => sum + node.unfinishedCommands, 0);
  const [oldest] = pendingRpcs.nodes;
  const waited = oldest ? now.value - Date.parse(oldest.createdAt) : 0;
  const isLong = waited > LONG_WAIT_MS;
  return [
    {
      name: 'Links',
      value: whole(links),
      about: recordedText('links') ?? `on ${plural(live.length, 'node')}`,
    },
    {
      name: 'Callers waiting',
      value: whole(pendingRpcCount.count),
      about: recordedText('connectionWaiters') ?? 'for an answer',
    },
    {
      name: 'Oldest waiter',
      value: oldest ? age(waited) : '–',
      about: !isEveryNodeHeard() ? 'on the nodes that answer' : isLong ? 'over the bound of 60 s' : 'the bound is 60 s',
      isOver: isLong,
    },
    {
      name: 'Unfinished',
      value: whole(unfinished),
      about: recordedText('unfinishedCommands') ?? 'commands that did not end',
    },
    ...queueFigures(delivery.summary),
  ];
}

/** Returns what silent nodes held of this when they last reported, as text; null if no node is silent. */
function recordedText(name: 'links' | 'connectionWaiters' | 'unfinishedCommands'): string | null {
  if (isEveryNodeHeard()) return null;
  return `and ${whole(silentNodes.value.reduce((sum, node) => sum + node[name], 0))} as last recorded`;
}

function Ends({ data }: { readonly data: OverviewQuery }) {
  const counts = OUTCOME_ORDER.map((outcome) => ({ outcome, count: countOf(data, outcomeCounter(outcome)) }));
  const sum = counts.reduce((total, { count }) => total + count, 0);
  return (
    <Section
      title="How calls ended"
      about={`${plural(sum, 'end')} since each node started, as the relay recorded them`}
    >
      <p class="ends">
        {counts.map(({ outcome, count }) => (
          <a key={outcome} href={pagePath(`calls?outcome=${outcome.toLowerCase()}`)}>
            <OutcomeMark outcome={outcome} /> <b>{whole(count)}</b>{' '}
            <span class="share">{sum === 0 ? '' : percent(count / sum)}</span>
          </a>
        ))}
      </p>
    </Section>
  );
}

function countOf({ delivery }: OverviewQuery, name: string): number {
  const counters = delivery.nodes.nodes.flatMap((node) => node.counters);
  return counters.filter((counter) => counter.name === name).reduce((sum, { value }) => sum + value, 0);
}

// Chooses the time that the plots of the overview show: a window up to now, or a span between two times. The URL keeps
// the choice.

type Window = { readonly name: string; readonly seconds: number; readonly stepSeconds: number; readonly text: string };

const DEFAULT: Window = { name: '15m', seconds: 900, stepSeconds: 15, text: '15 min' };
const WINDOWS: readonly Window[] = [
  DEFAULT,
  { name: '60m', seconds: 3600, stepSeconds: 60, text: '60 min' },
  { name: '6h', seconds: 21_600, stepSeconds: 300, text: '6 h' },
  { name: '24h', seconds: 86_400, stepSeconds: 1200, text: '24 h' },
];
/** The pause before the series of a window are read again, in milliseconds: less than a step of the shortest one. */
const RANGE_EVERY_MS = 10_000;
/** The approximate number of steps into which a chosen span is divided. */
const STEPS = 60;

type PlotRange = {
  /** The part of the answer that is shown. Null: all of it. */
  readonly span: TimeSpan | null;
  /** The window to request from the relay, in seconds. The relay answers windows up to now only. */
  readonly windowSeconds: number;
  readonly stepSeconds: number;
  /**
   * The pause before the series are read again, in milliseconds. Undefined for a chosen span, because the past does not
   * change.
   */
  readonly everyMs: number | undefined;
};

function useRange(): PlotRange {
  const { span } = useSpan();
  const { seconds, stepSeconds } = useWindow();
  const ofSpan = useMemo(() => span && windowOf(span), [span]);
  return ofSpan ?? { span: null, windowSeconds: seconds, stepSeconds, everyMs: RANGE_EVERY_MS };
}

function windowOf(span: TimeSpan): PlotRange {
  const stepSeconds = Math.max(5, Math.ceil((span.to - span.from) / 1000 / STEPS));
  const back = Math.min(KEPT_MS, Math.max(0, Date.now() - span.from)) / 1000;
  const windowSeconds = Math.min(KEPT_MS / 1000, Math.ceil(back) + stepSeconds);
  return { span, windowSeconds, stepSeconds, everyMs: undefined };
}

function useWindow(): Window {
  const { values } = useUrlState();
  return WINDOWS.find(({ name }) => name === values['window']) ?? DEFAULT;
}

/**
 * Shows links to the windows, and the button that chooses a span. Keys: `z` chooses a span, `[` and `]` shorten and
 * lengthen the span or the window.
 */
function RangeBar() {
  const { values, hrefWith, change } = useUrlState();
  const { span, fault: spanFault, choose } = useSpan();
  const chosen = useWindow();
  const name = values['window'];
  const fault = spanFault ?? (name === undefined || name === chosen.name ? null : `There is no window “${name}”.`);
  const [asking, setAsking] = useState(false);
  const open = (): void => setAsking(true);
  const move = (by: 1 | -1): void => {
    if (span !== null) return choose(by < 0 ? halfOf(span) : twice(span));
    const next = WINDOWS[WINDOWS.indexOf(chosen) + by];
    if (next !== undefined) change({ window: next.name, from: null, to: null });
  };
  useKeys({ z: open, '[': () => move(-1), ']': () => move(1) });
  return (
    <>
      {fault !== null && (
        <Information>
          <b>{fault}</b> The plots show the last {chosen.text}.
        </Information>
      )}
      <div class="range">
        <Views
          label="Window"
          views={[
            ...WINDOWS.map((window) => ({
              name: `Last ${window.text}`,
              href: hrefWith({ window: window === DEFAULT ? null : window.name, from: null, to: null }),
              isCurrent: span === null && window === chosen,
            })),
            ...(span === null
              ? []
              : [{ name: spanText(span), href: hrefWith({ from: values['from'] ?? null }), isCurrent: true }]),
          ]}
        />
        <button class="btn btn-s" type="button" onClick={open} aria-keyshortcuts="z">
          Choose a span…
        </button>
        {asking && (
          <SpanDialog shown={span ?? latest(chosen.seconds)} onChoose={choose} onClose={() => setAsking(false)} />
        )}
      </div>
    </>
  );
}

function spanText({ from, to }: TimeSpan): string {
  return `${clockAt(from)} to ${clockAt(to)} ${zoneName()}`;
}

function latest(seconds: number): TimeSpan {
  const to = Date.now();
  return { from: to - seconds * 1000, to };
}

/** Returns the middle half of a span. */
function halfOf({ from, to }: TimeSpan): TimeSpan {
  const quarter = (to - from) / 4;
  return { from: from + quarter, to: to - quarter };
}

/** Returns a span of twice the length with the same middle, cut to the time for which the relay keeps series. */
function twice({ from, to }: TimeSpan): TimeSpan {
  const half = (to - from) / 2;
  const now = Date.now();
  return { from: Math.max(now - KEPT_MS, from - half), to: Math.min(now, to + half) };
}

// Shows the plots: small multiples on one time axis.

type PlotsProps = {
  readonly series: OverviewSeriesQuery['series'];
  /** The part of the series that is shown; null: all. */
  readonly span: TimeSpan | null;
  /** Whether another answer is awaited. */
  readonly isLoading: boolean;
};

function OverviewPlots({ series, span, isLoading }: PlotsProps) {
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
  /** What the sentence of each plot adds about nodes whose part is missing; empty if no part is. */
  readonly missing: string;
};

/**
 * Returns a sentence with the nodes that the series lack. A plot without them must not look like a plot of all nodes.
 */
function missingText({ sources }: OverviewSeriesQuery['series']['completeness']): string {
  const named = sources.flatMap(({ complete, nodeId }) => (complete || nodeId === null ? [] : nodeId));
  const silent = silentNodes.value.map(({ nodeId }) => nodeId);
  const names = [...new Set([...named, ...silent])];
  return names.length === 0 ? '' : ` Without ${names.join(' and ')}, which did not answer: what it did is not known.`;
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

function EndsPlot({ items, time, marks, missing }: PlotData) {
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
      {...{ time, marks, summary }}
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
  /** How the plot is drawn; see `LinesPlot`. */
  readonly look: Pick<Parameters<typeof LinesPlot>[0], 'text' | 'tickText' | 'log' | 'area' | 'isWhole'>;
  /** The sentence below the plot. `at` is the time of the largest value; `sum` is the number of admitted commands. */
  readonly says: (of: {
    readonly most: string;
    readonly at: string;
    readonly last: string;
    readonly sum: number;
  }) => string;
  /** The sentence below a plot without a value above 0. */
  readonly none: string;
};

const COUNTS = { text: whole, isWhole: true, area: true };
const mostAndLast: OneLine['says'] = ({ most, at, last }) => `The most was ${most}, at ${at}; the last was ${last}.`;

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
    look: { text: duration, tickText, area: true },
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
  return <LinesPlot {...{ title, unit, time, marks, summary }} lines={[{ name, look: 'strong', points }]} {...look} />;
}

function timeText(slot: number, time: PlotTime): string {
  return clockAt(time.from + slot * time.stepMs);
}

/** Returns the label of a power of ten of a millisecond: `10 ms`, `1 s`, `100 s`. */
function powerText(ms: number): string {
  return ms < 1000 ? `${ms} ms` : `${ms / 1000} s`;
}

/** Returns the text of a duration on the axis, without the zeros of a fraction. */
function tickText(ms: number): string {
  return ms === 0 ? '0 s' : duration(ms).replace(/\.0+ s$/, ' s');
}

// Turns the time series of the relay into what the plots of the overview show.

type SeriesItem = OverviewSeriesQuery['series']['items'][number];
type Points = readonly (number | null)[];

const SERIES_NAMES = [
  ...['commands_ended', 'commands_admitted', 'command_p50', 'command_p99', 'dispatch_p99'],
  ...['oldest_wait_seconds', 'commands_queued', 'commands_in_flight', 'client_links'],
];

/** Returns the steps of each series that overlap the span. A series without such a step is left out. */
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

function inMs(points: Points): Points {
  return points.map((value) => (value === null ? null : value * 1000));
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
