/**
 * Shows the page of one client: its link, actions, calls, waiting callers and contexts, and a button to disconnect it.
 */
import type { ComponentChildren } from 'preact';
import { useRoute } from 'preact-iso';
import { useState } from 'preact/hooks';
import * as gql from '../../../generated/console.ts';
import { useLive } from '../api/live.ts';
import { useQuery, type Query } from '../api/query.ts';
import { accepted, request } from '../api/request.ts';
import { pagePath, placeHref, queryPath, streamHref, userHref } from '../base.ts';
import { InvokeAction, InvokeButton } from '../invoke/open.tsx';
import { LiveNotice, NodeLink } from '../shell/relay-notices.tsx';
import { isAdmin, isSilent, lastHourText, viewer } from '../shell/facts.tsx';
import { ReasonDialog } from '../ui/dialogs.tsx';
import { CutNotice, Empty, ErrorNotice, Loading } from '../ui/notices.tsx';
import { ActButton, AsOf, Facts, Metadata, Nil, PageHead, Section, type Crumbs } from '../ui/page.tsx';
import { useLatest } from '../ui/live-rows.tsx';
import { Table, nameColumn, column, quietColumn, labelled, type Column } from '../ui/table.tsx';
import { Ago, Since, Time, When } from '../ui/times.tsx';
import { LinkButton, ConnectionMark, FullId, ShortId, StateMark } from '../ui/values.tsx';
import { duration, whole } from '../ui/amounts.ts';
import { CAUSE, HEARTBEAT, capitalWord, sentenceCase } from '../ui/text-format.ts';
import { CancelWaiting, isWaiting } from './bulk.tsx';
import { ActionName, CallsTable, WAIT_COLUMNS, linkStream } from './columns.tsx';
import { CONTEXT_COLUMNS } from './places.tsx';
import { Pauses, StopButton, stopsOfClient, usePauses } from './pauses.tsx';
import { awaySentence, isUnstable, unstableText } from './states.ts';

type ClientDetails = NonNullable<gql.ClientPageQuery['connection']>;

export function ClientPage() {
  const { user = '', client = '' } = useRoute().params;
  const viewerId = viewer.value?.userId ?? 'admin';
  // The component's state (the last known answer, an open dialog and its input) belongs to one client and one viewer.
  // The key creates a new component for another one.
  return <OneClient key={`${viewerId} ${user}/${client}`} userId={user} clientId={client} />;
}

type Part = { readonly client: ClientDetails };
type ClientIds = { readonly userId: string; readonly clientId: string };

function OneClient({ userId, clientId }: ClientIds) {
  const query = useQuery(gql.ClientPageDocument, { userId, clientId });
  const found = query.data?.connection;
  const client = useLatest(found);
  const calls = useQuery(gql.CallsDocument, { filter: { userId, clientId }, first: CALLS });
  const links = useQuery(gql.MessagesDocument, {
    stream: linkStream(userId),
    order: 'NEWEST_FIRST',
    first: LINKS_READ,
  });
  const pauses = usePauses();
  const queries = [query, calls, links];
  useLive(gql.ClientChangesDocument, {
    variables: { userId },
    onData: ({ connectionEvents: { connection, missed } }) => {
      if (connection.clientId === clientId) queries.forEach(({ changed }) => changed());
      return missed;
    },
    onStale: () => queries.forEach(({ again }) => again()),
  });
  return (
    <>
      {client ? (
        <Details {...{ client, query, calls, links, pauses }} isGone={query.data !== null && !found} />
      ) : (
        <PageHead
          title={clientId}
          crumbs={crumbsOf(userId)}
          acts={[
            <CancelCalls {...{ userId, clientId, calls }} />,
            <LinkButton text={`Clients of ${userId}`} href={queryPath('clients', { user: userId })} />,
            <LinkButton text={`History of ${userId}`} href={queryPath('history', { user: userId })} />,
            <StopButton stops={stopsOfClient(userId, clientId)} onDone={pauses.again} />,
          ]}
        />
      )}
      {!client && <ClientPauses {...{ userId, clientId, pauses }} />}
      {!client && <ErrorNotice query={query} what="this client" />}
      {query.data === null && query.loading && <Loading what="this client" />}
      {query.data && !client && <NotConnected {...{ userId, clientId, calls, links }} />}
    </>
  );
}

/** The maximum number of calls that the page shows. */
const CALLS = 10;

type DetailsProps = {
  readonly client: ClientDetails;
  /** Whether the relay has forgotten the client. If so, `client` is the last known answer. */
  readonly isGone: boolean;
  readonly query: Query<gql.ClientPageQuery>;
  readonly calls: Query<gql.CallsQuery>;
  readonly links: Query<gql.MessagesQuery>;
  readonly pauses: Query<gql.PausesQuery>;
};

