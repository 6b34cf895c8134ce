/** Shows the list of clients whose link is up or was lost recently, and the list of those that reconnected most. */
import { useLayoutEffect, useState } from 'preact/hooks';
import {
  ClientChangesDocument,
  ClientsDocument,
  FlappingDocument,
  type ClientRowFragment,
  type ClientType,
  type ClientsQueryVariables,
  type ConnectionChange,
  type ConnectionStatus,
  type FlappingQuery,
} from '../../../generated/console.ts';
import { useLive, useQuery } from '../api/query.ts';
import { clientHref, pagePath, relayUrl } from '../base.ts';
import { LiveNotice, PauseButton, Sources, isAdmin, isSilent, viewer } from '../shell/facts.tsx';
import { choicesOf, oneOf, useUrlState, type Filter, type UrlState } from '../ui/filters.tsx';
import { ClientLink, Empty, ErrorNotice, Loading, Nil, PageHead } from '../ui/page.tsx';
import { List, NewBar, Pager, Table, pageOf, useLiveRows, type Column } from '../ui/table.tsx';
import { ConnectionMark, CopyLine } from '../ui/values.tsx';
import { CAUSE, plural, sentenceCase, whole } from '../ui/words.ts';
import { CLIENT_COLUMNS } from './columns.tsx';

const STATUSES: readonly ConnectionStatus[] = ['CONNECTED', 'STALE', 'DISCONNECTED'];
const TYPES: readonly ClientType[] = ['BROWSER', 'CONSOLE', 'MOBILE', 'WEB'];
const FILTERS: readonly Filter[] = [
  { name: 'user', label: 'User' },
  { name: 'node', label: 'Node' },
  { name: 'action', label: 'Action' },
  { name: 'label', label: 'Label' },
  { name: 'text', label: 'Text' },
  { name: 'type', label: 'Type', choices: choicesOf(TYPES) },
  { name: 'status', label: 'Status', choices: choicesOf(STATUSES) },
];

const keyOf = ({ userId, clientId }: Pick<ClientRowFragment, 'userId' | 'clientId'>): string => `${userId}/${clientId}`;

export function ClientsPage() {
  const { values } = useUrlState();
  return isAdmin.value && values['view'] === 'reconnects' ? <FlappingClients /> : <ClientList />;
}

function ClientList() {
  const { values } = useUrlState();
  const userId = isAdmin.value ? (values['user'] ?? null) : null;
  const filter = filterOf(values);
  const query = useQuery(ClientsDocument, { ...filter, userId, ...pageOf(values) });
  const list = query.data?.connections;
  const { rows, fresh, push } = useLiveRows(list?.nodes, { keyOf });
  useLive(ClientChangesDocument, {
    variables: { userId },
    onData: ({ connectionEvents: { connection, missed } }) => {
      push(connection, !values['after'] && fits(connection, filter));
      return missed;
    },
    onStale: query.again,
  });
  return (
    <>
      <PageHead
        title="Clients"
        acts={
          <>
            {isAdmin.value && (
              <a class="btn" href={pagePath('clients?view=reconnects')}>
                Most reconnects
              </a>
            )}
            <PauseButton />
          </>
        }
      >
        Links that are up, or were lost a short while ago.
      </PageHead>
      <List
        one="client"
        many="clients"
        query={query}
        list={list}
        filters={isAdmin.value ? FILTERS : FILTERS.slice(1)}
        bare="text"
        held="Clients of this node are shown"
        notices={
          <>
            <LiveNotice />
            <NewBar count={fresh} one="client" many="clients" onShow={query.again} />
          </>
        }
        about={`${plural(rows.length, 'client')} on this page, in order of user and client.`}
        empty={<NoClients />}
        caption="Clients by user and client"
        columns={CLIENT_COLUMNS}
        rows={rows}
        keyOf={keyOf}
        hrefOf={clientHref}
        isRecorded={(row) => isSilent(row.nodeId)}
      />
    </>
  );
}

type ClientFilter = Omit<ClientsQueryVariables, 'userId' | 'first' | 'after'>;

