/** Shows the streams of one user's retained messages. */
import { pagePath } from '../base.ts';
import { STREAM_COLUMNS } from '../history/columns.tsx';
import { streamHref } from '../ui/links.tsx';
import { Section } from '../ui/page.tsx';
import { Table } from '../ui/table.tsx';
import type { UserDetails } from './types.ts';

export function UserStreams({ user }: { readonly user: UserDetails }) {
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
