/** The links of a client that opened and ended, out of the link history of its user. */
import type { ClientLinksQuery, LinkRowFragment } from '../../generated/console.ts';
import type { Query } from '../api/query.ts';
import { Nil } from '../ui/empty.tsx';
import { duration, plural } from '../ui/format.ts';
import { ShortId } from '../ui/id.tsx';
import { streamHref } from '../ui/links.tsx';
import { CutNotice, ErrorNotice } from '../ui/notice.tsx';
import { Section } from '../ui/page.tsx';
import { Table, type Column } from '../ui/table.tsx';
import { Ago } from '../ui/time.tsx';
import { CAUSE } from '../ui/words.ts';
import type { ClientDetails } from './types.ts';

/** Rows that are shown at once. */
const SHOWN = 20;

const COLUMNS: readonly Column<LinkRowFragment>[] = [
  { head: 'When', class: 'nw c-1', names: true, cell: ({ at }) => <Ago at={at} /> },
  { head: 'What', class: 'c-2', cell: whatOf },
  { head: 'Open for', class: 'r nw c-3', label: 'open for', cell: openFor },
  { head: 'Node', class: 'nw c-4', label: 'node', cell: ({ link }) => link?.nodeId },
  { head: 'Instance', class: 'nw c-5', cell: ({ instanceId }) => instanceId && <ShortId id={instanceId} /> },
];

/** The stream of the link history of a user. */
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
          columns={COLUMNS}
          rows={rows.slice(0, SHOWN)}
          keyOf={({ id }) => id}
          look="mid"
        />
      )}
    </Section>
  );
}

function whatOf({ kind, link, instanceId }: LinkRowFragment) {
  const cause = link?.cause;
  if (kind === 'LINK_REPLACED') return 'Replaced by a newer link';
  if (kind === 'LINK_CLOSED') return `Closed${cause ? `: ${CAUSE[cause]}` : ''}`;
  if (!link?.previousInstanceId) return 'Opened';
  return link.previousInstanceId === instanceId ? 'Opened again' : 'Opened by another instance';
}

function openFor({ link }: LinkRowFragment) {
  const ms = link?.openMs ?? null;
  return ms === null ? <Nil why="it opened here" /> : duration(ms);
}
