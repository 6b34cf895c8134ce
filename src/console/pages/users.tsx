/** Shows the list of users: those with a connection or with retained messages. */
import { useRoute } from 'preact-iso';
import {
  ClientChangesDocument,
  UserPageDocument,
  UsersDocument,
  type UserPageQuery,
  type UsersQuery,
} from '../../../generated/console.ts';
import { useLive } from '../api/live.ts';
import { useQuery, type Query } from '../api/query.ts';
import { pagePath, segments } from '../base.ts';
import { LiveNotice, PauseButton, Sources, isAdmin, isSilent, viewer } from '../shell/facts.tsx';
import { useUrlState } from '../ui/filters.tsx';
import {
  AsOf,
  Count,
  Empty,
  ErrorNotice,
  Loading,
  PageHead,
  Section,
  callHref,
  clientHref,
  streamHref,
  userHref,
} from '../ui/page.tsx';
import { List, PAGE_SIZE, Table, type Column } from '../ui/table.tsx';
import { plural, whole } from '../ui/words.ts';
import { CLIENT_COLUMNS, WAIT_COLUMNS } from './columns.tsx';
import { STREAM_COLUMNS } from './history.tsx';
import { CONTEXT_COLUMNS, WINDOW_COLUMNS } from './places.tsx';

type UserRow = UsersQuery['users']['nodes'][number];

const COLUMNS: readonly Column<UserRow>[] = [
  { head: 'User', class: 'c-1', names: true, cell: (row) => <a href={userHref(row.userId)}>{row.userId}</a> },
  { head: 'Connections', class: 'r c-2', label: 'connections', cell: (row) => figure(row.connectionCount) },
  { head: 'Streams', class: 'r c-3', label: 'streams', cell: (row) => figure(row.streamCount) },
  { head: 'Callers waiting', class: 'r c-4', label: 'waiting', cell: (row) => figure(row.pendingRpcCount) },
];

const figure = (value: number) => <Count value={value} text={whole(value)} />;

export function UsersPage() {
  const { values } = useUrlState();
  const query = useQuery(UsersDocument, { first: PAGE_SIZE, after: values['after'] ?? null });
  const list = query.data?.users;
  return (
    <>
      <PageHead title="Users" acts={<AsOf queries={[query]} />}>
        Users with a connection or with retained messages. The relay keeps no other register of users.
      </PageHead>
      <div class="tbl-fit">
        <List
          one="user"
          many="users"
          query={query}
          list={list}
          held="Links of this node are counted"
          about={`${plural(list?.nodes.length ?? 0, 'user')} on this page.`}
          empty={<NoUsers />}
        >
          <Table
            caption="Users"
            columns={COLUMNS}
            rows={list?.nodes ?? []}
            keyOf={({ userId }) => userId}
            hrefOf={({ userId }) => userHref(userId)}
          />
        </List>
      </div>
    </>
  );
}

function NoUsers() {
  return (
    <Empty title="No user is known yet">
      <p>A user appears with the first connection of one of its clients, or with the first message that is kept.</p>
    </Empty>
  );
}

// Defines the types that several files of the user pages use. Contains types only.

export type UserDetails = NonNullable<UserPageQuery['user']>;

// Shows the page of one user: connections, waits, streams, windows, workers and sites. One request reads them all.

export function UserPage() {
  const { user: userId = '' } = useRoute().params;
  const query = useQuery(UserPageDocument, { userId });
  // Among the parts of the summary, only connections have events.
  useLive(
    ClientChangesDocument,
    { userId },
    {
      skip: !query.data?.user,
      onData: ({ connectionEvents: { missed } }) => {
        query.changed();
        return missed;
      },
      onStale: query.again,
    },
  );
  const user = query.data?.user;
  const crumbs = isAdmin.value ? [{ href: pagePath('users'), text: 'Users' }] : [];
  return (
    <>
      <PageHead title={userId} crumbs={crumbs} acts={<UserActs query={query} />}>
        What is known of this user now, from one request.
      </PageHead>
      <ErrorNotice query={query} what="this user" />
      <LiveNotice />
      {!query.data && query.loading && <Loading what="this user" />}
      {query.data && !user && (
        <Empty title="Nothing is known of this user">
          <p>
            {isAdmin.value
              ? 'No client of it is connected, and no message of it is retained. Users’ ids are exact.'
              : `You are signed in as ${viewer.value?.userId}, and may see only what is yours.`}
          </p>
        </Empty>
      )}
      {user && <Details user={user} />}
    </>
  );
}

