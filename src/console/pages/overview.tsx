/** Shows the overview: whether calls get through now, and what needs a person's attention. */
import { useMemo, useState } from 'preact/hooks';
import { OverviewDocument, OverviewSeriesDocument, type OverviewQuery } from '../../../generated/console.ts';
import { useQuery } from '../api/query.ts';
import { now } from '../api/request.ts';
import { pagePath } from '../base.ts';
import { openInvoke } from '../invoke/open.tsx';
import { KEPT_MS, SpanDialog, useSpan, type TimeSpan } from '../plot/span.tsx';
import { PauseButton, Sources, silentNodes } from '../shell/facts.tsx';
import { useUrlState, useKeys } from '../ui/filters.tsx';
import { ErrorNotice, Information, Loading, PageHead, Section, callHref } from '../ui/page.tsx';
import { Table } from '../ui/table.tsx';
import { OUTCOME_ORDER, OutcomeMark } from '../ui/values.tsx';
import { age, clock, percent, plural, whole } from '../ui/words.ts';
import { LONG_WAIT_MS, WAIT_COLUMNS } from './columns.tsx';
import { SCOPE_COLUMNS, outcomeCounter, shareOf } from './counters.tsx';
import { OverviewPlots, SERIES_NAMES } from './overview-plots.tsx';

/** The pause after each answer before the overview is read again, in milliseconds. */
const EVERY_MS = 3_000;
const WAITS_SHOWN = ['Stage', 'Action', 'Client', 'Waits'];
/** The number of admission scopes that the page shows: the fullest ones. */
const SCOPES_SHOWN = 5;

export function OverviewPage() {
  const query = useQuery(OverviewDocument, {}, { everyMs: EVERY_MS });
  const { span, windowSeconds, stepSeconds, everyMs } = useRange();
  const plots = useQuery(OverviewSeriesDocument, { names: SERIES_NAMES, windowSeconds, stepSeconds }, { everyMs });
  useKeys({ i: () => openInvoke({}) });
  return (
    <>
      <PageHead
        title="Overview"
        acts={
          <>
            <PauseButton />
            <button class="btn btn-primary" type="button" onClick={() => openInvoke({})}>
              Invoke an action
            </button>
          </>
        }
      />
      <ErrorNotice query={query} what="the overview" />
      <Sources completeness={query.data?.delivery.nodes.completeness} />
      {!query.data && query.loading && <Loading what="the overview" />}
      {query.data && (
        <>
          <Readouts data={query.data} />
          <Ends data={query.data} />
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

function LongestWaits({ data }: { readonly data: OverviewData }) {
  const { nodes } = data.pendingRpcs;
  const { count } = data.pendingRpcCount;
  return (
    <Section
      title="Who waits longest"
      about={count > 0 ? `${nodes.length} of ${count}` : undefined}
      side={<a href={pagePath('waits')}>All waits</a>}
    >
      {nodes.length === 0 ? (
        <p class="soft">No caller waits. Every caller has its answer.</p>
      ) : (
        <Table
          caption="The longest waits"
          columns={WAIT_COLUMNS.filter(({ head }) => WAITS_SHOWN.includes(head))}
          rows={nodes}
          keyOf={({ rpcId }) => rpcId}
          hrefOf={callHref}
        />
      )}
    </Section>
  );
}

function FullestScopes({ data }: { readonly data: OverviewData }) {
  const fullest = [...data.delivery.tenants.nodes]
    .sort((one, other) => shareOf(other) - shareOf(one) || other.reservedCommands - one.reservedCommands)
    .slice(0, SCOPES_SHOWN);
  return (
    <Section
      title="Fullest admission scopes"
      about="held now, of what each may hold at once"
      side={<a href={pagePath('capacity')}>All scopes</a>}
    >
      {fullest.length === 0 ? (
        <p class="soft">No scope holds a reservation: every admitted command has ended.</p>
      ) : (
        <Table
          caption="The fullest scopes"
          columns={SCOPE_COLUMNS}
          rows={fullest}
          keyOf={({ scopeId }) => scopeId}
          look="small"
        />
      )}
    </Section>
  );
}

// Shows the current figures of the overview.

function Readouts({ data }: { readonly data: OverviewData }) {
  const { nodes, summary } = data.delivery;
  const live = nodes.nodes.filter(({ stale }) => !stale);
  const links = live.reduce((sum, node) => sum + node.links, 0);
  const recorded = silentNodes.value.reduce((sum, node) => sum + node.links, 0);
  const unfinished = live.reduce((sum, node) => sum + node.unfinishedCommands, 0);
  const [oldest] = data.pendingRpcs.nodes;
  const waited = oldest ? now.value - Date.parse(oldest.createdAt) : 0;
  const queuedMs = summary.sampledOldestQueuedAgeMs;
  return (
    <dl class="readouts">
      <div>
        <dt>Links</dt>
        <dd>{whole(links)}</dd>
        <dd class="sub">
          {recorded > 0 ? `and ${whole(recorded)} as last recorded` : `on ${plural(live.length, 'node')}`}
        </dd>
      </div>
      <div>
        <dt>Callers waiting</dt>
        <dd>{whole(data.pendingRpcCount.count)}</dd>
        <dd class="sub">for an answer</dd>
      </div>
      <div>
        <dt>Oldest waiter</dt>
        <dd class={waited > LONG_WAIT_MS ? 'over' : undefined}>{oldest ? age(waited) : '–'}</dd>
        <dd class="sub">{waited > LONG_WAIT_MS ? 'over the bound of 60 s' : 'the bound is 60 s'}</dd>
      </div>
      <div>
        <dt>Unfinished</dt>
        <dd>{whole(unfinished)}</dd>
        <dd class="sub">commands that did not end</dd>
      </div>
      <div>
        <dt>Due</dt>
        <dd class={summary.dueCommands > 0 ? 'over' : undefined}>{whole(summary.dueCommands)}</dd>
        <dd class="sub">past a deadline, not yet ended</dd>
      </div>
      <div>
        <dt>Oldest queued</dt>
        <dd>{queuedMs === null ? '–' : age(queuedMs)}</dd>
        <dd class="sub">of {plural(summary.sampleSize, 'command')} sampled</dd>
      </div>
    </dl>
  );
}

// Shows how many calls ended with each outcome. Each count links to the list of those calls.

function Ends({ data }: { readonly data: OverviewData }) {
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

function countOf({ delivery }: OverviewData, name: string): number {
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
/**
 * The pause before the series of a window are read again, in milliseconds. It is shorter than one step of the shortest
 * window.
 */
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
 * lengthen it.
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
        <nav class="views" aria-label="Window">
          {WINDOWS.map((window) => (
            <a
              key={window.name}
              href={hrefWith({ window: window === DEFAULT ? null : window.name, from: null, to: null })}
              aria-current={span === null && window === chosen ? 'page' : undefined}
            >
              Last {window.text}
            </a>
          ))}
          {span !== null && (
            <a href={hrefWith({ from: values['from'] ?? null })} aria-current="page">
              {spanText(span)}
            </a>
          )}
        </nav>
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
  const [first, last] = [from, to].map((ms) => clock(new Date(ms).toISOString()));
  return `${first} to ${last} UTC`;
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

// Defines the types that several files of the overview use. Contains types only.

type OverviewData = OverviewQuery;
