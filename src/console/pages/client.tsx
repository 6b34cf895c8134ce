/** Shows the page of one client: its link, its actions, its calls and the callers that wait for it. */
import { useState } from 'preact/hooks';
import { useRoute } from 'preact-iso';
import {
  ClientCallsDocument,
  ClientChangesDocument,
  ClientLinksDocument,
  ClientPageDocument,
  type ClientCallsQuery,
  type ClientLinksQuery,
  type ClientPageQuery,
} from '../../generated/console.ts';
import { useLive } from '../api/live.ts';
import { useQuery, type Query } from '../api/query.ts';
import { pagePath } from '../base.ts';
import { CALL_COLUMNS } from '../calls/columns.tsx';
import { openInvoke } from '../invoke/open.tsx';
import { isAdmin, isSilent, viewer } from '../shell/facts.tsx';
import { useKeys } from '../shell/keys.ts';
import { LiveNotice } from '../shell/live-notice.tsx';
import { AsOf } from '../ui/as-of.tsx';
import { Empty, Loading } from '../ui/empty.tsx';
import { callHref, userHref } from '../ui/links.tsx';
import { useLatest } from '../ui/latest.ts';
import { ErrorNotice } from '../ui/notice.tsx';
import { PageHead, Section } from '../ui/page.tsx';
import { Table } from '../ui/table.tsx';
import { WAIT_COLUMNS } from '../waits/columns.tsx';
import { ClientActions } from './actions.tsx';
import { DisconnectDialog } from './disconnect.tsx';
import { ClientLinks, linkStream } from './links.tsx';
import { ClientFacts, ClientHead, ClientMetadata } from './facts.tsx';
import { CONTEXT_COLUMNS } from '../places/columns.tsx';
import type { ClientDetails } from './types.ts';

export function ClientPage() {
  const { user = '', client = '' } = useRoute().params;
  const viewerId = viewer.value?.userId ?? 'admin';
  // The key differs for each client and viewer, because the last known answer, an open dialog and its input belong to
  // one client and one viewer.
  return <OneClient key={`${viewerId} ${user}/${client}`} userId={user} clientId={client} />;
}

type ClientIds = { readonly userId: string; readonly clientId: string };

function OneClient({ userId, clientId }: ClientIds) {
  const query = useQuery(ClientPageDocument, { userId, clientId });
  const found = query.data?.connection;
  const client = useLatest(found);
  const ofCalls = { filter: { userId, clientId }, first: CALLS };
  const calls = useQuery(ClientCallsDocument, ofCalls, { skip: !client || !isAdmin.value });
  const links = useQuery(ClientLinksDocument, { stream: linkStream(userId) }, { skip: !client });
  const queries = [query, calls, links];
  useLive(
    ClientChangesDocument,
    { userId },
    {
      onData: ({ connectionEvents: { connection, missed } }) => {
        if (connection.clientId === clientId) queries.forEach(({ changed }) => changed());
        return missed;
      },
      onStale: () => queries.forEach(({ again }) => again()),
    },
  );
  return (
    <>
      {client ? (
        <Details {...{ client, query, calls, links }} isGone={query.data !== null && !found} />
      ) : (
        <PageHead title={clientId} crumbs={crumbsOf(userId)} />
      )}
      {!client && <ErrorNotice query={query} what="this client" />}
      {query.data === null && query.loading && <Loading what="this client" />}
      {query.data && !client && <NotConnected user={userId} />}
    </>
  );
}

/** The number of calls that the page shows. */
const CALLS = 10;

type DetailsProps = {
  readonly client: ClientDetails;
  /** Whether the relay has forgotten the client. `client` is then the last known answer. */
  readonly isGone: boolean;
  readonly query: Query<ClientPageQuery>;
  readonly calls: Query<ClientCallsQuery>;
  readonly links: Query<ClientLinksQuery>;
};

