/** Shows the page of all users, the page of one user, and the page on which a user sees everything of its own. */
import { useRoute } from 'preact-iso';
import * as gql from '../../../generated/console.ts';
import { useLive } from '../api/live.ts';
import { useQuery } from '../api/query.ts';
import { callHref, clientHref, pagePath, placeHref, queryPath, segments, userHref } from '../base.ts';
import { InvokeButton } from '../invoke/open.tsx';
import { LiveNotice, PauseButton, Sources } from '../shell/relay-notices.tsx';
import { isAdmin, isSilent, viewer } from '../shell/facts.tsx';
import { useUrlState } from '../ui/url-state.ts';
import { Empty, ErrorNotice, Loading } from '../ui/notices.tsx';
import { AsOf, Count, PageHead, Readouts, Section, type Crumbs } from '../ui/page.tsx';
import { List, pageOf } from '../ui/list.tsx';
import { Table, nameColumn, labelled, type Column } from '../ui/table.tsx';
import { LinkButton, NameLink } from '../ui/values.tsx';
import { whole } from '../ui/amounts.ts';
import { CLIENT_COLUMNS, WAIT_COLUMNS } from './columns.tsx';
import { Pauses, StopButton, stopsOfUser, usePauses } from './pauses.tsx';
import { WhoMayCallUser } from './permissions.tsx';
import { CONTEXT_COLUMNS, WINDOW_COLUMNS } from './places.tsx';
import { UserTimeLine } from './user-timeline.tsx';

type UserRow = gql.UsersQuery['users']['nodes'][number];

const COLUMNS: readonly Column<UserRow>[] = [
  nameColumn('User', 'c-1', ({ userId }) => <NameLink href={userHref(userId)} text={userId} />),
  labelled('Clients', 'r c-2', (row) => figure(row.connectionCount)),
  labelled('Streams', 'r c-3', (row) => figure(row.streamCount)),
  { head: 'Callers waiting', class: 'r c-4', label: 'waiting', cell: (row) => figure(row.pendingRpcCount) },
];

const figure = (value: number) => <Count value={value} text={whole(value)} />;

export function UsersPage() {
  const { values } = useUrlState();
  const query = useQuery(gql.UsersDocument, pageOf(values));
  const list = query.data?.users;
  return (
    <>
      <PageHead title="Users" acts={<AsOf queries={[query]} />}>
        Users with a connected client or with retained messages. The relay has no other list of users.
      </PageHead>
      <div class="tbl-fit">
        <List
          one="user"
          many="users"
          query={query}
          list={list}
          held="Links of this node are counted"
          empty={
            <Empty title="No user is known yet">
              A user appears when one of its clients connects, or when the first message of it is kept.
            </Empty>
          }
          caption="Users"
          columns={COLUMNS}
          keyOf={({ userId }) => userId}
          hrefOf={({ userId }) => userHref(userId)}
        />
      </div>
    </>
  );
}

// The page of one user: clients, waits, calls, streams, windows, workers and sites.

export function UserPage() {
  const { user: userId = '' } = useRoute().params;
  const crumbs = isAdmin.value ? [{ href: pagePath('users'), text: 'Users' }] : [];
  return <OneUser userId={userId} title={userId} about="What is known of this user now." crumbs={crumbs} />;
}

/** Shows a user everything that belongs to it. */
export function OwnPage() {
  const userId = viewer.value?.userId ?? '';
  return <OneUser userId={userId} title="Overview" about="Your clients, calls and waits." />;
}

type UserProps = {
  readonly userId: string;
  readonly title: string;
  /** The sentence below the title. */
  readonly about: string;
  readonly crumbs?: Crumbs;
};

function OneUser({ userId, title, about, crumbs = [] }: UserProps) {
  const query = useQuery(gql.UserPageDocument, { userId });
  // Only the connections of the summary have events.
  useLive(gql.ClientChangesDocument, {
    variables: { userId },
    skip: !query.data?.user,
    onData: ({ connectionEvents: { missed } }) => {
      query.changed();
      return missed;
    },
    onStale: query.again,
  });
  const user = query.data?.user;
  const isOwn = viewer.value?.userId === userId;
  const pauses = usePauses();
  const acts = [
    <AsOf queries={[query]} />,
    <PauseButton />,
    isOwn && <InvokeButton />,
    <StopButton stops={stopsOfUser(userId)} onDone={pauses.again} />,
  ];
  return (
    <>
      <PageHead title={title} crumbs={crumbs} acts={acts}>
        {about}
      </PageHead>
      <Pauses query={pauses} concerns={(pause) => (pause.userId ?? userId) === userId} />
      <ErrorNotice query={query} what="this user" />
      <LiveNotice />
      {!query.data && query.loading && <Loading what="this user" />}
      {query.data && !user && <NothingKnown />}
      {user && (isOwn && isEmpty(user) ? <NothingOwn /> : <Details user={user} />)}
    </>
  );
}