function Details({ client, isGone, query, calls, links, pauses }: DetailsProps) {
  const [closing, setClosing] = useState(false);
  const { userId, clientId } = client;
  return (
    <>
      <PageHead
        title={clientId}
        crumbs={crumbsOf(userId)}
        acts={[
          <AsOf queries={[query, calls, links]} />,
          <CancelCalls {...{ userId, clientId, calls }} queued={client.queued} />,
          isAdmin.value && <ActButton onClick={() => setClosing(true)}>Disconnect…</ActButton>,
          <InvokeButton start={{ userId, clientId }} />,
          <StopButton stops={stopsOfClient(userId, clientId)} onDone={pauses.again} />,
        ]}
      />
      <ClientPauses {...{ userId, clientId, pauses }} />
      <ErrorNotice query={query} what="this client" />
      <LiveNotice />
      <ClientHead
        client={client}
        isRecorded={isSilent(client.nodeId)}
        isGone={isGone}
        cause={lastCause(linksIn(links.data, clientId))}
      />
      <div class="case">
        <div>
          <ClientActions client={client} />
          <ClientCalls {...{ userId, clientId }} query={calls} />
          <ClientLinks {...{ userId, clientId }} query={links} />
        </div>
        <aside aria-label="Beside the client">
          <ClientFacts client={client} />
          <Waiting client={client} />
          <Metadata value={client.metadata} />
        </aside>
      </div>
      <Places client={client} />
      {closing && <DisconnectDialog client={client} onClose={() => setClosing(false)} onDone={query.again} />}
    </>
  );
}

function ClientPauses({ userId, clientId, pauses }: ClientIds & Pick<DetailsProps, 'pauses'>) {
  const concerns = (pause: gql.PauseRowFragment): boolean =>
    (pause.userId ?? userId) === userId && (pause.clientId ?? clientId) === clientId;
  return <Pauses query={pauses} concerns={concerns} />;
}

type CancelProps = ClientIds & Pick<DetailsProps, 'calls'> & { readonly queued?: number };

function CancelCalls({ userId, clientId, calls, queued = 0 }: CancelProps) {
  const isUseful = queued > 0 || (calls.data?.commands.nodes.some(isWaiting) ?? false);
  const ofClient = { of: `for ${clientId}`, filter: { userId, clientId } };
  return <CancelWaiting {...ofClient} isUseful={isUseful} onDone={calls.again} />;
}

type CallsProps = ClientIds & { readonly query: Query<gql.CallsQuery> };

function ClientCalls({ userId, clientId, query }: CallsProps) {
  const calls = query.data?.commands;
  return (
    <Section
      title="Calls"
      about="those that run, and those that ended in the last hour"
      side={<a href={queryPath('calls', { user: userId, client: clientId })}>Calls of {clientId}</a>}
    >
      <ErrorNotice query={query} what="its calls" />
      <CutNotice completeness={calls?.completeness} />
      {calls && (
        <CallsTable
          caption="Calls of this client"
          rows={calls.nodes}
          without={['Client']}
          none={`No call of ${calls.completeness.complete ? 'the last hour' : 'those that were read'} went to this client.`}
        />
      )}
    </Section>
  );
}

function Waiting({ client }: Part) {
  return (
    <Section title="Callers that wait">
      <Table
        caption="Callers that wait for this client"
        columns={WAIT_COLUMNS.filter(({ head }) => head === 'Action' || head === 'Waiting')}
        rows={client.pendingRpcs.nodes}
        keyOf={(row) => row.rpcId}
        look="small"
        none="None. Every caller of this client has its answer."
      />
    </Section>
  );
}

function Places({ client }: Part) {
  const { nodes } = client.contexts;
  if (nodes.length === 0) return null;
  return (
    <Section title="Contexts" about="tabs, flows and workers, as the client reports them now">
      <Table
        caption="Execution contexts of this client"
        columns={CONTEXT_COLUMNS.filter(({ head }) => head !== 'Client')}
        rows={nodes}
        keyOf={(row) => row.contextId}
        hrefOf={placeHref}
      />
    </Section>
  );
}

type GoneProps = ClientIds & Pick<DetailsProps, 'calls' | 'links'>;

/** Shows what the relay still knows about a client without a connection: its calls and its links. */
function NotConnected({ userId, clientId, calls, links }: GoneProps) {
  const known = linksIn(links.data, clientId);
  const nodes = calls.data?.commands.nodes ?? [];
  const waiting = nodes.filter(isWaiting).length;
  if (known.length + nodes.length === 0)
    return (
      <Empty title="This client is not connected">
        The relay has no call and no link of it: it was never connected, {isAdmin.value ? '' : 'it is not yours, '}or it
        has been away for a long time.
      </Empty>
    );
  return (
    <>
      <div class="case-head">
        <div>
          <p>
            <StateMark shape="down">Not connected</StateMark>
          </p>
          <p>{awaySentence({ links: known.length, calls: nodes.length, waiting })}</p>
        </div>
      </div>
      {isAdmin.value && <ClientCalls {...{ userId, clientId }} query={calls} />}
      {known.length > 0 && <ClientLinks {...{ userId, clientId }} query={links} />}
    </>
  );
}

