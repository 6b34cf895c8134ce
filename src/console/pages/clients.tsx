/** Shows the list of clients whose link is up or was lost recently, and the clients that rank first by a measure. */
import { useLayoutEffect, useState } from 'preact/hooks';
import * as gql from '../../../generated/console.ts';
import { useLive } from '../api/live.ts';
import { useQuery } from '../api/query.ts';
import { clientHref, pagePath } from '../base.ts';
import { LiveNotice, PauseButton } from '../shell/relay-notices.tsx';
import { isAdmin, isSilent, linkCount, silentNodes } from '../shell/facts.tsx';
import { oneOf, useUrlState, type UrlState } from '../ui/url-state.ts';
import { choicesOf, type Filter } from '../ui/filters.tsx';
import { Empty } from '../ui/notices.tsx';
import { ClientLink, Count, Nil, PageHead, Views } from '../ui/page.tsx';
import { List, pageOf } from '../ui/list.tsx';
import { NewBar, useLiveRows } from '../ui/live-rows.tsx';
import { PAGE_SIZE, labelled, column, nameColumn, type Column } from '../ui/table.tsx';
import { Ago } from '../ui/times.tsx';
import { whole } from '../ui/amounts.ts';
import { CAUSE, plural, sentenceCase } from '../ui/text-format.ts';
import { CLIENT_COLUMNS, ClientState, NoClients } from './columns.tsx';
import { isUnstable } from './states.ts';

const STATUSES: readonly gql.ConnectionStatus[] = ['CONNECTED', 'STALE', 'DISCONNECTED'];
const TYPES: readonly gql.ClientType[] = ['BROWSER', 'CONSOLE', 'MOBILE', 'WEB'];
const FILTERS: readonly Filter[] = [
  { name: 'user', label: 'User' },
  { name: 'node', label: 'Node' },
  { name: 'action', label: 'Action' },
  { name: 'label', label: 'Label' },
  { name: 'text', label: 'Text' },
  { name: 'type', label: 'Type', choices: choicesOf(TYPES) },
  { name: 'status', label: 'Status', choices: choicesOf(STATUSES) },
];

const keyOf = ({ userId, clientId }: Pick<gql.ClientRowFragment, 'userId' | 'clientId'>): string =>
  `${userId}/${clientId}`;

export function ClientsPage() {
  const { values } = useUrlState();
  const ranking = isAdmin.value ? RANKINGS.find(({ view }) => view === values['view']) : undefined;
  return ranking ? <TopClients key={ranking.view} ranking={ranking} /> : <ClientList />;
}

/**
 * Shows links to the views of clients, with the number of clients where counting them is cheap. `all`: the number for
 * the view of all clients.
 */
function ClientViews({ all }: { readonly all?: number | undefined }) {
  const { values } = useUrlState();
  const backlog = useQuery(gql.BacklogCountDocument, {}).data?.topClients.items.length;
  const silent = silentNodes.value.reduce((sum, { links }) => sum + links, 0);
  const counts: Readonly<Record<string, string | undefined>> = {
    '': all === undefined ? undefined : whole(all),
    backlog: backlog === undefined ? undefined : backlog === RANKED_MAX ? `${RANKED_MAX} or more` : whole(backlog),
    [SILENT]: whole(silent),
  };
  return (
    <Views
      label="Views"
      views={VIEWS.map(({ name, view }) => ({
        name,
        href: pagePath(view === '' ? 'clients' : `clients?view=${view}`),
        isCurrent: (values['view'] ?? '') === view && (view !== '' || isUnfiltered(values)),
        count: counts[view],
      }))}
    />
  );
}

const isUnfiltered = (values: UrlState['values']): boolean => FILTERS.every(({ name }) => !values[name]);

type Listed = gql.ClientsQuery['connections']['nodes'][number];
/**
 * A client of the list. The number of waiting callers is null for a client that has appeared since the list was read.
 */
type ListedRow = Omit<Listed, 'pendingRpcCount' | 'reconnectsLastHour'> & {
  readonly pendingRpcCount: number | null;
  readonly reconnectsLastHour?: number;
};

const LIST_COLUMNS: readonly Column<ListedRow>[] = CLIENT_COLUMNS.flatMap((column): readonly Column<ListedRow>[] => {
  if (column.head !== 'In flight') return [column];
  return [
    column,
    labelled('Waiting', 'r c-7', ({ pendingRpcCount: count }) =>
      count === null ? <Nil why="not read since it changed" /> : <Count value={count} />,
    ),
  ];
});

