/** Shows the clients that reconnected most in the last hour. */
import { useLayoutEffect, useState } from 'preact/hooks';
import {
  ClientChangesDocument,
  FlappingDocument,
  type ConnectionChange,
  type FlappingQuery,
} from '../../generated/console.ts';
import { useLive } from '../api/live.ts';
import { useQuery } from '../api/query.ts';
import { pagePath } from '../base.ts';
import { isSilent } from '../shell/facts.tsx';
import { LiveNotice, PauseButton } from '../shell/live-notice.tsx';
import { Sources } from '../shell/sources.tsx';
import { Loading, Nil } from '../ui/empty.tsx';
import { plural, whole } from '../ui/format.ts';
import { clientHref, ClientLink } from '../ui/links.tsx';
import { NewBar } from '../ui/live-rows.tsx';
import { ErrorNotice } from '../ui/notice.tsx';
import { PageHead, Pager } from '../ui/page.tsx';
import { ConnectionMark } from '../ui/status.tsx';
import { Table, type Column } from '../ui/table.tsx';
import { CAUSE, sentenceCase } from '../ui/words.ts';

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

export function FlappingClients() {
  const query = useQuery(FlappingDocument, {});
  const list = query.data?.flapping;
  const [fresh, setFresh] = useState(0);
  useLayoutEffect(() => setFresh(0), [list]);
  useLive(
    ClientChangesDocument,
    { userId: null },
    {
      onData: ({ connectionEvents: { change, missed } }) => {
        if (OPENED.includes(change)) setFresh((was) => was + 1);
        return missed;
      },
      onStale: query.again,
    },
  );
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
      {list && list.items.length === 0 && <p class="soft">No client reconnected in the last hour.</p>}
      {list && list.items.length > 0 && (
        <>
          <Table
            caption="Clients by reconnects in the last hour"
            columns={COLUMNS}
            rows={list.items}
            keyOf={({ userId, clientId }) => `${userId}/${clientId}`}
            hrefOf={clientHref}
          />
          <Pager first={null} next={null} size={list.items.length}>
            {plural(list.items.length, 'client')}, most reconnects first.
          </Pager>
        </>
      )}
    </>
  );
}

function statusOf({ connection }: Row) {
  if (!connection) return <Nil why="the relay has forgotten its connection" />;
  return <ConnectionMark status={connection.status} recorded={isSilent(connection.nodeId)} />;
}