function crumbsOf(user: string): Crumbs {
  const clients = { href: pagePath('clients'), text: 'Clients' };
  return isAdmin.value ? [clients, { href: userHref(user), text: user }] : [clients];
}

// The head of a client's page: its link, its instance, and the data that it sent in its hello frame.

type HeadProps = Part & {
  /** Whether the node of the client's link is silent. If so, the state is the last recorded one. */
  readonly isRecorded: boolean;
  /** Whether the relay has forgotten the client since the page was opened. */
  readonly isGone: boolean;
  /** Why the client's last link ended; null if that is unknown. */
  readonly cause: gql.DisconnectCause | null;
};

const lastCause = (links: readonly ClientLinkRow[]): gql.DisconnectCause | null =>
  links.find(({ ended }) => ended !== null)?.ended?.link?.cause ?? null;

function ClientHead({ client, isRecorded, isGone, cause }: HeadProps) {
  const unstable = !isGone && isUnstable(client.reconnectsLastHour);
  return (
    <div class="case-head">
      <div>
        <p>
          <ConnectionMark status={client.status} recorded={isRecorded || isGone} isUnstable={unstable} />
        </p>
        <p>
          {isGone ? GONE : sentenceOf(client, isRecorded)}
          {unstable && <strong> {unstableText(client.reconnectsLastHour, cause)}</strong>}
        </p>
      </div>
      <Facts
        rows={[
          ['Queued', `${client.queued} for this link`],
          ['In flight', `${client.inFlight} sent and not ended`],
          ['Last seen', <Ago at={client.lastSeenAt} />],
          ['Reconnects', <Reconnects count={client.reconnectsLastHour} />],
        ]}
      />
    </div>
  );
}

function Reconnects({ count }: { readonly count: number }) {
  if (count === 0) return <>None {lastHourText()}</>;
  return (
    <span class={isUnstable(count) ? 'over' : undefined}>
      {whole(count)} {lastHourText()}
    </span>
  );
}

const GONE =
  'The relay has forgotten this client: it has been away for longer than the relay remembers a lost link. This is what was last known.';

function sentenceOf(client: ClientDetails, isRecorded: boolean): ComponentChildren {
  if (isRecorded)
    return `${client.nodeId}, which held the link, is silent. The client may well be connected; this is what the node last said.`;
  if (client.status === 'DISCONNECTED')
    return (
      <>
        The link went down {client.disconnectedAt && <Ago at={client.disconnectedAt} />}
        {client.disconnectCause && `: ${CAUSE[client.disconnectCause]}`}. Calls wait for it as long as their callers
        allow.
      </>
    );
  if (client.status === 'STALE')
    return 'The link is up, but the client has been silent for 45 seconds. After 60 seconds it counts as disconnected.';
  return (
    <>
      Connected to {client.nodeId} since <Time at={client.connectedAt} />. {HEARTBEAT[client.heartbeat]}.
    </>
  );
}

function ClientFacts({ client }: Part) {
  return (
    <Section title="Link">
      <Facts
        rows={[
          ['Type', capitalWord(client.clientType)],
          ['Node', <NodeLink nodeId={client.nodeId} />],
          ['Instance', <FullId id={client.instanceId} what="instance id" />],
          ['Connected', <Time at={client.connectedAt} />],
          client.disconnectedAt ? ['Went down', <Time at={client.disconnectedAt} />] : null,
          ['Replaced', <Replaced client={client} />],
        ]}
      />
    </Section>
  );
}

function Replaced({ client }: Part) {
  if (client.predecessors.length === 0) return <>Not recently</>;
  return (
    <>
      {client.predecessors.slice(0, 3).map(({ instanceId, replacedAt, cause }) => (
        <small key={instanceId}>
          <ShortId id={instanceId} /> <Ago at={replacedAt} />: {CAUSE[cause]}
        </small>
      ))}
    </>
  );
}

type Action = ClientDetails['actions']['items'][number];

