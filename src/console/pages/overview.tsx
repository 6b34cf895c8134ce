/**
 * Shows the overview for one time window: figures, how calls ended, plots, the longest waits and the fullest scopes.
 */
import { useEffect, useMemo, useState } from 'preact/hooks';
import * as gql from '../../../generated/console.ts';
import { useQuery } from '../api/query.ts';
import { now } from '../api/visible.ts';
import { callHref, clientHref, pagePath } from '../base.ts';
import { InvokeButton } from '../invoke/open.tsx';
import { KEPT_MS, SpanDialog, useSpan, type TimeSpan } from '../plot/span.tsx';
import { PauseButton, Sources } from '../shell/relay-notices.tsx';
import { LONG_WAIT_MS, isEveryNodeHeard, lastHourText, silentNodes, waitCount } from '../shell/facts.tsx';
import { useKeys } from '../ui/keys.ts';
import { useUrlState } from '../ui/url-state.ts';
import { ErrorNotice, Information, Loading } from '../ui/notices.tsx';
import { ClientLink, PageHead, Readouts, Section, Views } from '../ui/page.tsx';
import { Table, nameColumn, column, type Column } from '../ui/table.tsx';
import { Button, OUTCOME_ORDER, OutcomeMark } from '../ui/values.tsx';
import { age, amount, duration, percent, whole } from '../ui/amounts.ts';
import { clockAt, day, zoneName } from '../ui/zones.ts';
import { plural } from '../ui/text-format.ts';
import { LastEnd, NoClients, SCOPE_COLUMNS, VersionsNotice, WAIT_COLUMNS, oldestQueued, shareOf } from './columns.tsx';
import { WindowFailures } from './failures.tsx';
import { Pauses, STOPS_OF_ALL, StopButton, usePauses } from './pauses.tsx';
import { isUnstable } from './states.ts';
import { OverviewPlots, SERIES_NAMES, missingNodes, windowOf, type WindowFigures } from './overview-plots.tsx';

/** The delay after each answer before the overview is read again, in milliseconds. */
const EVERY_MS = 3_000;
const WAITS_SHOWN = ['Stage', 'Action', 'Client', 'Caller', 'Waiting'];
/** The number of capacity scopes that the page shows: the fullest ones. */
const SCOPES_SHOWN = 5;

export function OverviewPage() {
  const query = useQuery(gql.OverviewDocument, {}, { everyMs: EVERY_MS });
  // Updates the number in the navigation rail, so that it equals the number on the page.
  useEffect(() => {
    if (query.data) waitCount.value = query.data.pendingRpcCount.count;
  }, [query.data]);
  const pauses = usePauses();
  const range = useRange();
  const { span, windowSeconds, stepSeconds, everyMs } = range;
  const { seconds, text } = useWindow();
  const plots = useQuery(gql.OverviewSeriesDocument, { names: SERIES_NAMES, windowSeconds, stepSeconds }, { everyMs });
  const shown = useMemo(() => plots.data && windowOf(plots.data, span), [plots.data, span]);
  const isReady = query.data !== null && (plots.data ?? plots.error) !== null;
  return (
    <>
      <PageHead
        title="Overview"
        acts={[<PauseButton isPolled />, <InvokeButton />, <StopButton stops={STOPS_OF_ALL} onDone={pauses.again} />]}
      >
        {shown && spanText({ from: shown.from, to: shown.to }, true)}
      </PageHead>
      <Pauses query={pauses} concerns={() => true} />
      <RangeBar />
      <ErrorNotice query={query} what="the overview" />
      <ErrorNotice query={plots} what="the time series" />
      <Sources completeness={query.data?.delivery.nodes.completeness} />
      {query.data && <VersionsNotice nodes={query.data.delivery.nodes.nodes} />}
      {!isReady && (query.loading || plots.loading) && <Loading what="the overview" />}
      {query.data && isReady && (
        <>
          <Readouts figures={figuresOf(query.data, shown)} />
          {isUnused(query.data, shown) ? (
            <NoClients />
          ) : (
            <>
              {shown && plots.data && (
                <Ends ends={shown.ends} since={sinceOf(range)} missing={missingNodes(plots.data.series.completeness)} />
              )}
              <UnstableClients data={query.data} />
              {span === null && <WindowFailures seconds={seconds} text={text} />}
              {plots.data && <OverviewPlots series={plots.data.series} span={span} isLoading={plots.loading} />}
              <div class="cols">
                <LongestWaits data={query.data} />
                <FullestScopes data={query.data} />
              </div>
            </>
          )}
        </>
      )}
    </>
  );
}

/** Whether no client is connected, no caller waits, and nothing was admitted or ended in the window. */
function isUnused(data: gql.OverviewQuery, shown: WindowFigures | null): boolean {
  const isIdle = shown !== null && shown.admitted === 0 && shown.endsTotal === 0;
  return isIdle && isEveryNodeHeard() && linksOf(data) === 0 && data.pendingRpcCount.count === 0;
}

