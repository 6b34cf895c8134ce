/** Shows the execution contexts and browser windows that clients report. */
import {
  ContextsDocument,
  WindowsDocument,
  type ContextFilter,
  type ContextsQuery,
  type ContextStatus,
  type Ownership,
  type WindowsQuery,
} from '../../generated/console.ts';
import { useQuery, type Query } from '../api/query.ts';
import { isAdmin } from '../shell/facts.tsx';
import { AsOf } from '../ui/as-of.tsx';
import { Empty } from '../ui/empty.tsx';
import { FilterBar, type Filter } from '../ui/filters.tsx';
import { plural } from '../ui/format.ts';
import { CutNotice, ErrorNotice } from '../ui/notice.tsx';
import { PageHead, Section } from '../ui/page.tsx';
import { PAGE_SIZE } from '../ui/page-size.ts';
import { List } from '../ui/list.tsx';
import { Table } from '../ui/table.tsx';
import { oneOf, useUrlState, type UrlState } from '../ui/url-state.ts';
import { CONTEXT_COLUMNS, WINDOW_COLUMNS } from './columns.tsx';

const STATUSES: readonly ContextStatus[] = ['ACTIVE', 'IDLE', 'STALE', 'CLOSED'];
const OWNERSHIPS: readonly Ownership[] = ['WORKER', 'USER_OWNED'];
const FILTERS: readonly Filter[] = [
  { name: 'user', label: 'User' },
  { name: 'client', label: 'Client' },
  { name: 'window', label: 'Window' },
  {
    name: 'ownership',
    label: 'Ownership',
    choices: [
      { value: 'worker', text: 'worker' },
      { value: 'user_owned', text: 'user owned' },
    ],
  },
  {
    name: 'status',
    label: 'Status',
    choices: STATUSES.map((name) => ({ value: name.toLowerCase(), text: name.toLowerCase() })),
  },
];

/**
 * The number of windows that are shown above the contexts. Users have few windows, so there is only one page of them.
 */
const WINDOWS = 20;

export function PlacesPage() {
  const { values } = useUrlState();
  const filters = isAdmin.value ? FILTERS : FILTERS.filter(({ name }) => name !== 'user');
  const filter = filterOf(values);
  const contexts = useQuery(ContextsDocument, { filter, first: PAGE_SIZE, after: values['after'] ?? null });
  const { userId, clientId, ownership } = filter;
  // A filter by status or by window can match no window: a window has no status and is not inside another window.
  const hasWindows = !values['window'] && !values['status'];
  const ofWindows = { filter: { userId, clientId, ownership }, first: WINDOWS, after: null };
  const windows = useQuery(WindowsDocument, ofWindows, { skip: !hasWindows });
  return (
    <>
      <PageHead title="Workers and windows" acts={<AsOf queries={hasWindows ? [contexts, windows] : [contexts]} />}>
        What clients report now. A task of a worker is an assignment in this registry; it proves no effect.
      </PageHead>
      <FilterBar what="workers and windows" filters={filters} bare="client" />
      <Contexts filters={filters} query={contexts} />
      {hasWindows && <Windows query={windows} />}
    </>
  );
}

type ContextsProps = { readonly filters: readonly Filter[]; readonly query: Query<ContextsQuery> };

function Contexts({ filters, query }: ContextsProps) {
  const list = query.data?.contexts;
  return (
    <Section title="Contexts" about="tabs, console flows and other places where clients run something">
      <List
        one="context"
        many="contexts"
        query={query}
        list={list}
        filters={filters}
        ownFilters={false}
        held="What its clients reported is shown"
        about={`${list?.nodes.length ?? 0} shown of ${plural(query.data?.contextCount.count ?? 0, 'context')}.`}
        empty={<NoContexts />}
      >
        <Table
          caption="Execution contexts"
          columns={CONTEXT_COLUMNS}
          rows={list?.nodes ?? []}
          keyOf={(row) => `${row.userId}/${row.clientId}/${row.contextId}`}
        />
      </List>
    </Section>
  );
}

function NoContexts() {
  return (
    <Empty title="No client reports a context">
      <p>
        A client reports its tabs, flows and workers with <code>runtime.report</code>. They go when it stops, or when
        its connection is forgotten.
      </p>
    </Empty>
  );
}

function Windows({ query }: { readonly query: Query<WindowsQuery> }) {
  const list = query.data?.browserWindows;
  const count = query.data?.browserWindowCount.count ?? 0;
  return (
    <Section
      title="Browser windows"
      about={count > WINDOWS ? `${WINDOWS} of ${count}; filter by user or client for the others` : undefined}
    >
      <ErrorNotice query={query} what="browser windows" />
      <CutNotice completeness={list?.completeness} />
      {list && list.nodes.length === 0 && <p class="soft">No client reports a window.</p>}
      {list && list.nodes.length > 0 && (
        <Table
          caption="Browser windows"
          columns={WINDOW_COLUMNS}
          rows={list.nodes}
          keyOf={(row) => `${row.userId}/${row.clientId}/${row.windowId}`}
        />
      )}
    </Section>
  );
}

function filterOf(values: UrlState['values']): ContextFilter {
  return {
    userId: values['user'] ?? null,
    clientId: values['client'] ?? null,
    windowId: values['window'] ?? null,
    ownership: oneOf(values['ownership']?.toUpperCase(), OWNERSHIPS),
    status: oneOf(values['status']?.toUpperCase(), STATUSES),
  };
}