function Details({ client, isGone, query, calls, links }: DetailsProps) {
  const [closing, setClosing] = useState(false);
  const { userId, clientId } = client;
  const invoke = (): void => openInvoke({ userId, clientId });
  useKeys({ i: invoke });
  return (
    <>
      <PageHead
        title={clientId}
        crumbs={crumbsOf(userId)}
        acts={
          <>
            <AsOf queries={isAdmin.value ? [query, calls, links] : [query, links]} />
            {isAdmin.value && (
              <button class="btn" type="button" onClick={() => setClosing(true)}>
                Disconnect…
              </button>
            )}
            <button class="btn btn-primary" type="button" onClick={invoke}>
              Invoke an action
            </button>
          </>
        }
      />
      <ErrorNotice query={query} what="this client" />
      <LiveNotice />
      <ClientHead client={client} isRecorded={isSilent(client.nodeId)} isGone={isGone} />
      <div class="case">
        <div>
          <ClientActions client={client} />
          {isAdmin.value && <ClientCalls {...{ userId, clientId }} query={calls} />}
          <ClientLinks client={client} query={links} />
        </div>
        <aside aria-label="Beside the client">
          <ClientFacts client={client} />
          <Waiting client={client} />
          <ClientMetadata client={client} />
        </aside>
      </div>
      <Places client={client} />
      {closing && <DisconnectDialog client={client} onClose={() => setClosing(false)} onDone={query.again} />}
    </>
  );
}

type CallsProps = ClientIds & { readonly query: Query<ClientCallsQuery> };

function ClientCalls({ userId, clientId, query }: CallsProps) {
  const calls = query.data?.delivery.commands;
  const filter = `user=${encodeURIComponent(userId)}&client=${encodeURIComponent(clientId)}`;
  return (
    <Section
      title="Calls"
      about="with a record: those that run, and ends of the last hour"
      side={calls && calls.nodes.length > 0 && <a href={pagePath(`calls?${filter}`)}>All calls</a>}
    >
      <ErrorNotice query={query} what="its calls" />
      {calls && calls.nodes.length === 0 && <p class="soft">No call of the last hour went to this client.</p>}
      {calls && calls.nodes.length > 0 && (
        <Table
          caption="Calls of this client"
          columns={CALL_COLUMNS.filter(({ head }) => head !== 'Client' && head !== 'Node')}
          rows={calls.nodes}
          keyOf={(row) => row.commandId}
          hrefOf={callHref}
          look="two-lines"
        />
      )}
    </Section>
  );
}

function Waiting({ client }: { readonly client: ClientDetails }) {
  const { nodes } = client.pendingRpcs;
  return (
    <Section title="Callers that wait">
      {nodes.length === 0 ? (
        <p class="soft">None. Every caller of this client has its answer.</p>
      ) : (
        <Table
          caption="Callers that wait for this client"
          columns={WAIT_COLUMNS.filter(({ head }) => head === 'Action' || head === 'Waits')}
          rows={nodes}
          keyOf={(row) => row.rpcId}
          look="small"
        />
      )}
    </Section>
  );
}

function Places({ client }: { readonly client: ClientDetails }) {
  const { nodes } = client.contexts;
  if (nodes.length === 0) return null;
  return (
    <Section title="Workers and places" about="as the client reports them now">
      <Table
        caption="Execution contexts of this client"
        columns={CONTEXT_COLUMNS.filter(({ head }) => head !== 'Client')}
        rows={nodes}
        keyOf={(row) => row.contextId}
      />
    </Section>
  );
}

function NotConnected({ user }: { readonly user: string }) {
  return (
    <Empty
      title="This client is not connected"
      acts={
        <>
          <a class="btn" href={pagePath(`clients?user=${encodeURIComponent(user)}`)}>
            Clients of {user}
          </a>
          <a class="btn" href={pagePath(`history?user=${encodeURIComponent(user)}`)}>
            History of {user}
          </a>
        </>
      }
    >
      <p>
        It was never connected, {isAdmin.value ? '' : 'it is not yours, '}or it has been away for longer than the relay
        remembers a lost link.
      </p>
    </Empty>
  );
}

function crumbsOf(user: string): readonly { readonly href: string; readonly text: string }[] {
  const clients = { href: pagePath('clients'), text: 'Clients' };
  return isAdmin.value ? [clients, { href: userHref(user), text: user }] : [clients];
}
