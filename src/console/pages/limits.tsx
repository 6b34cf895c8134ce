/** Shows the capacity scopes: how many commands each of them holds, and how many it may hold. */
import { CapacityDocument, type CapacityQuery } from '../../../generated/console.ts';
import { useQuery } from '../api/query.ts';
import { callHref } from '../base.ts';
import { useUrlState } from '../ui/url-state.ts';
import { Empty } from '../ui/notices.tsx';
import { AsOf, Nil, PageHead, Readouts, Section } from '../ui/page.tsx';
import { List, pageOf } from '../ui/list.tsx';
import { Table, labelled, type Column } from '../ui/table.tsx';
import { Time } from '../ui/times.tsx';
import { whole } from '../ui/amounts.ts';
import { nameClass } from '../ui/text-format.ts';
import { SCOPE_COLUMNS, oldestQueued } from './columns.tsx';

type ScopeRow = CapacityQuery['delivery']['tenants']['nodes'][number];
type Summary = CapacityQuery['delivery']['summary'];

const CAPACITY_COLUMNS: readonly Column<ScopeRow>[] = [
  ...SCOPE_COLUMNS,
  labelled('Earliest deadline', 'nw c-4', ({ oldestDeadline }) =>
    oldestDeadline === null ? <Nil why="none" /> : <Time at={oldestDeadline} exact />,
  ),
  labelled('Held by', 'c-5 c-wide', ({ holders }) => <Holders holders={holders} />),
];

export function LimitsPage() {
  const { values } = useUrlState();
  const query = useQuery(CapacityDocument, pageOf(values));
  const list = query.data?.delivery.tenants;
  return (
    <>
      <PageHead title="Limits" acts={<AsOf queries={[query]} />}>
        What each admission scope holds now: a user, or a group of users in the policy file, whose live commands count
        against one limit. It says that commands were admitted, not that anything runs.
      </PageHead>
      <List
        one="scope"
        many="admission scopes"
        query={query}
        list={list}
        held="What this node holds is shown"
        notices={query.data && <Readouts figures={figuresOf(query.data.delivery.summary)} />}
        empty={
          <Empty title="No scope holds a reservation" mark="all">
            Every admitted command has ended, so every scope has all its room.
          </Empty>
        }
      >
        <Section title="Scopes" about="held now, of what each may hold at once">
          <Table
            caption="Admission scopes"
            columns={CAPACITY_COLUMNS}
            rows={list?.nodes ?? []}
            keyOf={({ scopeId }) => scopeId}
            look="small"
          />
        </Section>
      </List>
    </>
  );
}

function figuresOf({ trackedCommands, dueCommands, sampleSize, sampledOldestQueuedAgeMs }: Summary) {
  return [
    { name: 'Commands with a record', value: whole(trackedCommands), about: 'running, and ended within the last hour' },
    { name: 'Overdue', value: whole(dueCommands), about: 'past a deadline, not yet ended', isOver: dueCommands > 0 },
    oldestQueued({ sampleSize, sampledOldestQueuedAgeMs }),
  ];
}

function Holders({ holders }: { readonly holders: ScopeRow['holders'] }) {
  const [first] = holders;
  if (!first) return null;
  const more = holders.length - 1;
  return (
    <a href={callHref(first)} class={nameClass(first.userId, first.clientId)}>
      {first.userId} / {first.clientId}
      {more > 0 && ` and ${more} more`}
    </a>
  );
}
