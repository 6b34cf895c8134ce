/** Shows the list of calls: the commands of which the relay has a record. */
import { LiveNotice, PauseButton } from '../shell/facts.tsx';
import { useLocation } from 'preact-iso';
import {
  CallEventsDocument,
  CallsDocument,
  type CallPageQuery,
  type CallRowFragment,
  type CommandEventFilter,
  type DeliveryFilter,
  type Outcome,
  type Stage,
} from '../../../generated/console.ts';
import { useLive } from '../api/live.ts';
import { useQuery } from '../api/query.ts';
import { pagePath } from '../base.ts';
import { openInvoke } from '../invoke/open.tsx';
import { oneOf, useUrlState, type Filter, type UrlState, useKeys } from '../ui/filters.tsx';
import { Empty, PageHead, callHref } from '../ui/page.tsx';
import { List, NewBar, PAGE_SIZE, Table, useLiveRows } from '../ui/table.tsx';
import { plural } from '../ui/words.ts';
import { CALL_COLUMNS } from './columns.tsx';

const OUTCOMES: readonly Outcome[] = ['COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED', 'OUTCOME_UNKNOWN'];
const STAGES: readonly Stage[] = ['ADMITTED', 'QUEUED', 'DISPATCHED', 'ACKNOWLEDGED', 'TERMINAL'];
const FILTERS: readonly Filter[] = [
  { name: 'outcome', label: 'Outcome', choices: OUTCOMES.map(choiceOf) },
  { name: 'stage', label: 'Stage', choices: STAGES.map(choiceOf) },
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

const keyOf = (row: CallRowFragment): string => `${row.userId}/${row.clientId}/${row.commandId}`;

export function CallsPage() {
  const { values, hrefWith } = useUrlState();
  const filter = filterOf(values);
  const variables = { filter, first: PAGE_SIZE, after: values['after'] ?? null };
  const query = useQuery(CallsDocument, variables);
  const list = query.data?.delivery.commands;
  const follow = values['follow'] === 'on';
  const { rows, fresh, push } = useLiveRows(list?.nodes ?? NONE, { keyOf, follow });
  useLive(
    CallEventsDocument,
    { filter: feedOf(filter) },
    {
      onData: ({ commandEvents: { stage, record, missed } }) => {
        push(record, stage === 'ADMITTED' && !values['after'] && fits(record, filter));
        return missed;
      },
      onStale: query.again,
    },
  );
  useKeys({ i: () => openInvoke({}) });
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
            <button class="btn btn-primary" type="button" onClick={() => openInvoke({})}>
              Invoke an action
            </button>
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
        shown={rows.length}
        filters={FILTERS}
        bare="user"
        held="Calls on this node are shown"
        notices={
          <>
            <LiveNotice />
            <NewBar count={fresh} one="call" many="calls" onShow={query.again} />
          </>
        }
        about={`${plural(rows.length, 'call')} on this page.`}
        empty={<NoCalls />}
      >
        <Table caption="Calls" columns={CALL_COLUMNS} rows={rows} keyOf={keyOf} hrefOf={callHref} look="two-lines" />
      </List>
    </>
  );
}

function NoCalls() {
  return (
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
  );
}

const NONE: readonly CallRowFragment[] = [];

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
    outcome: oneOf(values['outcome']?.toUpperCase(), OUTCOMES),
    stage: oneOf(values['stage']?.toUpperCase(), STAGES),
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

function choiceOf(name: string): { readonly value: string; readonly text: string } {
  return { value: name.toLowerCase(), text: name.toLowerCase().replaceAll('_', ' ') };
}

// Shows links to the usual filters of calls.

const VIEWS: readonly { readonly name: string; readonly query: string }[] = [
  { name: 'All', query: '' },
  { name: 'Waiting for a client', query: 'stage=admitted' },
  { name: 'Failed', query: 'outcome=failed' },
  { name: 'Expired', query: 'outcome=expired' },
  { name: 'Outcome unknown', query: 'outcome=outcome_unknown' },
];

function CallViews() {
  const { url } = useLocation();
  const [, query = ''] = url.split('?');
  return (
    <nav class="views" aria-label="Views">
      {VIEWS.map((view) => (
        <a
          key={view.name}
          href={pagePath(view.query === '' ? 'calls' : `calls?${view.query}`)}
          aria-current={query === view.query ? 'page' : undefined}
        >
          {view.name}
        </a>
      ))}
    </nav>
  );
}

// Defines the types that several files of the call pages use. Contains types only.

export type CallDetails = NonNullable<CallPageQuery['command']>;