function ClientActions({ client }: Part) {
  const { userId, clientId, actions } = client;
  const columns: readonly Column<Action>[] = [
    nameColumn('Action', 'c-1', ({ name }) => <ActionName name={name} />),
    column('What it does', 'why c-3 c-wide', ({ summary }) => summary ?? ''),
    column('Version', 'nw c-off', ({ version }) => version ?? ''),
    quietColumn('Invoke', 'r c-2', ({ name }) => <InvokeAction {...{ userId, clientId }} action={name} />),
  ];
  return (
    <Section title="Actions" about="that the client says it can run; each call may still be refused">
      <CutNotice completeness={actions.completeness} />
      <Table
        caption="Actions of this client"
        columns={columns}
        rows={actions.items}
        keyOf={({ name }) => name}
        look="mid"
        none="The client advertises no action."
      />
    </Section>
  );
}

// The links of the client. The link history of a user has two rows for a link, one for its opening and one for its end,
// which are shown as one row here.

/** The number of rows of the link history that are read, and the maximum number of links that are shown. */
const LINKS_READ = 200;
const LINKS = 10;

type HistoryRow = gql.LinkRowFragment;
/**
 * A link, as the rows of its opening and of its end. One of them is null if the link is up or the history lacks that
 * row.
 */
type ClientLinkRow = { readonly opened: HistoryRow | null; readonly ended: HistoryRow | null };

/** Returns the links of a client, latest first. The two rows of a link have the same epoch. */
function linksIn(data: gql.MessagesQuery | null, clientId: string): readonly ClientLinkRow[] {
  const rows = data?.messages.nodes.filter((row) => row.clientId === clientId) ?? [];
  return [...Map.groupBy(rows, ({ id, link }) => link?.epoch ?? id).values()].map((own) => ({
    opened: own.find(({ kind }) => kind === 'LINK_OPENED') ?? null,
    ended: own.find(({ kind }) => kind !== 'LINK_OPENED') ?? null,
  }));
}

const CLIENT_LINK_COLUMNS: readonly Column<ClientLinkRow>[] = [
  {
    head: 'Opened',
    isTime: true,
    class: 'nw c-1',
    names: true,
    cell: ({ opened }) => (opened ? <When at={opened.at} /> : <Nil why="before these rows" />),
  },
  labelled('Open for', 'r nw c-2 c-end', ({ opened, ended }) => {
    if (ended) return ended.link?.openMs == null ? <Nil why="not known" /> : duration(ended.link.openMs);
    return opened && <Since at={opened.at} />;
  }),
  column('How it ended', 'why c-3 c-wide', ({ ended }) => (ended ? endOfLink(ended) : 'It is up')),
  labelled('Node', 'nw c-5', ({ opened, ended }) => (ended ?? opened)?.link?.nodeId),
  column('Instance', 'nw c-off', ({ opened, ended }) => {
    const id = (ended ?? opened)?.instanceId;
    return id && <ShortId id={id} />;
  }),
];

function endOfLink({ kind, link }: HistoryRow): string {
  if (kind === 'LINK_REPLACED') return 'A newer link replaced it';
  return link?.cause ? sentenceCase(CAUSE[link.cause]) : 'Closed';
}

type LinksProps = ClientIds & { readonly query: Query<gql.MessagesQuery> };

function ClientLinks({ userId, clientId, query }: LinksProps) {
  const list = query.data?.messages;
  const links = linksIn(query.data, clientId);
  return (
    <Section
      title="Links"
      about={links.length > LINKS ? `the latest ${LINKS} of ${links.length}` : 'latest first'}
      side={<a href={streamHref(linkStream(userId))}>Link history of the user</a>}
    >
      <ErrorNotice query={query} what="its link history" />
      <CutNotice completeness={list?.completeness} />
      {list && (
        <Table
          caption="Links of this client, latest first"
          columns={CLIENT_LINK_COLUMNS}
          rows={links.slice(0, LINKS)}
          keyOf={({ opened, ended }) => `${opened?.id} ${ended?.id}`}
          look="mid"
          none="No link of this client is in the last 200 rows of its user’s link history."
        />
      )}
    </Section>
  );
}

type DisconnectProps = Part & { readonly onClose: () => void; readonly onDone: () => void };

function DisconnectDialog({ client, onClose, onDone }: DisconnectProps) {
  const { userId, clientId, inFlight } = client;
  const disconnect = async (reason: string | null): Promise<void> => {
    const { disconnectClient: answer } = await request(gql.DisconnectClientDocument, { userId, clientId, reason });
    accepted(answer);
    onDone();
  };
  return (
    <ReasonDialog
      title={`Disconnect ${clientId}`}
      hint="For the log and the client. At most 256 characters."
      confirm={`Disconnect ${clientId}`}
      keep="Keep it"
      failed="It was not disconnected."
      act={disconnect}
      onClose={onClose}
    >
      <p class="soft">
        The relay closes its link.{' '}
        {inFlight > 0 ? `Of its ${inFlight} calls in flight, none is cancelled by this. ` : ''}
        The client may connect again at once. Its token stays valid until it expires.
      </p>
    </ReasonDialog>
  );
}
