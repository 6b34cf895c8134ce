/**
 * Shows the contexts and browser windows that clients report, with the commands that run in them, and the page of one
 * context.
 */
import { useRoute } from 'preact-iso';
import * as gql from '../../../generated/console.ts';
import { useQuery } from '../api/query.ts';
import { clientHref, pagePath, placeHref } from '../base.ts';
import { InvokeButton } from '../invoke/open.tsx';
import { PauseButton } from '../shell/relay-notices.tsx';
import { isAdmin } from '../shell/facts.tsx';
import { oneOf, useUrlState, type UrlState } from '../ui/url-state.ts';
import { FilterBar, choicesOf, type Filter } from '../ui/filters.tsx';
import { CutNotice, Empty, ErrorNotice, Information, Loading } from '../ui/notices.tsx';
import { ClientLink, Count, Facts, Metadata, Nil, PageHead, Section } from '../ui/page.tsx';
import { List, pageOf } from '../ui/list.tsx';
import { useLatest } from '../ui/live-rows.tsx';
import { Table, column, nameColumn, labelled, type Column } from '../ui/table.tsx';
import type { ShapeName } from '../ui/shapes.tsx';
import { Ago, Since } from '../ui/times.tsx';
import { CommandMark, FullId, ShortId, StateMark } from '../ui/values.tsx';
import { capitalWord, nameClass, plural } from '../ui/text-format.ts';
import { ActionLink, CallerLink, CallsTable } from './columns.tsx';

const STATUSES: readonly gql.ContextStatus[] = ['ACTIVE', 'IDLE', 'STALE', 'CLOSED'];
const OWNERSHIPS: readonly gql.Ownership[] = ['WORKER', 'USER_OWNED'];
const FILTERS: readonly Filter[] = [
  { name: 'user', label: 'User' },
  { name: 'client', label: 'Client' },
  { name: 'window', label: 'Window' },
  { name: 'ownership', label: 'Ownership', choices: choicesOf(OWNERSHIPS) },
  { name: 'status', label: 'Status', choices: choicesOf(STATUSES) },
];

/**
 * The number of windows that are shown below the contexts. Users have few windows, so there is only one page of them.
 */
const WINDOWS = 20;
/**
 * The delay before contexts and windows are read again, in milliseconds. No event announces that a client has reported
 * them.
 */
const EVERY_MS = 3_000;
const LIVE = { everyMs: EVERY_MS };

export function PlacesPage() {
  const { values } = useUrlState();
  const filters = isAdmin.value ? FILTERS : FILTERS.slice(1);
  const filter = filterOf(values);
  const contexts = useQuery(gql.ContextsDocument, { filter, ...pageOf(values) }, LIVE);
  const list = contexts.data?.contexts;
  const { userId, clientId, ownership } = filter;
  // Filters by status and by window apply only to contexts, because windows have other statuses and are not inside a
  // window.
  const hasWindows = !values['window'] && !values['status'];
  const ofWindows = { filter: { userId, clientId, ownership }, first: WINDOWS, after: null };
  const windows = useQuery(gql.WindowsDocument, ofWindows, { ...LIVE, skip: !hasWindows });
  const windowList = windows.data?.browserWindows;
  const windowCount = windows.data?.browserWindowCount.count ?? 0;
  return (
    <>
      <PageHead title="Workers and windows" acts={<PauseButton isPolled />}>
        What clients report now. A task says what a worker was assigned to do; it does not prove that anything was done.
      </PageHead>
      <FilterBar what="workers and windows" filters={filters} bare="client" />
      <Section title="Contexts" about="tabs, console flows and other places where clients run something">
        <List
          one="context"
          many="contexts"
          query={contexts}
          list={list}
          filters={filters}
          ownFilters={false}
          held="What its clients reported is shown"
          about={`${list?.nodes.length ?? 0} shown of ${plural(contexts.data?.contextCount.count ?? 0, 'context')}.`}
          empty={
            <Empty title="No client reports a context">
              A client reports its tabs, flows and workers with <code>reportContexts</code> of its runtime. They go when
              it stops, or when its connection is forgotten.
            </Empty>
          }
          caption="Execution contexts"
          columns={CONTEXT_COLUMNS}
          keyOf={(row) => `${row.userId}/${row.clientId}/${row.contextId}`}
          hrefOf={placeHref}
        />
      </Section>
      {hasWindows && (
        <Section
          title="Browser windows"
          about={
            windowCount > WINDOWS ? `${WINDOWS} of ${windowCount}; filter by user or client for the others` : undefined
          }
        >
          <ErrorNotice query={windows} what="browser windows" />
          <CutNotice completeness={windowList?.completeness} />
          {windowList && (
            <Table
              caption="Browser windows"
              columns={WINDOW_COLUMNS}
              rows={windowList.nodes}
              keyOf={(row) => `${row.userId}/${row.clientId}/${row.windowId}`}
              none="No client reports a window."
            />
          )}
        </Section>
      )}
    </>
  );
}

