/** Shows the list of calls that the relay has a record of, and the list of callers that wait for an answer. */
import { useLocation } from 'preact-iso';
import { useEffect } from 'preact/hooks';
import {
  CallEventsDocument,
  CallsDocument,
  WaitsDocument,
  type CallRowFragment,
  type CommandEventFilter,
  type DeliveryFilter,
  type PendingRpcFilter,
  type Stage,
  type WaitRowFragment,
} from '../../../generated/console.ts';
import { useLive, useQuery, type Query } from '../api/query.ts';
import { callHref, pagePath } from '../base.ts';
import { InvokeButton, openInvoke } from '../invoke/open.tsx';
import { LiveNotice, PauseButton, isAdmin, isEveryNodeHeard } from '../shell/facts.tsx';
import { choicesOf, oneOf, useUrlState, type Filter, type UrlState } from '../ui/filters.tsx';
import { AsOf, Empty, Information, PageHead, Views } from '../ui/page.tsx';
import { List, NewBar, pageOf, useLiveRows } from '../ui/table.tsx';
import { OUTCOME_ORDER } from '../ui/values.tsx';
import { plural } from '../ui/words.ts';
import { CancelWaiting, selectsWaiting } from './bulk.tsx';
import { CALL_COLUMNS, WAIT_COLUMNS } from './columns.tsx';

const STAGES: readonly Stage[] = ['ADMITTED', 'QUEUED', 'DISPATCHED', 'ACKNOWLEDGED', 'TERMINAL'];
const FILTERS: readonly Filter[] = [
  { name: 'outcome', label: 'Outcome', choices: choicesOf(OUTCOME_ORDER) },
  { name: 'stage', label: 'Stage', choices: choicesOf(STAGES) },
  { name: 'action', label: 'Action' },
  { name: 'user', label: 'User' },
  { name: 'client', label: 'Client' },
  { name: 'node', label: 'Node' },
  { name: 'code', label: 'Code' },
  {
    name: 'since',
    label: 'Since',
    choices: [5, 15, 60].map((minutes) => ({ value: `${minutes}m`, text: `${minutes} min` })),
  },
];

const FILTERS_OF_USER = FILTERS.filter(({ name }) => name !== 'user' && name !== 'node');

const keyOf = (row: CallRowFragment): string => `${row.userId}/${row.clientId}/${row.commandId}`;

export function CallsPage() {
  const { values, hrefWith } = useUrlState();
  const filter = filterOf(values);
  const query = useQuery(CallsDocument, { filter, ...pageOf(values) });
  const list = query.data?.commands;
  const follow = values['follow'] === 'on';
  const canCancel = selectsWaiting(filter) && Object.values(filter).some((value) => value != null);
  const { rows, fresh, push } = useLiveRows(list?.nodes, { keyOf, follow });
  useLive(CallEventsDocument, {
    variables: { filter: feedOf(filter) },
    onData: ({ commandEvents: { stage, record, missed } }) => {
      push(record, stage === 'ADMITTED' && !values['after'] && fits(record, filter));
      return missed;
    },
    onStale: query.again,
  });
  return (
    <>
      <PageHead
        title="Calls"
        acts={
          <>
            <a class="btn" href={hrefWith({ follow: follow ? null : 'on' })} aria-current={follow ? 'true' : undefined}>
              {follow ? 'Stop following' : 'Follow'}
            </a>
            <PauseButton />
            <CancelWaiting of="of this list" filter={filter} isUseful={canCancel} onDone={query.again} />
            <InvokeButton />
          </>
        }
      >
        Commands with a record: those that run, and ends of the last hour. Newest first.
      </PageHead>
      <CallViews />
      <List
        one="call"
        many="calls"
        query={query}
        list={list}
        filters={isAdmin.value ? FILTERS : FILTERS_OF_USER}
        bare={isAdmin.value ? 'user' : 'action'}
        held="Calls on this node are shown"
        notices={
          <>
            <LiveNotice />
            <NewBar count={fresh} one="call" many="calls" onShow={query.again} />
          </>
        }
        empty={
          <Empty
            title="No call yet"
            acts={
              <button class="btn" type="button" onClick={() => openInvoke({})}>
                Invoke an action
              </button>
            }
          >
            <p>Nothing runs, and no call ended within the last hour. Older calls are in the history of their user.</p>
          </Empty>
        }
        caption="Calls"
        columns={CALL_COLUMNS}
        rows={rows}
        keyOf={keyOf}
        hrefOf={callHref}
        look="two-lines"
      />
    </>
  );
}

/** Returns the part of a filter that the feed of events supports. `fits` applies the rest. */
function feedOf({ userId, clientId, action }: DeliveryFilter): CommandEventFilter {
  return { userId: userId ?? null, clientId: clientId ?? null, action: action ?? null };
}

/** Whether a call that was just admitted belongs to the filtered list. */
function fits(row: CallRowFragment, filter: DeliveryFilter): boolean {
  return (
    !filter.outcome &&
    !filter.code &&
    (filter.stage ?? row.stage) === row.stage &&
    (filter.nodeId ?? row.nodeId) === row.nodeId
  );
}

