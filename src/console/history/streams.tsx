/** Shows the list of a user's streams. */
import { StreamsDocument } from '../../generated/console.ts';
import { useQuery } from '../api/query.ts';
import { AsOf } from '../ui/as-of.tsx';
import { Empty } from '../ui/empty.tsx';
import { plural } from '../ui/format.ts';
import { streamHref } from '../ui/links.tsx';
import { Section } from '../ui/page.tsx';
import { PAGE_SIZE } from '../ui/page-size.ts';
import { List } from '../ui/list.tsx';
import { Table } from '../ui/table.tsx';
import { useUrlState } from '../ui/url-state.ts';
import { STREAM_COLUMNS } from './columns.tsx';

export function StreamList({ userId, prefix }: { readonly userId: string; readonly prefix: string | null }) {
  const { values } = useUrlState();
  const query = useQuery(StreamsDocument, { userId, prefix, first: PAGE_SIZE, after: values['after'] ?? null });
  const list = query.data?.streams;
  return (
    <Section title={`Streams of ${userId}`} side={<AsOf queries={[query]} />}>
      <div class="tbl-fit">
        <List
          one="stream"
          many="streams"
          query={query}
          list={list}
          about={`${plural(list?.nodes.length ?? 0, 'stream')} on this page.`}
          empty={<NoStreams prefix={prefix} />}
        >
          <Table
            caption={`Streams of ${userId}`}
            columns={STREAM_COLUMNS}
            rows={list?.nodes ?? []}
            keyOf={({ key }) => key}
            hrefOf={({ key }) => streamHref(key)}
          />
        </List>
      </div>
    </Section>
  );
}

function NoStreams({ prefix }: { readonly prefix: string | null }) {
  return (
    <Empty title="No stream">
      <p>
        {prefix === null ? 'No message of this user is retained.' : `No stream of this user begins with “${prefix}”.`}
      </p>
    </Empty>
  );
}