function filterOf(values: UrlState['values']): gql.ContextFilter {
  return {
    userId: values['user'] ?? null,
    clientId: values['client'] ?? null,
    windowId: values['window'] ?? null,
    ownership: oneOf(values['ownership'], OWNERSHIPS),
    status: oneOf(values['status'], STATUSES),
  };
}

const CONTEXT_SHAPES: Readonly<Record<gql.ContextStatus, ShapeName>> = {
  ACTIVE: 'up',
  IDLE: 'up',
  STALE: 'stale',
  CLOSED: 'down',
};
const WINDOW_SHAPES: Readonly<Record<gql.WindowStatus, ShapeName>> = { OPEN: 'up', STALE: 'stale', CLOSED: 'down' };

function statusOf({ status }: gql.ContextRowFragment) {
  return <StateMark shape={CONTEXT_SHAPES[status]}>{capitalWord(status)}</StateMark>;
}

/** Shows the title of a context with its id, because several contexts may have one title. */
function PlaceName(row: gql.ContextRowFragment) {
  const { contextId, title } = row;
  return (
    <a href={placeHref(row)} class={nameClass(title ?? contextId, title === null ? '' : contextId)}>
      {title ?? contextId}
      {title !== null && <span class="who-of id"> {contextId}</span>}
    </a>
  );
}

/**
 * Shows the task of a context: the action of its command, or the id of a task for which there is no record of a
 * command.
 */
function taskOf({ userId, clientId, taskId, command }: gql.ContextRowFragment) {
  if (taskId === null) return <Nil why="no task" />;
  return command ? <ActionLink userId={userId} clientId={clientId} {...command} /> : <ShortId id={taskId} />;
}

export const CONTEXT_COLUMNS: readonly Column<gql.ContextRowFragment>[] = [
  column('Status', 'nw c-1', statusOf),
  nameColumn('Context', 'c-3', (row) => <PlaceName {...row} />),
  column('Client', 'nw c-4 c-end', (row) => <ClientLink {...row} />),
  column('Ownership', 'nw c-off', (row) => capitalWord(row.ownership)),
  column('Window', 'nw c-off', (row) => row.windowId ?? <Nil why="in no window" />),
  labelled('Runs', 'nw c-5', taskOf),
  labelled('For', 'r nw c-6', (row) =>
    row.taskAssignedAt === null ? <Nil why="no task" /> : <Since at={row.taskAssignedAt} />,
  ),
  column('Reported', 'r nw c-2 c-end', (row) => <Ago at={row.reportedAt} />),
];

export const WINDOW_COLUMNS: readonly Column<gql.WindowRowFragment>[] = [
  column('Status', 'c-1', (row) => <StateMark shape={WINDOW_SHAPES[row.status]}>{capitalWord(row.status)}</StateMark>),
  nameColumn('Window', 'c-3', (row) => row.windowId),
  column('Client', 'nw c-4 c-end', (row) => <ClientLink {...row} />),
  column('Kind', 'nw c-off', (row) => kindOf(row)),
  column('Tabs', 'r c-off', (row) => <Count value={row.tabCount} />),
  labelled('Busy', 'r c-5', (row) => <Count value={row.busyCount} />),
  labelled('Idle', 'r c-6', (row) => <Count value={row.idleCount} />),
  labelled('Workers', 'r c-7', (row) => workersOf(row)),
  column('Reported', 'r nw c-2 c-end', (row) => <Ago at={row.reportedAt} />),
];

