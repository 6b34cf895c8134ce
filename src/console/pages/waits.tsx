/** Shows the callers that wait for an answer, oldest first. */
import { useEffect } from 'preact/hooks';
import {
  CallEventsDocument,
  WaitsDocument,
  type PendingRpcFilter,
  type WaitRowFragment,
} from '../../../generated/console.ts';
import { useLive } from '../api/live.ts';
import { useQuery, type Query } from '../api/query.ts';
import { LiveNotice, PauseButton, isAdmin } from '../shell/facts.tsx';
import { useUrlState, type Filter, type UrlState } from '../ui/filters.tsx';
import { AsOf, Empty, Information, PageHead, callHref } from '../ui/page.tsx';
import { List, PAGE_SIZE, Table } from '../ui/table.tsx';
import { plural } from '../ui/words.ts';
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

export function WaitsPage() {
  const { values } = useUrlState();
  const filters = isAdmin.value ? FILTERS : FILTERS.filter(({ name }) => name !== 'user');
  const variables = { filter: filterOf(values), first: PAGE_SIZE, after: values['after'] ?? null };
  const query = useQuery(WaitsDocument, variables);
  const list = query.data?.pendingRpcs;
  useWaitChanges(variables.filter, query);
  useGiveUps(list?.nodes, query);
  const count = query.data?.pendingRpcCount.count ?? 0;
  const replaced = list?.nodes.filter(({ instanceMismatch }) => instanceMismatch !== null).length ?? 0;
  return (
    <>
      <PageHead title="Waits" acts={<WaitsActs query={query} />}>
        Callers that wait, oldest first. A wait shows that the caller has no answer, not that nothing ran.
      </PageHead>
      <List
        one="wait"
        many="waits"
        query={query}
        list={list}
        filters={filters}
        bare="client"
        held="Its waiting callers are missing, and calls to its clients are shown"
        notices={
          <>
            <LiveNotice />
            {replaced > 0 && <ReplacedNotice count={replaced} />}
          </>
        }
        about={`${list?.nodes.length ?? 0} shown of ${plural(count, 'wait')}.`}
        empty={<NoWaits />}
      >
        <Table caption="Waits" columns={WAIT_COLUMNS} rows={list?.nodes ?? []} keyOf={keyOf} hrefOf={callHref} />
      </List>
    </>
  );
}

function WaitsActs({ query }: { readonly query: Query<unknown> }) {
  return (
    <>
      <AsOf queries={[query]} />
      <PauseButton />
    </>
  );
}

/**
 * Reads the list again after a command was admitted or has ended, because most waits begin and end with their command.
 */
function useWaitChanges({ userId, clientId }: PendingRpcFilter, query: Query<unknown>): void {
  const filter = { userId: userId ?? null, clientId: clientId ?? null };
  useLive(
    CallEventsDocument,
    { filter },
    {
      onData: ({ commandEvents: { stage, missed } }) => {
        if (stage === 'ADMITTED' || stage === 'ENDED') query.changed();
        return missed;
      },
      onStale: query.again,
    },
  );
}

/** Reads the list again when the first of its callers gives up, because no event reports that. */
function useGiveUps(rows: readonly WaitRowFragment[] | undefined, { changed }: Query<unknown>): void {
  useEffect(() => {
    const left = (rows ?? []).map(({ timesOutAt }) => Date.parse(timesOutAt) - Date.now()).filter((ms) => ms > 0);
    if (left.length === 0) return undefined;
    const timer = setTimeout(changed, Math.min(...left));
    return () => clearTimeout(timer);
  }, [rows]);
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