function UserActs({ query }: { readonly query: Query<unknown> }) {
  return (
    <>
      <AsOf queries={[query]} />
      <PauseButton />
    </>
  );
}

function Details({ user }: { readonly user: UserDetails }) {
  const filter = `user=${encodeURIComponent(user.userId)}`;
  return (
    <>
      <Sources completeness={user.completeness} held="Clients of this node are shown" />
      <dl class="readouts">
        <Figure name="Connections" value={user.connectionCount} />
        <Figure name="Callers waiting" value={user.pendingRpcCount} />
        <Figure name="Streams" value={user.streamCount} />
        <Figure name="Workers with a task" value={user.workers.assigned.length} />
      </dl>
      <Section title="Clients" side={more(user.connections.pageInfo, `clients?${filter}`)}>
        {user.connections.nodes.length === 0 ? (
          <p class="soft">No client of this user is connected.</p>
        ) : (
          <Table
            caption="Clients of this user"
            columns={CLIENT_COLUMNS}
            rows={user.connections.nodes}
            keyOf={({ clientId }) => clientId}
            hrefOf={clientHref}
            isRecorded={(row) => isSilent(row.nodeId)}
          />
        )}
      </Section>
      <Section title="Callers that wait" side={more(user.pendingRpcs.pageInfo, `waits?${filter}`)}>
        {user.pendingRpcs.nodes.length === 0 ? (
          <p class="soft">None. Every caller has its answer.</p>
        ) : (
          <Table
            caption="Callers that wait for this user’s clients"
            columns={WAIT_COLUMNS}
            rows={user.pendingRpcs.nodes}
            keyOf={({ rpcId }) => rpcId}
            hrefOf={callHref}
          />
        )}
      </Section>
      <UserStreams user={user} />
      <Places user={user} filter={filter} />
      <Sites user={user} />
    </>
  );
}

function Figure({ name, value }: { readonly name: string; readonly value: number }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{whole(value)}</dd>
    </div>
  );
}

function Places({ user, filter }: { readonly user: UserDetails; readonly filter: string }) {
  const workers = [...user.workers.assigned, ...user.workers.idle];
  const { nodes, pageInfo } = user.browserWindows;
  if (workers.length + nodes.length === 0) return null;
  return (
    <Section
      title="Workers and windows"
      about="as clients report them now"
      side={more(pageInfo, `places?${filter}`) ?? <a href={pagePath(`places?${filter}`)}>All places</a>}
    >
      {workers.length > 0 && (
        <Table
          caption="Workers of this user"
          columns={CONTEXT_COLUMNS}
          rows={workers}
          keyOf={(row) => `${row.clientId}/${row.contextId}`}
        />
      )}
      {nodes.length > 0 && (
        <Table
          caption="Browser windows of this user"
          columns={WINDOW_COLUMNS}
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

function more({ hasNextPage }: { readonly hasNextPage: boolean }, path: string) {
  return hasNextPage ? <a href={pagePath(path)}>There are more</a> : undefined;
}

// Shows the streams of one user's retained messages.

function UserStreams({ user }: { readonly user: UserDetails }) {
  const { nodes, pageInfo } = user.streams;
  const all = pagePath(`history?user=${encodeURIComponent(user.userId)}`);
  return (
    <Section
      title="History"
      about="streams of retained messages"
      side={pageInfo.hasNextPage && <a href={all}>All streams</a>}
    >
      {nodes.length === 0 ? (
        <p class="soft">No message of this user is retained.</p>
      ) : (
        <div class="tbl-fit">
          <Table
            caption="Streams of this user"
            columns={STREAM_COLUMNS}
            rows={nodes}
            keyOf={({ key }) => key}
            hrefOf={({ key }) => streamHref(key)}
          />
        </div>
      )}
    </Section>
  );
}