function kindOf(row: gql.WindowRowFragment): string {
  const marks = [
    row.type,
    row.ownership === 'WORKER' ? 'for work' : 'for the user',
    row.focused ? 'in focus' : '',
    row.incognito ? 'incognito' : '',
    row.draining ? 'takes no more workers' : '',
  ];
  return marks.filter((mark) => mark !== '').join(', ');
}

const workersOf = (row: gql.WindowRowFragment): string =>
  row.capacity === null ? String(row.workerCount) : `${row.workerCount} of ${row.capacity}`;

// The page of one context: what runs in it, who called that and since when, and the calls that named the context.

export function PlacePage() {
  const { user: userId = '', client: clientId = '', context: contextId = '' } = useRoute().params;
  return (
    <OnePlace key={`${userId}/${clientId}/${contextId}`} userId={userId} clientId={clientId} contextId={contextId} />
  );
}

type PlaceIds = { readonly userId: string; readonly clientId: string; readonly contextId: string };

function OnePlace(ids: PlaceIds) {
  const { userId, clientId, contextId } = ids;
  const query = useQuery(gql.PlacePageDocument, { ...ids, calls: ids }, LIVE);
  const found = query.data?.context;
  const place = useLatest(found);
  const calls = query.data?.commands;
  return (
    <>
      <PageHead
        title={place?.title ?? contextId}
        crumbs={[
          { href: pagePath('places'), text: 'Workers and windows' },
          { href: clientHref(ids), text: `${userId} / ${clientId}` },
        ]}
        acts={[<PauseButton isPolled />, <InvokeButton start={{ userId, clientId }} />]}
      >
        <FullId id={contextId} what="context id" />
      </PageHead>
      <ErrorNotice query={query} what="this context" />
      {!query.data && query.loading && <Loading what="this context" />}
      {query.data && !found && (
        <Information>
          <b>{clientId} does not report this context.</b> It was closed, or the client is away.
          {place && ' What is shown of it is what was last known.'}
        </Information>
      )}
      {place && <Here place={place} running={found ? (calls?.nodes ?? []).filter(isRunning) : []} />}
      {calls && (
        <Section title="Calls that named it" about="those that run, and those that ended in the last hour">
          <CutNotice completeness={calls.completeness} />
          <CallsTable
            caption="Calls that named this context"
            rows={calls.nodes}
            without={['Client']}
            none="No call with a record named this context. A call that names none runs where its client chooses."
          />
        </Section>
      )}
    </>
  );
}

type Call = gql.PlacePageQuery['commands']['nodes'][number];
const isRunning = ({ outcome, stage }: Call): boolean => outcome === null && stage !== 'ADMITTED' && stage !== 'QUEUED';

type HereProps = { readonly place: NonNullable<gql.PlacePageQuery['context']>; readonly running: readonly Call[] };

/** Shows what runs in a context: its task, as the client reports it, and the calls that were written for it. */
function Here({ place, running }: HereProps) {
  const { userId, clientId, taskId, taskAssignedAt, command, windowId, ownership, metadata } = place;
  const calls = running.filter(({ commandId }) => commandId !== taskId);
  const caller = command?.delivery?.caller;
  return (
    <>
      <div class="case-head">
        <div>
          <p>{statusOf(place)}</p>
          {taskId === null && calls.length === 0 && <p>Nothing runs here, as far as {clientId} reports.</p>}
          {taskId !== null && (
            <p>
              Runs <b>{taskOf(place)}</b>
              {caller && (
                <>
                  , called by <CallerLink caller={caller} page="calls" />
                </>
              )}
              {taskAssignedAt !== null && (
                <>
                  , for <Since at={taskAssignedAt} />
                </>
              )}
              , as {clientId} reports.
            </p>
          )}
          {calls.map((call) => (
            <p key={call.commandId}>
              <CommandMark {...call} /> <ActionLink {...call} />, called by{' '}
              <CallerLink caller={call.caller} page="calls" /> <Ago at={call.admittedAt} />, was written for this
              context.
            </p>
          ))}
        </div>
        <Facts
          rows={[
            ['Client', <ClientLink userId={userId} clientId={clientId} />],
            ['Ownership', capitalWord(ownership)],
            ['Window', windowId ?? <Nil why="in no window" />],
            taskId === null ? null : ['Task', <FullId id={taskId} what="task id" />],
            ['Reported', <Ago at={place.reportedAt} />],
          ]}
        />
      </div>
      <Metadata value={metadata} />
    </>
  );
}
