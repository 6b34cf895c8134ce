/** One client: its link, its actions, its calls and the callers that wait for it. */
import { useState } from 'preact/hooks';
import { useRoute } from 'preact-iso';
import {
  ClientCallsDocument,
  ClientChangesDocument,
  ClientPageDocument,
  type ClientPageQuery,
} from '../../generated/console.ts';
import { useLive } from '../api/live.ts';
import { useQuery, type Query } from '../api/query.ts';
import { pagePath } from '../base.ts';
import { CALL_COLUMNS } from '../calls/columns.tsx';
import { openInvoke } from '../invoke/open.tsx';
import { isAdmin, isSilent } from '../shell/facts.tsx';
import { useKeys } from '../shell/keys.ts';
import { LiveNotice } from '../shell/live-notice.tsx';
import { Empty, Loading } from '../ui/empty.tsx';
import { callHref, userHref } from '../ui/links.tsx';
import { ErrorNotice } from '../ui/notice.tsx';
import { PageHead, Section } from '../ui/page.tsx';
import { Table } from '../ui/table.tsx';
import { WAIT_COLUMNS } from '../waits/columns.tsx';
import { ClientActions } from './actions.tsx';
import { DisconnectDialog } from './disconnect.tsx';
import { ClientLinks } from './links.tsx';
import { ClientFacts, ClientHead, ClientMetadata } from './facts.tsx';
import { CONTEXT_COLUMNS } from '../places/columns.tsx';
import type { ClientDetails } from './types.ts';

/** How often its calls are read again, after each answer. Milliseconds. */
const EVERY_MS = 5_000;

export function ClientPage() {
  const { user = '', client = '' } = useRoute().params;
  const query = useQuery(ClientPageDocument, { userId: user, clientId: client });
  useLive(
    ClientChangesDocument,
    { userId: user },
    {
      onData: ({ connectionEvents: { connection, missed } }) => {
        if (connection.clientId === client) query.again();
        return missed;
      },
      onStale: query.again,
    },
  );
  const found = query.data?.connection;
  return (
    <>
      {found ? <Details client={found} query={query} /> : <PageHead title={client} crumbs={crumbsOf(user)} />}
      {!found && <ErrorNotice query={query} what="this client" />}
      {query.data === null && query.loading && <Loading what="this client" />}
      {query.data && !found && <NotConnected user={user} />}
    </>
  );
}

function Details({ client, query }: { readonly client: ClientDetails; readonly query: Query<ClientPageQuery> }) {
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
      <ClientHead client={client} recorded={isSilent(client.nodeId)} />
      <div class="case">
        <div>
          <ClientActions client={client} />
          <ClientCalls userId={userId} clientId={clientId} />
          <ClientLinks client={client} />
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

function ClientCalls({ userId, clientId }: { readonly userId: string; readonly clientId: string }) {
  const variables = { filter: { userId, clientId }, first: 10 };
  const query = useQuery(ClientCallsDocument, variables, { everyMs: EVERY_MS, skip: !isAdmin.value });
  const calls = query.data?.delivery.commands;
  if (!isAdmin.value) return null;
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
