/** Shows the retained messages of one stream, newest first. */
import {
  MessagesDocument,
  type LinkRowFragment,
  type MessageKind,
  type MessageOrder,
} from '../../generated/console.ts';
import { useQuery } from '../api/query.ts';
import { pagePath } from '../base.ts';
import { LINK_COLUMNS } from '../clients/link-columns.tsx';
import { linkStream } from '../clients/links.tsx';
import { isAdmin } from '../shell/facts.tsx';
import { AsOf } from '../ui/as-of.tsx';
import { Empty } from '../ui/empty.tsx';
import { type Filter } from '../ui/filters.tsx';
import { plural } from '../ui/format.ts';
import { callHref, ClientLink } from '../ui/links.tsx';
import { List } from '../ui/list.tsx';
import { PageHead } from '../ui/page.tsx';
import { PAGE_SIZE } from '../ui/page-size.ts';
import { readTime } from '../ui/read-time.ts';
import { Table, type Column } from '../ui/table.tsx';
import { oneOf, useUrlState } from '../ui/url-state.ts';
import { plainWord } from '../ui/words.ts';
import { MessagesTable } from './table.tsx';

const KINDS: readonly MessageKind[] = [
  ...(['COMMAND', 'PROGRESS', 'RESULT', 'ERROR', 'LATE_RESULT', 'EVENT', 'CANCEL'] as const),
  ...(['LINK_OPENED', 'LINK_CLOSED', 'LINK_REPLACED'] as const),
];
const FILTERS: readonly Filter[] = [
  { name: 'kind', label: 'Kind', choices: KINDS.map((kind) => ({ value: kind.toLowerCase(), text: plainWord(kind) })) },
  { name: 'from', label: 'From' },
  { name: 'to', label: 'To' },
];

/** The columns of the link history of a user. They include the client of each link. */
const COLUMNS: readonly Column<LinkRowFragment & { readonly userId: string }>[] = [
  ...LINK_COLUMNS.slice(0, 2),
  {
    head: 'Client',
    class: 'c-3',
    cell: ({ userId, clientId }) => clientId && <ClientLink {...{ userId, clientId }} />,
  },
  ...LINK_COLUMNS.slice(2),
];

export function StreamMessages({ stream }: { readonly stream: string }) {
  const { values, hrefWith } = useUrlState();
  const userId = stream.slice(0, stream.indexOf('/'));
  const isLinks = stream === linkStream(userId);
  const kind = oneOf(values['kind']?.toUpperCase(), KINDS);
  const order: MessageOrder = values['order'] === 'oldest' ? 'OLDEST_FIRST' : 'NEWEST_FIRST';
  const variables = {
    stream,
    kinds: kind === null ? null : [kind],
    afterTime: timeOf(values['from']),
    beforeTime: timeOf(values['to']),
    order,
    first: PAGE_SIZE,
    after: values['after'] ?? null,
  };
  const query = useQuery(MessagesDocument, variables);
  const list = query.data?.messages;
  const rows = (list?.nodes ?? []).map((row) => ({
    ...row,
    userId,
    commandHref:
      row.clientId && row.commandId ? callHref({ userId, clientId: row.clientId, commandId: row.commandId }) : null,
  }));
  return (
    <>
      <PageHead
        title={stream.slice(userId.length + 1)}
        crumbs={[
          { href: pagePath('history'), text: 'History' },
          { href: pagePath(`history?user=${encodeURIComponent(userId)}`), text: userId },
        ].slice(isAdmin.value ? 0 : 1)}
        acts={<AsOf queries={[query]} />}
      >
        {order === 'NEWEST_FIRST' ? 'Newest first. ' : 'Oldest first. '}
        <a href={hrefWith({ order: order === 'NEWEST_FIRST' ? 'oldest' : null })}>Turn the order</a>
      </PageHead>
      <List
        one="message"
        many="messages"
        query={query}
        list={list}
        filters={FILTERS}
        bare="kind"
        about={`${plural(rows.length, 'message')} on this page.`}
        empty={<NoMessages />}
      >
        {isLinks ? (
          <Table caption={`Links of ${userId}`} columns={COLUMNS} rows={rows} keyOf={({ id }) => id} look="mid" />
        ) : (
          <MessagesTable rows={rows} caption={`Messages of ${stream}`} />
        )}
      </List>
    </>
  );
}

function NoMessages() {
  return (
    <Empty title="No message in this stream">
      <p>None was ever kept, or all are older than the relay keeps messages.</p>
    </Empty>
  );
}

/** Returns a time of the filter in the form that the relay reads; null if it is not a time. */
function timeOf(text: string | undefined): string | null {
  const ms = text === undefined ? null : readTime(text, Date.now());
  return ms === null ? null : new Date(ms).toISOString();
}