/** Names the clients whose links open again and again, and why those end. Shows nothing if there are none. */
function UnstableClients({ data }: { readonly data: gql.OverviewQuery }) {
  const rows = data.topClients.items.filter(({ reconnectsLastHour }) => isUnstable(reconnectsLastHour));
  if (rows.length === 0) return null;
  const side = <a href={pagePath('clients?view=reconnects')}>Most reconnects</a>;
  return (
    <Section title="Unstable clients" about="whose links open again and again" side={side}>
      <Table
        caption="Unstable clients"
        columns={UNSTABLE_COLUMNS}
        rows={rows}
        keyOf={({ userId, clientId }) => `${userId}/${clientId}`}
        hrefOf={clientHref}
        look="small"
      />
    </Section>
  );
}

const UNSTABLE_COLUMNS: readonly Column<gql.OverviewQuery['topClients']['items'][number]>[] = [
  nameColumn('Client', 'c-1', (row) => <ClientLink {...row} />),
  column('Reconnects', 'nw c-2 c-end', ({ reconnectsLastHour: count }) => `${whole(count)} ${lastHourText()}`),
  column('Why its links end', 'c-3 c-wide', (row) => <LastEnd {...row} />),
];

function LongestWaits({ data }: { readonly data: gql.OverviewQuery }) {
  const { nodes } = data.pendingRpcs;
  const count = waitCount.value ?? data.pendingRpcCount.count;
  return (
    <Section
      title="Who waits longest"
      about={count > 0 ? `${nodes.length} of ${count}, now` : 'now'}
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

function FullestScopes({ data }: { readonly data: gql.OverviewQuery }) {
  const fullest = [...data.delivery.tenants.nodes]
    .sort((one, other) => shareOf(other) - shareOf(one) || other.reservedCommands - one.reservedCommands)
    .slice(0, SCOPES_SHOWN);
  return (
    <Section
      title="Fullest admission scopes"
      about="held now, of what each may hold at once"
      side={<a href={pagePath('limits')}>All scopes</a>}
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

/** Returns the present figures and those of the window. `shown`: null if the series could not be read. */
function figuresOf(data: gql.OverviewQuery, shown: WindowFigures | null) {
  const { delivery, pendingRpcs, pendingRpcCount, longWaits } = data;
  const [oldest] = pendingRpcs.nodes;
  const waited = oldest ? now.value - Date.parse(oldest.createdAt) : 0;
  const isLong = waited > LONG_WAIT_MS;
  const bound = isLong ? 'over the bound of 60 s' : 'the bound is 60 s';
  return [
    {
      name: 'Clients connected',
      value: whole(linksOf(data)),
      about: recordedText('links') ?? `on ${plural(delivery.nodes.nodes.length, 'node')}`,
    },
    {
      name: 'Callers waiting',
      value: whole(waitCount.value ?? pendingRpcCount.count),
      about: recordedText('connectionWaiters') ?? `${whole(longWaits.count)} of them over 60 s`,
    },
    {
      name: 'Oldest waiter',
      value: oldest ? age(waited) : '–',
      about: isEveryNodeHeard() ? bound : 'on the nodes that answer',
      isOver: isLong,
    },
    ...windowFigures(shown),
    oldestQueued(delivery.summary),
  ];
}

/** Returns the figures of the window: how many commands were admitted, and how long commands took. */
function windowFigures(shown: WindowFigures | null) {
  const admitted = { name: 'Admitted', value: '–', about: 'not known' };
  const took = { name: 'Admission to end, p50', value: '–', about: 'not known' };
  if (shown === null) return [admitted, took];
  const { perMinute, p50Ms, p99Ms } = shown;
  return [
    {
      ...admitted,
      ...(perMinute !== null && { value: amount(perMinute), unit: ' a minute' }),
      about: `${whole(shown.admitted)} in this window`,
    },
    p50Ms === null
      ? { ...took, about: shown.endsTotal === 0 ? 'nothing ended in this window' : 'see the plot below' }
      : { ...took, value: duration(p50Ms), about: `p99 ${duration(p99Ms ?? 0)}` },
  ];
}

const linksOf = ({ delivery }: gql.OverviewQuery): number =>
  delivery.nodes.nodes.filter(({ stale }) => !stale).reduce((sum, { links }) => sum + links, 0);

/**
 * Returns as text how many links or waiting callers silent nodes had at their last report; null if no node is silent.
 */
function recordedText(name: 'links' | 'connectionWaiters'): string | null {
  if (isEveryNodeHeard()) return null;
  return `and ${whole(silentNodes.value.reduce((sum, node) => sum + node[name], 0))} as last recorded`;
}

type EndsProps = {
  readonly ends: Readonly<Record<gql.Outcome, number>>;
  /** The value of the filter `since` that selects the calls of the window; null if none does. */
  readonly since: string | null;
  /** The nodes whose counts of ended calls are missing. */
  readonly missing: readonly string[];
};

function Ends({ ends, since, missing }: EndsProps) {
  const sum = OUTCOME_ORDER.reduce((total, outcome) => total + ends[outcome], 0);
  const whose = missing.length === 0 ? 'as the relay recorded them' : `without those of ${missing.join(' and ')}`;
  return (
    <Section title="How calls ended" about={`${plural(sum, 'end')} in this window, ${whose}`}>
      <p class="ends">
        {OUTCOME_ORDER.map((outcome) => (
          <a key={outcome} href={endedHref(outcome, since)}>
            <OutcomeMark outcome={outcome} /> <b>{whole(ends[outcome])}</b>{' '}
            <span class="share">{sum === 0 ? '' : percent(ends[outcome] / sum)}</span>
          </a>
        ))}
      </p>
    </Section>
  );
}

const endedHref = (outcome: gql.Outcome, since: string | null): string =>
  pagePath(`calls?outcome=${outcome.toLowerCase()}${since === null ? '' : `&since=${since}`}`);

// The choice of the period that the overview shows: a window up to now, or a span between two times. It is stored in
// the URL.

type Window = { readonly name: string; readonly seconds: number; readonly stepSeconds: number; readonly text: string };

const DEFAULT: Window = { name: '15m', seconds: 900, stepSeconds: 15, text: '15 min' };
const WINDOWS: readonly Window[] = [
  DEFAULT,
  { name: '60m', seconds: 3600, stepSeconds: 60, text: 'hour' },
  { name: '6h', seconds: 21_600, stepSeconds: 300, text: '6 h' },
  { name: '24h', seconds: 86_400, stepSeconds: 1200, text: '24 h' },
];
/**
 * The delay before the series of a window are read again, in milliseconds. It is shorter than a step of the shortest
 * window.
 */
const RANGE_EVERY_MS = 10_000;
/** The approximate number of steps of a chosen span. */
const STEPS = 60;

type PlotRange = {
  /** The part of the answer that is shown. Null: all of it. */
  readonly span: TimeSpan | null;
  /** The window to request from the relay, in seconds. The relay answers only for windows up to now. */
  readonly windowSeconds: number;
  readonly stepSeconds: number;
  /**
   * The delay before the series are read again, in milliseconds. Undefined for a chosen span, whose series do not
   * change.
   */
  readonly everyMs: number | undefined;
};

function useRange(): PlotRange {
  const { span } = useSpan();
  const { seconds, stepSeconds } = useWindow();
  const ofSpan = useMemo(() => span && rangeOf(span), [span]);
  return ofSpan ?? { span: null, windowSeconds: seconds, stepSeconds, everyMs: RANGE_EVERY_MS };
}

function rangeOf(span: TimeSpan): PlotRange {
  const stepSeconds = Math.max(5, Math.ceil((span.to - span.from) / 1000 / STEPS));
  const back = Math.min(KEPT_MS, Math.max(0, Date.now() - span.from)) / 1000;
  const windowSeconds = Math.min(KEPT_MS / 1000, Math.ceil(back) + stepSeconds);
  return { span, windowSeconds, stepSeconds, everyMs: undefined };
}

/**
 * The longest window for which the list of calls has a filter, in seconds: records of ended calls are kept for an hour.
 */
const LONGEST_FILTER = 3600;

/** Returns the value of the filter `since` that selects the calls of this range; null if none does. */
const sinceOf = ({ span, windowSeconds }: PlotRange): string | null =>
  span === null && windowSeconds <= LONGEST_FILTER ? `${windowSeconds / 60}m` : null;

function useWindow(): Window {
  const { values } = useUrlState();
  return WINDOWS.find(({ name }) => name === values['window']) ?? DEFAULT;
}

/**
 * Shows links to the windows, and the button that chooses a span. The keys `[` and `]` shorten and lengthen the shown
 * period.
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
          <b>{fault}</b> The page shows the last {chosen.text}.
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
        <Button look="btn-s" text="Choose a span…" onClick={open} aria-keyshortcuts="z" />
        {asking && (
          <SpanDialog shown={span ?? latest(chosen.seconds)} onChoose={choose} onClose={() => setAsking(false)} />
        )}
      </div>
    </>
  );
}

const spanText = ({ from, to }: TimeSpan, hasDay = false): string =>
  `${clockAt(from)} to ${clockAt(to)} ${zoneName()}${hasDay ? `, ${day(new Date(to).toISOString())}` : ''}`;

function latest(seconds: number): TimeSpan {
  const to = Date.now();
  return { from: to - seconds * 1000, to };
}

function halfOf({ from, to }: TimeSpan): TimeSpan {
  const quarter = (to - from) / 4;
  return { from: from + quarter, to: to - quarter };
}

/** Returns a span with the same middle and twice the length, cut to the period for which the relay keeps series. */
function twice({ from, to }: TimeSpan): TimeSpan {
  const half = (to - from) / 2;
  const now = Date.now();
  return { from: Math.max(now - KEPT_MS, from - half), to: Math.min(now, to + half) };
}
