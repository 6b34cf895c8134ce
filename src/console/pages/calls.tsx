/** Shows the list of calls for which the relay has a record, and the list of callers that wait for an answer. */
import { useEffect, useMemo, useRef } from 'preact/hooks';
import * as gql from '../../../generated/console.ts';
import { useLive } from '../api/live.ts';
import { useQuery, type Query } from '../api/query.ts';
import { callHref } from '../base.ts';
import { InvokeButton, openInvoke } from '../invoke/open.tsx';
import { LiveNotice, PauseButton } from '../shell/relay-notices.tsx';
import { isAdmin, isEveryNodeHeard } from '../shell/facts.tsx';
import { oneOf, useUrlState, type UrlState } from '../ui/url-state.ts';
import { choicesOf, durationFilter, durationMs, textOf, type Filter } from '../ui/filters.tsx';
import { Empty, Information } from '../ui/notices.tsx';
import { AsOf, Nil, PageHead, Views } from '../ui/page.tsx';
import { List, pageOf } from '../ui/list.tsx';
import { NewBar, useLiveRows } from '../ui/live-rows.tsx';
import { labelled, type Column } from '../ui/table.tsx';
import { Ago } from '../ui/times.tsx';
import { LinkButton, Button, OUTCOME_ORDER } from '../ui/values.tsx';
import { whole } from '../ui/amounts.ts';
import { givenId, isCommandId, plural } from '../ui/text-format.ts';
import { CancelWaiting, isWaiting, selectsWaiting } from './bulk.tsx';
import { CALL_COLUMNS, WAIT_COLUMNS, clientStream } from './columns.tsx';
import { useStreams } from './streams.ts';
import { ANY_FAILURE, FAILURE_OUTCOMES, FailureGroups, boundOf, timeBefore, useFailures } from './failures.tsx';

const STAGES: readonly gql.Stage[] = ['ADMITTED', 'QUEUED', 'DISPATCHED', 'ACKNOWLEDGED', 'TERMINAL'];
const SINCE = durationFilter('since', 'Since', ['5m', '15m', '60m']);
const CALLER: Filter = { name: 'caller', label: 'Caller' };
const FILTERS: readonly Filter[] = [
  {
    name: 'outcome',
    label: 'Outcome',
    choices: [...choicesOf(OUTCOME_ORDER), { value: ANY_FAILURE, text: 'not completed' }],
  },
  { name: 'stage', label: 'Stage', choices: choicesOf(STAGES) },
  { name: 'id', label: 'Id or trace', isTyped: true },
  { name: 'action', label: 'Action' },
  { name: 'user', label: 'User' },
  { name: 'client', label: 'Client' },
  CALLER,
  { name: 'node', label: 'Node' },
  { name: 'code', label: 'Code', isTyped: true },
  SINCE,
];

const FILTERS_OF_USER = FILTERS.filter(({ name }) => name !== 'user' && name !== 'node');

const keyOf = (row: gql.CallRowFragment): string => `${row.userId}/${row.clientId}/${row.commandId}`;

