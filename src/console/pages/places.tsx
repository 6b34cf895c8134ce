/** Shows the execution contexts and browser windows that clients report. */
import {
  ContextsDocument,
  WindowsDocument,
  type ContextFilter,
  type ContextRowFragment,
  type ContextStatus,
  type Ownership,
  type WindowRowFragment,
  type WindowStatus,
} from '../../../generated/console.ts';
import { useQuery } from '../api/query.ts';
import { callHref } from '../base.ts';
import { isAdmin } from '../shell/facts.tsx';
import { FilterBar, choicesOf, oneOf, useUrlState, type Filter, type UrlState } from '../ui/filters.tsx';
import { AsOf, ClientLink, Count, CutNotice, Empty, ErrorNotice, Nil, PageHead, Section } from '../ui/page.tsx';
import { List, Table, pageOf, type Column } from '../ui/table.tsx';
import { Ago, ShortId, Since, StateMark, type ShapeName } from '../ui/values.tsx';
import { capitalWord, isWholeId, nameClass, plural } from '../ui/words.ts';

const STATUSES: readonly ContextStatus[] = ['ACTIVE', 'IDLE', 'STALE', 'CLOSED'];
const OWNERSHIPS: readonly Ownership[] = ['WORKER', 'USER_OWNED'];
const FILTERS: readonly Filter[] = [
  { name: 'user', label: 'User' },
  { name: 'client', label: 'Client' },
  { name: 'window', label: 'Window' },
  { name: 'ownership', label: 'Ownership', choices: choicesOf(OWNERSHIPS) },
  { name: 'status', label: 'Status', choices: choicesOf(STATUSES) },
];

/** The number of windows that are shown below the contexts. Users have few windows, so there is one page of them. */
const WINDOWS = 20;

export function PlacesPage() {
  const { values } = useUrlState();
  const filters = isAdmin.value ? FILTERS : FILTERS.slice(1);
  const filter = filterOf(values);
  const contexts = useQuery(ContextsDocument, { filter, ...pageOf(values) });
  const list = contexts.data?.contexts;
  const { userId, clientId, ownership } = filter;
  // Filters by status and by window are about contexts: windows have other statuses and are not inside a window.
  const hasWindows = !values['window'] && !values['status'];
  const ofWindows = { filter: { userId, clientId, ownership }, first: WINDOWS, after: null };
  const windows = useQuery(WindowsDocument, ofWindows, { skip: !hasWindows });
  const windowList = windows.data?.browserWindows;
  const windowCount = windows.data?.browserWindowCount.count ?? 0;
  return (
    <>
      <PageHead title="Workers and windows" acts={<AsOf queries={hasWindows ? [contexts, windows] : [contexts]} />}>
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
              <p>
                A client reports its tabs, flows and workers with <code>reportContexts</code> of its runtime. They go
                when it stops, or when its connection is forgotten.
              </p>
            </Empty>
          }
          caption="Execution contexts"
          columns={CONTEXT_COLUMNS}
          keyOf={(row) => `${row.userId}/${row.clientId}/${row.contextId}`}
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

function filterOf(values: UrlState['values']): ContextFilter {
  return {
    userId: values['user'] ?? null,
    clientId: values['client'] ?? null,
    windowId: values['window'] ?? null,
    ownership: oneOf(values['ownership'], OWNERSHIPS),
    status: oneOf(values['status'], STATUSES),
  };
}

const CONTEXT_SHAPES: Readonly<Record<ContextStatus, ShapeName>> = {
  ACTIVE: 'up',
  IDLE: 'up',
  STALE: 'stale',
  CLOSED: 'down',
};
/** Shows the task of a context: the end of its id, with a link to the call if the task is a command of the client. */
function taskOf({ userId, clientId, taskId }: ContextRowFragment) {
  if (taskId === null) return <Nil why="no task" />;
  return <ShortId id={taskId} href={isWholeId(taskId) ? callHref({ userId, clientId, commandId: taskId }) : null} />;
}

const WINDOW_SHAPES: Readonly<Record<WindowStatus, ShapeName>> = { OPEN: 'up', STALE: 'stale', CLOSED: 'down' };

export const CONTEXT_COLUMNS: readonly Column<ContextRowFragment>[] = [
  {
    head: 'Status',
    class: 'c-1',
    cell: (row) => <StateMark shape={CONTEXT_SHAPES[row.status]}>{capitalWord(row.status)}</StateMark>,
  },
  {
    head: 'Context',
    class: 'c-3',
    names: true,
    cell: ({ contextId, title }) => (
      <span title={contextId} class={nameClass(title ?? contextId)}>
        {title ?? contextId}
      </span>
    ),
  },
  { head: 'Client', class: 'nw c-4 c-end', cell: (row) => <ClientLink {...row} /> },
  { head: 'Ownership', class: 'nw c-off', cell: (row) => capitalWord(row.ownership) },
  { head: 'Window', class: 'nw c-off', cell: (row) => row.windowId ?? <Nil why="in no window" /> },
  { head: 'Task', class: 'nw c-5', label: 'task', cell: taskOf },
  {
    head: 'For',
    class: 'r nw c-6',
    cell: (row) => (row.taskAssignedAt === null ? <Nil why="no task" /> : <Since at={row.taskAssignedAt} />),
  },
  { head: 'Reported', class: 'r nw c-2 c-end', cell: (row) => <Ago at={row.reportedAt} /> },
];

export const WINDOW_COLUMNS: readonly Column<WindowRowFragment>[] = [
  {
    head: 'Status',
    class: 'c-1',
    cell: (row) => <StateMark shape={WINDOW_SHAPES[row.status]}>{capitalWord(row.status)}</StateMark>,
  },
  { head: 'Window', class: 'c-3', names: true, cell: (row) => row.windowId },
  { head: 'Client', class: 'nw c-4 c-end', cell: (row) => <ClientLink {...row} /> },
  { head: 'Kind', class: 'nw c-off', cell: (row) => kindOf(row) },
  { head: 'Tabs', class: 'r c-off', cell: (row) => <Count value={row.tabCount} /> },
  { head: 'Busy', class: 'r c-5', label: 'busy', cell: (row) => <Count value={row.busyCount} /> },
  { head: 'Idle', class: 'r c-6', label: 'idle', cell: (row) => <Count value={row.idleCount} /> },
  { head: 'Workers', class: 'r c-7', label: 'workers', cell: (row) => workersOf(row) },
  { head: 'Reported', class: 'r nw c-2 c-end', cell: (row) => <Ago at={row.reportedAt} /> },
];

function kindOf(row: WindowRowFragment): string {
  const marks = [
    row.type,
    row.ownership === 'WORKER' ? 'for work' : 'for the user',
    row.focused ? 'in focus' : '',
    row.incognito ? 'incognito' : '',
    row.draining ? 'takes no more workers' : '',
  ];
  return marks.filter((mark) => mark !== '').join(', ');
}

function workersOf(row: WindowRowFragment): string {
  return row.capacity === null ? String(row.workerCount) : `${row.workerCount} of ${row.capacity}`;
}