function filterOf(values: UrlState['values']): DeliveryFilter {
  return {
    outcome: oneOf(values['outcome'], OUTCOME_ORDER),
    stage: oneOf(values['stage'], STAGES),
    userId: values['user'] ?? null,
    clientId: values['client'] ?? null,
    nodeId: values['node'] ?? null,
    action: values['action'] ?? null,
    code: values['code'] ?? null,
    admittedAfter: sinceOf(values['since']),
  };
}

/**
 * Converts an age such as `15m` to a time. The time is cut to the minute, so that repeated requests have the same
 * filter.
 */
function sinceOf(since: string | undefined): string | null {
  const minutes = /^(\d{1,4})m$/.exec(since ?? '')?.[1];
  if (minutes === undefined) return null;
  return new Date(Math.floor(Date.now() / 60_000 - Number(minutes)) * 60_000).toISOString();
}

/** The usual filters of calls, each with its query. */
const VIEWS: readonly { readonly name: string; readonly query: string }[] = [
  { name: 'All', query: '' },
  { name: 'Waiting for a client', query: 'stage=admitted' },
  { name: 'Failed', query: 'outcome=failed' },
  { name: 'Expired', query: 'outcome=expired' },
  { name: 'Outcome unknown', query: 'outcome=outcome_unknown' },
];

function CallViews() {
  const [, query = ''] = useLocation().url.split('?');
  return (
    <Views
      label="Views"
      views={VIEWS.map((view) => ({
        name: view.name,
        href: pagePath(view.query === '' ? 'calls' : `calls?${view.query}`),
        isCurrent: query === view.query,
      }))}
    />
  );
}

// Shows the callers that wait for an answer, oldest first.

const WAIT_FILTERS: readonly Filter[] = [
  { name: 'user', label: 'User' },
  { name: 'client', label: 'Client' },
  { name: 'node', label: 'Node' },
  {
    name: 'older',
    label: 'Older than',
    choices: [1, 10, 60, 300].map((seconds) => ({ value: `${seconds}s`, text: `${seconds} s` })),
  },
];

/** The pause before a list of waits that is filtered by age is read again, in milliseconds. */
const OLDER_EVERY_MS = 1_000;

export function WaitsPage() {
  const { values } = useUrlState();
  const filter = waitFilterOf(values);
  // No event reports that a wait has reached the age of the filter, so the list is read again at intervals.
  const everyMs = filter.minAgeMs === null ? undefined : OLDER_EVERY_MS;
  const query = useQuery(WaitsDocument, { filter, ...pageOf(values) }, { everyMs });
  const list = query.data?.pendingRpcs;
  useWaitChanges(filter, query);
  useGiveUps(list?.nodes, query);
  const count = query.data?.pendingRpcCount.count ?? 0;
  const replaced = list?.nodes.filter(({ instanceMismatch }) => instanceMismatch !== null).length ?? 0;
  const acts = (
    <>
      <AsOf queries={[query]} />
      <PauseButton />
    </>
  );
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
        notices={
          <>
            <LiveNotice />
            {replaced > 0 && (
              <Information>
                <b>{plural(replaced, 'wait')} expect another instance</b> than the one that is connected now. Their
                commands stay with the instance that they were sent to.
              </Information>
            )}
          </>
        }
        about={`${list?.nodes.length ?? 0} shown of ${plural(count, 'wait')}.`}
        empty={
          <Empty title="No caller waits" mark="all">
            <p>{isEveryNodeHeard() ? 'Every caller has its answer.' : 'Callers of a silent node are not known.'}</p>
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

/**
 * Reads the list again after a command was admitted or has ended, because most waits begin and end with their command.
 */
function useWaitChanges({ userId, clientId }: PendingRpcFilter, query: Query<unknown>): void {
  const filter = { userId: userId ?? null, clientId: clientId ?? null };
  useLive(CallEventsDocument, {
    variables: { filter },
    onData: ({ commandEvents: { stage, missed } }) => {
      if (stage === 'ADMITTED' || stage === 'ENDED') query.changed();
      return missed;
    },
    onStale: query.again,
  });
}

/** Reads the list again when the first of its callers gives up, because no event reports that. */
function useGiveUps(rows: readonly WaitRowFragment[] | undefined, { changed }: Query<unknown>): void {
  useEffect(() => {
    const left = (rows ?? []).map(({ timesOutAt }) => Date.parse(timesOutAt) - Date.now()).filter((ms) => ms > 0);
    if (left.length === 0) return undefined;
    const timer = setTimeout(changed, Math.min(...left));
    return () => clearTimeout(timer);
  }, [rows]);
}

function waitFilterOf(values: UrlState['values']): PendingRpcFilter {
  const seconds = /^(\d{1,6})s$/.exec(values['older'] ?? '')?.[1];
  return {
    userId: values['user'] ?? null,
    clientId: values['client'] ?? null,
    nodeId: values['node'] ?? null,
    minAgeMs: seconds === undefined ? null : Number(seconds) * 1000,
  };
}