export function CallsPage() {
  const { values, hrefWith } = useUrlState();
  const filter = { ...filterOf(values), admittedAfter: useAdmittedAfter(values) };
  const failures = useListedFailures(values, filter);
  const query = useQuery(gql.CallsDocument, { filter, ...pageOf(values) });
  const list = query.data?.commands;
  const follow = values['follow'] === 'on';
  const { rows, fresh, push } = useLiveRows(list?.nodes, { keyOf, query, follow });
  const mayWait = list?.pageInfo.hasNextPage === true || rows.some(isWaiting);
  const canCancel = mayWait && selectsWaiting(filter) && Object.values(filter).some((value) => value != null);
  const reports = useReports(filter.stage === 'ACKNOWLEDGED' ? rows : NO_ROWS);
  const columns = useMemo(() => (reports ? withProgress(reports) : CALL_COLUMNS), [reports]);
  useLive(gql.CallEventsDocument, {
    variables: { filter: feedOf(filter) },
    onData: ({ commandEvents: { stage, record, missed } }) => {
      push(record, stage === 'ADMITTED' && !values['after'] && fits(record, filter));
      if (stage === 'ACKNOWLEDGED' && filter.stage === stage) query.changed();
      return missed;
    },
    onStale: query.again,
  });
  return (
    <>
      <PageHead
        title="Calls"
        acts={[
          <LinkButton
            text={follow ? 'Stop following' : 'Follow'}
            href={hrefWith({ follow: follow ? null : 'on' })}
            aria-current={follow ? 'true' : undefined}
          />,
          <PauseButton />,
          <CancelWaiting of="of this list" filter={filter} isUseful={canCancel} onDone={query.again} />,
          <InvokeButton />,
        ]}
      >
        Commands that run, and those that ended in the last hour. Newest first.
      </PageHead>
      <CallViews counted={failures.all.data?.delivery.failures} />
      <List
        one="call"
        many="calls"
        query={query}
        list={list}
        filters={isAdmin.value ? FILTERS : FILTERS_OF_USER}
        bare={(word) => (isCommandId(word) ? 'id' : isAdmin.value ? 'user' : 'action')}
        held="Calls on this node are shown"
        notices={[
          <LiveNotice />,
          failures.shown && <FailureGroups query={failures.shown} when={whenText(values)} kept={keptOf(values)} />,
          <NewBar count={fresh} one="call" many="calls" onShow={query.again} />,
        ]}
        empty={
          <Empty title="No call yet" acts={<Button text="Invoke an action" onClick={() => openInvoke({})} />}>
            Nothing runs, and no call ended within the last hour. Older calls are in the history of their user.
          </Empty>
        }
        caption="Calls"
        columns={columns}
        rows={rows}
        keyOf={keyOf}
        hrefOf={callHref}
        look="two-lines"
      />
    </>
  );
}

const NO_ROWS: readonly gql.CallRowFragment[] = [];
/** The maximum number of clients whose progress is read, and the delay before it is read again, in milliseconds. */
const REPORTING = 10;
const REPORTS_EVERY_MS = 3_000;

/** The retained progress reports, by the id of their call. At most one report per second is retained. */
type Reports = ReadonlyMap<string, { readonly count: number; readonly lastAt: string }>;

/** Reads the progress reports of running calls, without payloads. Null: the list does not show running calls. */
function useReports(rows: readonly gql.CallRowFragment[]): Reports | null {
  const streams = [...new Set(rows.map(({ userId, clientId }) => clientStream(userId, clientId)))].slice(0, REPORTING);
  const { data } = useStreams(streams, { kinds: ['PROGRESS'], first: 100, everyMs: REPORTS_EVERY_MS });
  return useMemo(() => {
    if (streams.length === 0) return null;
    const all = (data ?? []).flatMap(({ nodes }) => nodes);
    const byCall = Map.groupBy(all, ({ commandId }) => commandId ?? '');
    return new Map([...byCall].map(([id, own]) => [id, { count: own.length, lastAt: own[0]?.at ?? '' }]));
  }, [data, streams.join(' ')]);
}

function withProgress(reports: Reports): typeof CALL_COLUMNS {
  const progress: Column<gql.CallRowFragment> = labelled('Progress', 'nw c-6', ({ commandId }) => {
    const report = reports.get(commandId);
    if (!report) return <Nil why="no report of it is retained" />;
    return (
      <>
        {plural(report.count, 'report')}, <Ago at={report.lastAt} />
      </>
    );
  });
  return CALL_COLUMNS.map((column) => (column.head === 'Why' ? progress : column));
}

/**
 * Counts the failures among the calls that the list's filter selects. `all`: for the tabs, with failures of every
 * outcome. `shown`: for the groups that the page shows; null unless the list shows failures.
 */
function useListedFailures({ outcome }: UrlState['values'], filter: gql.DeliveryFilter) {
  const isOfFailures = outcome === ANY_FAILURE || FAILURE_OUTCOMES.some((one) => one === outcome?.toUpperCase());
  const isOfOne = isOfFailures && outcome !== ANY_FAILURE;
  const all = useFailures({ ...filter, outcome: null, outcomes: null, stage: null });
  const one = useFailures(filter, { skip: !isOfOne });
  return { all, shown: !isOfFailures || !isAdmin.value ? null : isOfOne ? one : all };
}

