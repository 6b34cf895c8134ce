/** Shows the links of a client that opened and ended. They come from the link history of its user. */
import type { ClientLinksQuery } from '../../generated/console.ts';
import type { Query } from '../api/query.ts';
import { plural } from '../ui/format.ts';
import { streamHref } from '../ui/links.tsx';
import { CutNotice, ErrorNotice } from '../ui/notice.tsx';
import { Section } from '../ui/page.tsx';
import { Table } from '../ui/table.tsx';
import { LINK_COLUMNS } from './link-columns.tsx';
import type { ClientDetails } from './types.ts';

/** The number of rows that are shown at once. */
const SHOWN = 20;

/** Returns the name of the stream that holds the link history of a user. */
export function linkStream(userId: string): string {
  return `${userId}/links`;
}

type LinksProps = { readonly client: ClientDetails; readonly query: Query<ClientLinksQuery> };

export function ClientLinks({ client, query }: LinksProps) {
  const { userId, clientId, reconnectsLastHour } = client;
  const list = query.data?.messages;
  const rows = list?.nodes.filter((row) => row.clientId === clientId) ?? [];
  return (
    <Section
      title="Links"
      about={`opened and ended; ${plural(reconnectsLastHour, 'reconnect')} in the last hour`}
      side={<a href={streamHref(linkStream(userId))}>Link history of the user</a>}
    >
      <ErrorNotice query={query} what="its link history" />
      <CutNotice completeness={list?.completeness} />
      {list && rows.length === 0 && <p class="soft">None of the user’s last 200 rows is about this client.</p>}
      {rows.length > 0 && (
        <Table
          caption="Links of this client, newest first"
          columns={LINK_COLUMNS}
          rows={rows.slice(0, SHOWN)}
          keyOf={({ id }) => id}
          look="mid"
        />
      )}
    </Section>
  );
}