function NothingKnown() {
  return (
    <Empty title="Nothing is known of this user">
      {isAdmin.value
        ? 'No client of this user is connected, and no message is retained. The id must be the exact one.'
        : `You are signed in as ${viewer.value?.userId}, and may see only what is yours.`}
    </Empty>
  );
}

function NothingOwn() {
  return (
    <Empty
      title="Nothing of yours is here yet"
      acts={<LinkButton text="How to connect a client" href={pagePath('clients')} />}
    >
      Your clients appear here when they connect with your token, and their calls with the first one.
    </Empty>
  );
}

/** Whether nothing is known about a user. A user also gets an answer about itself if nothing is known. */
const isEmpty = ({ connectionCount, streamCount, pendingRpcCount, sites }: UserDetails): boolean =>
  connectionCount + streamCount + pendingRpcCount + sites.nodes.length === 0;

type UserDetails = NonNullable<gql.UserPageQuery['user']>;

function Details({ user }: { readonly user: UserDetails }) {
  return (
    <>
      <Sources completeness={user.completeness} held="Clients of this node are shown" />
      <Readouts
        figures={[
          { name: 'Clients', value: whole(user.connectionCount) },
          { name: 'Callers waiting', value: whole(user.pendingRpcCount) },
          { name: 'Streams', value: whole(user.streamCount) },
          { name: 'Workers with a task', value: whole(user.workers.assigned.length) },
        ]}
      />
      <Section title="Clients" side={more(user, 'connections', 'clients')}>
        <Table
          caption="Clients of this user"
          columns={CLIENTS}
          rows={user.connections.nodes}
          keyOf={({ clientId }) => clientId}
          hrefOf={clientHref}
          isRecorded={(row) => isSilent(row.nodeId)}
          none="No client of this user is connected."
        />
      </Section>
      <Section title="Callers that wait" side={more(user, 'pendingRpcs', 'waits')}>
        <Table
          caption="Callers that wait for this user’s clients"
          columns={WAITS}
          rows={user.pendingRpcs.nodes}
          keyOf={({ rpcId }) => rpcId}
          hrefOf={callHref}
          none="None. Every caller has its answer."
        />
      </Section>
      <UserTimeLine userId={user.userId} />
      <WhoMayCallUser userId={user.userId} actions={user.connections.nodes.flatMap(({ actionNames }) => actionNames)} />
      <Places user={user} />
      <Sites user={user} />
    </>
  );
}

/** Returns the columns for a table whose rows all belong to one user, without the user's id. */
function ofOneUser<Row extends ClientIds>(columns: readonly Column<Row>[]): readonly Column<Row>[] {
  const cell = (row: Row) => <NameLink href={clientHref(row)} text={row.clientId} />;
  return columns.map((column) => (column.head === 'Client' ? { ...column, cell } : column));
}

type ClientIds = { readonly userId: string; readonly clientId: string };
const CLIENTS = ofOneUser(CLIENT_COLUMNS);
const WAITS = ofOneUser(WAIT_COLUMNS);
const CONTEXTS = ofOneUser(CONTEXT_COLUMNS);
const WINDOWS = ofOneUser(WINDOW_COLUMNS);

function Places({ user }: { readonly user: UserDetails }) {
  const workers = [...user.workers.assigned, ...user.workers.idle];
  const { nodes } = user.browserWindows;
  if (workers.length + nodes.length === 0) return null;
  return (
    <Section
      title="Workers and windows"
      about="as clients report them now"
      side={
        more(user, 'browserWindows', 'places') ?? (
          <a href={queryPath('places', { user: user.userId })}>All workers and windows</a>
        )
      }
    >
      {workers.length > 0 && (
        <Table
          caption="Workers of this user"
          columns={CONTEXTS}
          rows={workers}
          keyOf={(row) => `${row.clientId}/${row.contextId}`}
          hrefOf={placeHref}
        />
      )}
      {nodes.length > 0 && (
        <Table
          caption="Browser windows of this user"
          columns={WINDOWS}
          rows={nodes}
          keyOf={(row) => `${row.clientId}/${row.windowId}`}
        />
      )}
    </Section>
  );
}

function Sites({ user }: { readonly user: UserDetails }) {
  if (user.sites.nodes.length === 0) return null;
  return (
    <Section title="Sites">
      <ul>
        {user.sites.nodes.map(({ siteId, title, hostConnected }) => (
          <li key={siteId}>
            <a href={pagePath(`sites/${segments(user.userId, siteId)}`)}>{title ?? siteId}</a>{' '}
            <span class="quiet">{hostConnected ? 'its host is connected' : 'its host is not connected'}</span>
          </li>
        ))}
      </ul>
    </Section>
  );
}

type Part = 'connections' | 'pendingRpcs' | 'browserWindows';

/** Returns a link to the page that lists all objects of a part, if the summary does not show all. */
function more(user: UserDetails, part: Part, page: string) {
  const href = queryPath(page, { user: user.userId });
  return user[part].pageInfo.hasNextPage ? <a href={href}>There are more</a> : undefined;
}