/**
 * Returns the earliest time of admission. It must be the same on all pages of a list, because a cursor is valid for one
 * filter only.
 */
function useAdmittedAfter({ since, after }: UrlState['values']): string | null {
  const kept = useRef<{ readonly since: string | undefined; readonly time: string | null } | null>(null);
  if (kept.current === null || !after || kept.current.since !== since)
    kept.current = { since, time: timeBefore(durationMs(since)) };
  return kept.current.time;
}

/** Returns the period that the list covers, as the end of a sentence. */
function whenText({ since }: UrlState['values']): string {
  return durationMs(since) === null
    ? 'among the calls with a record'
    : `in the last ${since === '60m' ? 'hour' : textOf(SINCE, since ?? '')}`;
}

const keptOf = (values: UrlState['values']): Readonly<Record<string, string>> =>
  Object.fromEntries(FILTERS.flatMap(({ name }) => (values[name] ? [[name, values[name]]] : [])));

/** Returns those members of a filter that the subscription supports. `fits` applies the rest. */
function feedOf({ userId, clientId, action }: gql.DeliveryFilter): gql.CommandEventFilter {
  return { userId: userId ?? null, clientId: clientId ?? null, action: action ?? null };
}

function fits(row: gql.CallRowFragment, filter: gql.DeliveryFilter): boolean {
  return (
    !filter.outcome &&
    !filter.outcomes &&
    !filter.code &&
    !filter.idOrTrace &&
    (filter.caller ?? row.caller.name) === row.caller.name &&
    (filter.stage ?? row.stage) === row.stage &&
    (filter.nodeId ?? row.nodeId) === row.nodeId
  );
}

function filterOf(values: UrlState['values']): gql.DeliveryFilter {
  return {
    outcome: oneOf(values['outcome'], OUTCOME_ORDER),
    outcomes: values['outcome'] === ANY_FAILURE ? [...FAILURE_OUTCOMES] : null,
    stage: oneOf(values['stage'], STAGES),
    userId: values['user'] ?? null,
    clientId: values['client'] ?? null,
    nodeId: values['node'] ?? null,
    action: values['action'] ?? null,
    code: values['code'] ?? null,
    caller: values['caller'] ?? null,
    idOrTrace: values['id'] ? givenId(values['id']) : null,
  };
}

type View = { readonly name: string; readonly outcome: string | null; readonly stage: string | null };

/** The usual views of calls. Choosing a view sets the outcome and the stage, and keeps the other filters. */
const VIEWS: readonly View[] = [
  { name: 'All', outcome: null, stage: null },
  { name: 'Waiting for a client', outcome: null, stage: 'admitted' },
  { name: 'Running', outcome: null, stage: 'acknowledged' },
  { name: 'Not completed', outcome: ANY_FAILURE, stage: null },
  { name: 'Failed', outcome: 'failed', stage: null },
  { name: 'Expired', outcome: 'expired', stage: null },
  { name: 'Outcome unknown', outcome: 'outcome_unknown', stage: null },
];

type Counted = gql.FailuresQuery['delivery']['failures'];

function CallViews({ counted }: { readonly counted: Counted | undefined }) {
  const { values, hrefWith } = useUrlState();
  const { outcome = null, stage = null } = values;
  return (
    <Views
      label="Views"
      views={VIEWS.map((view) => ({
        name: view.name,
        href: hrefWith({ outcome: view.outcome, stage: view.stage }),
        isCurrent: view.outcome === outcome && view.stage === stage,
        count: view.outcome === null ? undefined : countText(counted, view.outcome),
      }))}
    />
  );
}