function filterOf(values: UrlState['values']): ClientFilter {
  const label = values['label'];
  return {
    nodeId: values['node'] ?? null,
    status: oneOf(values['status'], STATUSES),
    clientType: oneOf(values['type'], TYPES),
    action: values['action'] ?? null,
    text: values['text'] ?? null,
    labels: label === undefined ? null : [label],
  };
}

/**
 * Whether a connection that just changed belongs to the filtered list. False with a filter for text or labels, which
 * only the relay applies.
 */
function fits(row: ClientRowFragment, filter: ClientFilter): boolean {
  if (filter.text || filter.labels) return false;
  return (
    (filter.nodeId ?? row.nodeId) === row.nodeId &&
    (filter.status ?? row.status) === row.status &&
    (filter.clientType ?? row.clientType) === row.clientType &&
    (!filter.action || row.actionNames.includes(filter.action))
  );
}

// Shows the clients that reconnected most in the last hour.

type Row = FlappingQuery['flapping']['items'][number];

/** The changes in which a link opens. */
const OPENED: readonly ConnectionChange[] = ['CONNECTED', 'RESUMED', 'REPLACED'];

const COLUMNS: readonly Column<Row>[] = [
  { head: 'Client', class: 'c-1', names: true, cell: (row) => <ClientLink {...row} /> },
  { head: 'Reconnects', class: 'r c-2', label: 'reconnects', cell: ({ reconnects }) => whole(reconnects) },
  { head: 'Status', class: 'c-3', cell: statusOf },
  { head: 'Node', class: 'nw c-4 c-end', label: 'node', cell: ({ connection }) => connection?.nodeId },
  {
    head: 'Last link ended',
    class: 'c-5',
    cell: ({ connection }) =>
      connection?.disconnectCause ? sentenceCase(CAUSE[connection.disconnectCause]) : <Nil why="its link is up" />,
  },
];

function FlappingClients() {
  const query = useQuery(FlappingDocument, {});
  const list = query.data?.flapping;
  const [fresh, setFresh] = useState(0);
  useLayoutEffect(() => setFresh(0), [list]);
  useLive(ClientChangesDocument, {
    variables: { userId: null },
    onData: ({ connectionEvents: { change, missed } }) => {
      if (OPENED.includes(change)) setFresh((was) => was + 1);
      return missed;
    },
    onStale: query.again,
  });
  return (
    <>
      <PageHead
        title="Clients that reconnect most"
        crumbs={[{ href: pagePath('clients'), text: 'Clients' }]}
        acts={<PauseButton />}
      >
        How often the links of clients opened again in the last hour. The page of a client says why its links ended.
      </PageHead>
      <ErrorNotice query={query} what="these clients" />
      <Sources completeness={list?.completeness} held="Clients of this node are shown" />
      <LiveNotice />
      <NewBar count={fresh} one="link" many="links" onShow={query.again} />
      {!list && query.loading && <Loading what="clients" />}
      {list && (
        <Table
          caption="Clients by reconnects in the last hour"
          columns={COLUMNS}
          rows={list.items}
          keyOf={keyOf}
          hrefOf={clientHref}
          none="No client reconnected in the last hour."
        />
      )}
      {list && list.items.length > 0 && (
        <Pager first={null} next={null} size={list.items.length}>
          {plural(list.items.length, 'client')}, most reconnects first.
        </Pager>
      )}
    </>
  );
}

function statusOf({ connection }: Row) {
  if (!connection) return <Nil why="the relay has forgotten its connection" />;
  return <ConnectionMark status={connection.status} recorded={isSilent(connection.nodeId)} />;
}

function NoClients() {
  const user = viewer.value?.userId ?? 'alice';
  return (
    <Empty title="No client is connected yet">
      <p>Start the demo, or connect a client of your own with a user’s token.</p>
      <CopyLine text="npm run demo" />
      <CopyLine text={`callboard token --user ${user}`} />
      <CopyLine text={programText(relayUrl().replace(/^http/, 'ws'))} />
    </Empty>
  );
}

function programText(url: string): string {
  return `import { createRuntime } from 'callboard/runtime';

const runtime = createRuntime({
  url: '${url}/connect',
  token: TOKEN, // what the command above prints
  clientId: 'kiosk-1',
  clientType: 'console',
});
runtime.handle('notes.add', { summary: 'Adds a note' }, ({ text }) => ({ added: text }));
runtime.connect();`;
}
