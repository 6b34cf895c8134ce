/** Shows the page of admission scopes: how many commands each holds, and how many it may hold. */
import { CapacityDocument, type CapacityQuery } from '../../../generated/console.ts';
import { useQuery } from '../api/query.ts';
import { useUrlState } from '../ui/filters.tsx';
import { AsOf, Empty, Nil, PageHead, Section, callHref } from '../ui/page.tsx';
import { List, PAGE_SIZE, Table, type Column } from '../ui/table.tsx';
import { Time } from '../ui/values.tsx';
import { age, plural, whole } from '../ui/words.ts';
import { SCOPE_COLUMNS } from './counters.tsx';

type ScopeRow = CapacityQuery['delivery']['tenants']['nodes'][number];
type Summary = CapacityQuery['delivery']['summary'];

const COLUMNS: readonly Column<ScopeRow>[] = [
  ...SCOPE_COLUMNS,
  {
    head: 'Earliest deadline',
    class: 'nw',
    cell: ({ oldestDeadline }) => (oldestDeadline === null ? <Nil why="none" /> : <Time at={oldestDeadline} exact />),
  },
  { head: 'Held by', class: 'fit', cell: ({ holders }) => <Holders holders={holders} /> },
];

export function CapacityPage() {
  const { values } = useUrlState();
  const query = useQuery(CapacityDocument, { first: PAGE_SIZE, after: values['after'] ?? null });
  const list = query.data?.delivery.tenants;
  return (
    <>
      <PageHead title="Capacity" acts={<AsOf queries={[query]} />}>
        What each admission scope holds now: a user, or a group of users in the policy file, whose live commands count
        against one limit. It says that commands were admitted, not that anything runs.
      </PageHead>
      <List
        one="scope"
        many="admission scopes"
        query={query}
        list={list}
        held="What this node holds is shown"
        notices={query.data && <SummaryFigures summary={query.data.delivery.summary} />}
        about={`${plural(list?.nodes.length ?? 0, 'scope')} on this page.`}
        empty={<NoScopes />}
      >
        <Section title="Scopes" about="held now, of what each may hold at once">
          <Table
            caption="Admission scopes"
            columns={COLUMNS}
            rows={list?.nodes ?? []}
            keyOf={({ scopeId }) => scopeId}
            look="small"
          />
        </Section>
      </List>
    </>
  );
}

function NoScopes() {
  return (
    <Empty title="No scope holds a reservation" mark="all">
      <p>Every admitted command has ended, so every scope has all its room.</p>
    </Empty>
  );
}

function SummaryFigures({ summary }: { readonly summary: Summary }) {
  const { trackedCommands, dueCommands, sampleSize, sampledOldestQueuedAgeMs } = summary;
  return (
    <dl class="readouts">
      <div>
        <dt>Commands with a record</dt>
        <dd>{whole(trackedCommands)}</dd>
        <dd class="sub">running, and ended within the last hour</dd>
      </div>
      <div>
        <dt>Due</dt>
        <dd class={dueCommands > 0 ? 'over' : undefined}>{whole(dueCommands)}</dd>
        <dd class="sub">past a deadline, not yet ended</dd>
      </div>
      <div>
        <dt>Oldest queued</dt>
        <dd>{sampledOldestQueuedAgeMs === null ? '–' : age(sampledOldestQueuedAgeMs)}</dd>
        <dd class="sub">of {plural(sampleSize, 'command')} sampled</dd>
      </div>
    </dl>
  );
}

function Holders({ holders }: { readonly holders: ScopeRow['holders'] }) {
  const [first] = holders;
  if (!first) return null;
  const more = holders.length - 1;
  return (
    <a href={callHref(first)}>
      {first.userId} / {first.clientId}
      {more > 0 && ` and ${more} more`}
    </a>
  );
}