/** Returns how many calls had this outcome, as text. A plus sign states that only the newest calls were counted. */
function countText(counted: Counted | undefined, outcome: string): string | undefined {
  if (counted === undefined) return undefined;
  const one = counted.outcomes.find((candidate) => candidate.outcome === outcome.toUpperCase())?.count ?? 0;
  return `${whole(outcome === ANY_FAILURE ? counted.count : one)}${boundOf(counted) === null ? '' : '+'}`;
}

// The list of callers that wait for an answer, oldest first.

const WAIT_FILTERS: readonly Filter[] = [
  { name: 'user', label: 'User' },
  { name: 'client', label: 'Client' },
  CALLER,
  { name: 'node', label: 'Node' },
  durationFilter('older', 'Older than', ['1s', '10s', '60s', '5m']),
];

/** The delay before a list of waits that is filtered by age is read again, in milliseconds. */
const OLDER_EVERY_MS = 1_000;

export function WaitsPage() {
  const { values } = useUrlState();
  const filter = waitFilterOf(values);
  // The list is read again at intervals, because no event reports that a wait has reached the filter's age.
  const everyMs = filter.minAgeMs === null ? undefined : OLDER_EVERY_MS;
  const query = useQuery(gql.WaitsDocument, { filter, ...pageOf(values) }, { everyMs });
  const list = query.data?.pendingRpcs;
  useWaitChanges(filter, query);
  useGiveUps(list?.nodes, query);
  const count = query.data?.pendingRpcCount.count ?? 0;
  const replaced = list?.nodes.filter(({ instanceMismatch }) => instanceMismatch !== null).length ?? 0;
  const acts = [<AsOf queries={[query]} />, <PauseButton />];
  return (
    <>
      <PageHead title="Waits" acts={acts}>
        Callers that wait, oldest first. A wait shows that the caller has no answer, not that nothing ran.
      </PageHead>
      <List
        one="wait"
        many="waits"
        query={query}
        list={list}
        filters={isAdmin.value ? WAIT_FILTERS : WAIT_FILTERS.slice(1)}
        bare="client"
        held="Its waiting callers are missing, and calls to its clients are shown"
        notices={[
          <LiveNotice />,
          replaced > 0 && (
            <Information>
              <b>{plural(replaced, 'wait')} expect another instance</b> than the one that is connected now. Their
              commands stay with the instance that they were sent to.
            </Information>
          ),
        ]}
        about={`${list?.nodes.length ?? 0} shown of ${plural(count, 'wait')}.`}
        empty={
          <Empty title="No caller waits" mark="all">
            {isEveryNodeHeard() ? 'Every caller has its answer.' : 'Callers of a silent node are not known.'}
          </Empty>
        }
        caption="Waits"
        columns={WAIT_COLUMNS}
        keyOf={({ rpcId }) => rpcId}
        hrefOf={callHref}
      />
    </>
  );
}

/** Reads the list again after a command was admitted or ended, because most waits begin and end with their command. */
function useWaitChanges({ userId, clientId }: gql.PendingRpcFilter, query: Query<unknown>): void {
  const filter = { userId: userId ?? null, clientId: clientId ?? null };
  useLive(gql.CallEventsDocument, {
    variables: { filter },
    onData: ({ commandEvents: { stage, missed } }) => {
      if (stage === 'ADMITTED' || stage === 'ENDED') query.changed();
      return missed;
    },
    onStale: query.again,
  });
}

/** Reads the list again when the first of its waits times out, because no event reports that. */
function useGiveUps(rows: readonly gql.WaitRowFragment[] | undefined, { changed }: Query<unknown>): void {
  useEffect(() => {
    const left = (rows ?? []).map(({ timesOutAt }) => Date.parse(timesOutAt) - Date.now()).filter((ms) => ms > 0);
    if (left.length === 0) return undefined;
    const timer = setTimeout(changed, Math.min(...left));
    return () => clearTimeout(timer);
  }, [rows]);
}

function waitFilterOf(values: UrlState['values']): gql.PendingRpcFilter {
  return {
    userId: values['user'] ?? null,
    clientId: values['client'] ?? null,
    caller: values['caller'] ?? null,
    nodeId: values['node'] ?? null,
    minAgeMs: durationMs(values['older']),
  };
}