function ClientList() {
  const { values } = useUrlState();
  const userId = isAdmin.value ? (values['user'] ?? null) : null;
  const filter = filterOf(values);
  const query = useQuery(gql.ClientsDocument, { ...filter, userId, ...pageOf(values) });
  const list = query.data?.connections;
  const { rows, fresh, push } = useLiveRows<ListedRow>(list?.nodes, { keyOf, query });
  const isPlain = isUnfiltered(values) && !values['view'];
  // Whether the list contains all clients. Then they are counted here, because the counts that nodes report are some
  // seconds old.
  const isWhole = isPlain && !values['after'] && list?.pageInfo.hasNextPage === false;
  useLive(gql.ClientChangesDocument, {
    variables: { userId },
    onData: ({ connectionEvents: { connection, missed } }) => {
      // The number of waiting callers comes from the list: an event does not contain it, because counting them needs an
      // answer from every relay.
      const known = list?.nodes.find((row) => keyOf(row) === keyOf(connection));
      const row = { ...connection, pendingRpcCount: known?.pendingRpcCount ?? null };
      push(row, !values['after'] && fits(connection, filter));
      return missed;
    },
    onStale: query.again,
  });
  return (
    <>
      <PageHead title="Clients" acts={<PauseButton />}>
        Links that are up, or were lost a short while ago.
      </PageHead>
      {isAdmin.value && <ClientViews all={isWhole ? rows.length : (linkCount.value ?? undefined)} />}
      <List
        one="client"
        many="clients"
        query={query}
        list={list}
        filters={isAdmin.value ? FILTERS : FILTERS.slice(1)}
        bare="text"
        held="Clients of this node are shown"
        notices={[<LiveNotice />, <NewBar count={fresh} one="client" many="clients" onShow={query.again} />]}
        about={`${plural(rows.length, 'client')} on this page, in order of user and client.`}
        empty={filter.onSilentNodes ? <NoneSilent /> : <NoClients />}
        caption="Clients by user and client"
        columns={LIST_COLUMNS}
        rows={rows}
        keyOf={keyOf}
        hrefOf={clientHref}
        isRecorded={(row) => isSilent(row.nodeId)}
      />
    </>
  );
}

type ClientFilter = Omit<gql.ClientsQueryVariables, 'userId' | 'first' | 'after'>;

function filterOf(values: UrlState['values']): ClientFilter {
  const label = values['label'];
  return {
    nodeId: values['node'] ?? null,
    status: oneOf(values['status'], STATUSES),
    clientType: oneOf(values['type'], TYPES),
    action: values['action'] ?? null,
    text: values['text'] ?? null,
    labels: label === undefined ? null : [label],
    onSilentNodes: isAdmin.value && values['view'] === SILENT ? true : null,
  };
}

function NoneSilent() {
  return (
    <Empty title="No client is on a silent node" mark="all">
      Every node reports, so the state of every client is known.
    </Empty>
  );
}

/** Whether a changed connection belongs to the filtered list. False if only the relay can apply the filter. */
function fits(row: gql.ClientRowFragment, filter: ClientFilter): boolean {
  if (filter.text || filter.labels || filter.onSilentNodes) return false;
  return (
    (filter.nodeId ?? row.nodeId) === row.nodeId &&
    (filter.status ?? row.status) === row.status &&
    (filter.clientType ?? row.clientType) === row.clientType &&
    (!filter.action || row.actionNames.includes(filter.action))
  );
}

// The clients that rank first by a measure. The relay returns all of them in one answer, of which the page shows a
// part.

/** The maximum number of clients that the relay ranks. */
const RANKED_MAX = 100;

type Row = gql.TopClientsQuery['topClients']['items'][number];

type Ranking = {
  /** The name of the view, as it appears in the URL. */
  readonly view: string;
  readonly by: gql.ClientMeasure;
  readonly title: string;
  /** A sentence about what the view shows. */
  readonly about: string;
  /** The order of the rows, for the line under the table. */
  readonly order: string;
  readonly none: string;
  readonly columns: readonly Column<Row>[];
};

/** The name of the view of clients on silent nodes. This view is the normal list with a filter. */
const SILENT = 'silent';

