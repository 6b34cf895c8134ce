/** The callers that wait for an answer, oldest first. */
import { WaitsDocument, type PendingRpcFilter, type WaitRowFragment } from '../../generated/console.ts';
import { useQuery } from '../api/query.ts';
import { isAdmin } from '../shell/facts.tsx';
import { PauseButton } from '../shell/live-notice.tsx';
import { Empty } from '../ui/empty.tsx';
import { type Filter } from '../ui/filters.tsx';
import { plural } from '../ui/format.ts';
import { callHref } from '../ui/links.tsx';
import { Information } from '../ui/notice.tsx';
import { PageHead } from '../ui/page.tsx';
import { PAGE_SIZE } from '../ui/page-size.ts';
import { List } from '../ui/list.tsx';
import { Table } from '../ui/table.tsx';
import { useUrlState, type UrlState } from '../ui/url-state.ts';
import { WAIT_COLUMNS } from './columns.tsx';

const FILTERS: readonly Filter[] = [
  { name: 'user', label: 'User' },
  { name: 'client', label: 'Client' },
  { name: 'node', label: 'Node' },
  {
    name: 'older',
    label: 'Older than',
    choices: [1, 10, 60, 300].map((seconds) => ({ value: `${seconds}s`, text: `${seconds} s` })),
  },
];

/** How often the list is read again, after each answer. Milliseconds. */
const EVERY_MS = 2_000;

export function WaitsPage() {
  const { values } = useUrlState();
  const filters = isAdmin.value ? FILTERS : FILTERS.filter(({ name }) => name !== 'user');
  const variables = { filter: filterOf(values), first: PAGE_SIZE, after: values['after'] ?? null };
  const query = useQuery(WaitsDocument, variables, { everyMs: EVERY_MS });
  const list = query.data?.pendingRpcs;
  const count = query.data?.pendingRpcCount.count ?? 0;
  const replaced = list?.nodes.filter(({ instanceMismatch }) => instanceMismatch !== null).length ?? 0;
  return (
    <>
      <PageHead title="Waits" acts={<PauseButton />}>
        Callers that wait, oldest first. A wait shows that the caller has no answer, not that nothing ran.
      </PageHead>
      <List
        one="wait"
        many="waits"
        query={query}
        list={list}
        filters={filters}
        bare="client"
        notices={replaced > 0 && <ReplacedNotice count={replaced} />}
        about={`${list?.nodes.length ?? 0} shown of ${plural(count, 'wait')}.`}
        empty={<NoWaits />}
      >
        <Table caption="Waits" columns={WAIT_COLUMNS} rows={list?.nodes ?? []} keyOf={keyOf} hrefOf={callHref} />
      </List>
    </>
  );
}

const keyOf = (row: WaitRowFragment): string => row.rpcId;

function ReplacedNotice({ count }: { readonly count: number }) {
  return (
    <Information>
      <b>{plural(count, 'wait')} expect another instance</b> than the one that is connected now. Their commands stay
      with the instance that they were sent to.
    </Information>
  );
}

function NoWaits() {
  return (
    <Empty title="No caller waits" mark="all">
      <p>Every caller has its answer.</p>
    </Empty>
  );
}

function filterOf(values: UrlState['values']): PendingRpcFilter {
  const seconds = /^(\d{1,6})s$/.exec(values['older'] ?? '')?.[1];
  return {
    userId: values['user'] ?? null,
    clientId: values['client'] ?? null,
    nodeId: values['node'] ?? null,
    minAgeMs: seconds === undefined ? null : Number(seconds) * 1000,
  };
}
