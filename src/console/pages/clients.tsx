/** Shows the list of clients: those whose link is up, or was lost recently. */
import {
  ClientChangesDocument,
  ClientsDocument,
  type ClientRowFragment,
  type ClientsQueryVariables,
  type ClientType,
  type ConnectionStatus,
} from '../../generated/console.ts';
import { useLive } from '../api/live.ts';
import { useQuery } from '../api/query.ts';
import { pagePath } from '../base.ts';
import { isAdmin, isSilent } from '../shell/facts.tsx';
import { LiveNotice, PauseButton } from '../shell/live-notice.tsx';
import { type Filter } from '../ui/filters.tsx';
import { plural } from '../ui/format.ts';
import { clientHref } from '../ui/links.tsx';
import { NewBar, useLiveRows } from '../ui/live-rows.tsx';
import { PageHead } from '../ui/page.tsx';
import { List } from '../ui/list.tsx';
import { Table } from '../ui/table.tsx';
import { oneOf, useUrlState, type UrlState } from '../ui/url-state.ts';
import { CLIENT_COLUMNS } from './columns.tsx';
import { NoClients } from './empty.tsx';
import { FlappingClients } from './flapping.tsx';
import { PAGE_SIZE } from '../ui/page-size.ts';

const STATUSES: readonly ConnectionStatus[] = ['CONNECTED', 'STALE', 'DISCONNECTED'];
const TYPES: readonly ClientType[] = ['BROWSER', 'CONSOLE', 'MOBILE', 'WEB'];
const FILTERS: readonly Filter[] = [
  { name: 'user', label: 'User' },
  { name: 'node', label: 'Node' },
  { name: 'action', label: 'Action' },
  { name: 'label', label: 'Label' },
  { name: 'text', label: 'Text' },
  {
    name: 'type',
    label: 'Type',
    choices: TYPES.map((type) => ({ value: type.toLowerCase(), text: type.toLowerCase() })),
  },
  {
    name: 'status',
    label: 'Status',
    choices: [
      { value: 'connected', text: 'connected' },
      { value: 'stale', text: 'stale' },
      { value: 'disconnected', text: 'disconnected' },
    ],
  },
];

const keyOf = ({ userId, clientId }: ClientRowFragment): string => `${userId}/${clientId}`;

export function ClientsPage() {
  const { values } = useUrlState();
  return isAdmin.value && values['view'] === 'reconnects' ? <FlappingClients /> : <ClientList />;
}

function ClientList() {
  const { values } = useUrlState();
  const filters = isAdmin.value ? FILTERS : FILTERS.filter(({ name }) => name !== 'user');
  const userId = isAdmin.value ? (values['user'] ?? null) : null;
  const variables = { ...filterOf(values), userId, first: PAGE_SIZE, after: values['after'] ?? null };
  const query = useQuery(ClientsDocument, variables);
  const list = query.data?.connections;
  const { rows, fresh, push } = useLiveRows(list?.nodes ?? NONE, { keyOf });
  useLive(
    ClientChangesDocument,
    { userId },
    {
      onData: ({ connectionEvents: { connection, missed } }) => {
        push(connection, !values['after'] && fits(connection, variables));
        return missed;
      },
      onStale: query.again,
    },
  );
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
        shown={rows.length}
        filters={filters}
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
      >
        <Table
          caption="Clients by user and client"
          columns={CLIENT_COLUMNS}
          rows={rows}
          keyOf={keyOf}
          hrefOf={clientHref}
          isRecorded={(row) => isSilent(row.nodeId)}
        />
      </List>
    </>
  );
}

type ClientFilter = Omit<ClientsQueryVariables, 'userId' | 'first' | 'after'>;

function filterOf(values: UrlState['values']): ClientFilter {
  const label = values['label'];
  return {
    nodeId: values['node'] ?? null,
    status: oneOf(values['status']?.toUpperCase(), STATUSES),
    clientType: oneOf(values['type']?.toUpperCase(), TYPES),
    action: values['action'] ?? null,
    text: values['text'] ?? null,
    labels: label === undefined ? null : [label],
  };
}

/**
 * Whether a connection that just changed belongs to the filtered list. Only the relay applies the filters for text and
 * labels.
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

const NONE: readonly ClientRowFragment[] = [];