const ROW_COLUMNS: readonly Column<Row>[] = [
  column('Status', 'c-1', (row) => <ClientState {...row} />),
  nameColumn('Client', 'c-3', (row) => <ClientLink {...row} />),
  labelled('Node', 'nw c-5', ({ connection }) => connection?.nodeId ?? <Nil why="none" />),
  labelled('Queued', 'r c-6 c-end', ({ queued }) => <Count value={queued} />),
  labelled('In flight', 'r c-7', ({ inFlight }) => <Count value={inFlight} />),
  labelled('Waiting', 'r c-7', (row) => <Count value={row.pendingRpcCount} />),
];
const RECONNECTS: Column<Row> = labelled('Reconnects', 'r c-2', ({ reconnectsLastHour: count }) => (
  <Count value={count} text={whole(count)} />
));
const LAST_SEEN: Column<Row> = labelled('Last seen', 'r nw c-8', ({ connection }) =>
  connection ? <Ago at={connection.lastSeenAt} /> : <Nil why="forgotten" />,
);
const LAST_END: Column<Row> = column('Last link ended', 'c-9 c-wide', ({ connection, reconnectsLastHour }) => {
  if (connection?.disconnectCause) return sentenceCase(CAUSE[connection.disconnectCause]);
  // For an unstable client, the status column already shows why its links end.
  return <Nil why={isUnstable(reconnectsLastHour) ? 'see its status' : 'its link is up'} />;
});

const RANKINGS: readonly Ranking[] = [
  {
    view: 'backlog',
    by: 'BACKLOG',
    title: 'Clients with a backlog',
    about: 'Clients with calls that have not ended, connected or not.',
    order: 'most calls first',
    none: 'No client has a call that has not ended.',
    columns: [...ROW_COLUMNS, RECONNECTS, LAST_SEEN],
  },
  {
    view: 'reconnects',
    by: 'RECONNECTS',
    title: 'Clients that reconnect most',
    about:
      'How often the links of clients opened again in the last hour. The page of a client says why its links ended.',
    order: 'most reconnects first',
    none: 'No client reconnected in the last hour.',
    columns: [...ROW_COLUMNS.slice(0, 2), RECONNECTS, ...ROW_COLUMNS.slice(2, 4), LAST_SEEN],
  },
  {
    view: 'silence',
    by: 'SILENCE',
    title: 'Clients that were silent longest',
    about: 'Lost links first, then the clients that were heard from longest ago.',
    order: 'lost links first',
    none: 'No client is connected, and none was lost a short while ago.',
    columns: [...ROW_COLUMNS.slice(0, 2), { ...LAST_SEEN, class: 'r nw c-2' }, ...ROW_COLUMNS.slice(2), LAST_END],
  },
];

const VIEWS: readonly { readonly name: string; readonly view: string }[] = [
  { name: 'All', view: '' },
  { name: 'With a backlog', view: 'backlog' },
  { name: 'On silent nodes', view: SILENT },
  { name: 'Most reconnects', view: 'reconnects' },
  { name: 'Silent longest', view: 'silence' },
];

function TopClients({ ranking: { by, title, about, order, none, columns } }: { readonly ranking: Ranking }) {
  const query = useQuery(gql.TopClientsDocument, { by });
  const list = query.data?.topClients;
  const items = list?.items ?? [];
  const { values } = useUrlState();
  const start = startOf(values['after'], items.length);
  const shown = items.slice(start, start + PAGE_SIZE);
  const end = start + shown.length;
  const span = shown.length < items.length ? `${start + 1} to ${end} of ` : '';
  const [fresh, setFresh] = useState(0);
  useLayoutEffect(() => setFresh(0), [list]);
  useLive(gql.ClientChangesDocument, {
    variables: { userId: null },
    onData: ({ connectionEvents: { missed } }) => {
      setFresh((was) => was + 1);
      return missed;
    },
    onStale: query.again,
  });
  return (
    <>
      <PageHead title={title} acts={<PauseButton />}>
        {about}
      </PageHead>
      <ClientViews />
      <List
        one="client"
        many="these clients"
        query={query}
        list={list && { ...list, nodes: shown, pageInfo: { hasNextPage: end < items.length, endCursor: String(end) } }}
        held="Clients of this node are shown"
        notices={[<LiveNotice />, <NewBar count={fresh} one="change" many="changes" onShow={query.again} />]}
        about={`${span}${plural(items.length, 'client')}, ${order}.`}
        isCut={false}
        size={Math.min(PAGE_SIZE, items.length - end)}
        empty={<p class="soft">{none}</p>}
        caption={title}
        columns={columns}
        keyOf={keyOf}
        hrefOf={clientHref}
        isRecorded={({ connection }) => isSilent(connection?.nodeId ?? null)}
      />
    </>
  );
}

/**
 * Returns the index of the first ranked client that the page shows. `after`: the number of clients on earlier pages,
 * from the URL. If the ranking has become shorter than that, returns the index for its last page.
 */
function startOf(after: string | undefined, count: number): number {
  const lastPage = Math.floor(Math.max(0, count - 1) / PAGE_SIZE);
  const page = Math.floor(Number(after ?? 0) / PAGE_SIZE);
  return page > 0 ? Math.min(page, lastPage) * PAGE_SIZE : 0;
}
