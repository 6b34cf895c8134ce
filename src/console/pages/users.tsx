/** Shows the list of users: those with a connection or with retained messages. */
import { UsersDocument, type UserPageQuery, type UsersQuery } from '../../../generated/console.ts';
import { useQuery } from '../api/query.ts';
import { useUrlState } from '../ui/filters.tsx';
import { AsOf, Count, Empty, PageHead, userHref } from '../ui/page.tsx';
import { List, PAGE_SIZE, Table, type Column } from '../ui/table.tsx';
import { plural, whole } from '../ui/words.ts';

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
