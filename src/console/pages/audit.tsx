/** Shows the audit page: what operators did, to whom, and why. */
import { AuditDocument, type AuditQuery } from '../../../generated/console.ts';
import { useQuery } from '../api/query.ts';
import { isAdmin } from '../shell/facts.tsx';
import { useUrlState, type Filter } from '../ui/filters.tsx';
import { AsOf, Empty, Nil, PageHead } from '../ui/page.tsx';
import { List, pageOf, type Column } from '../ui/table.tsx';
import { Time } from '../ui/values.tsx';
import { capitalWord, plainWord, plural } from '../ui/words.ts';

type AuditRow = AuditQuery['auditEvents']['nodes'][number];

const FILTERS: readonly Filter[] = [
  { name: 'who', label: 'Who' },
  { name: 'user', label: 'User' },
];

const COLUMNS: readonly Column<AuditRow>[] = [
  { head: 'When, UTC', class: 'nw c-2 c-end', cell: ({ at }) => <Time at={at} exact /> },
  { head: 'Act', class: 'c-1', names: true, cell: ({ action }) => capitalWord(action) },
  { head: 'Who', class: 'nw c-3', cell: ({ who }) => who.replace(/^admin:/, '') },
  { head: 'Subject', class: 'c-4', cell: (row) => subjectText(row) },
  { head: 'Reason', class: 'why c-6 c-wide', cell: ({ reason }) => reason ?? '' },
  {
    head: 'Outcome',
    class: 'nw c-5',
    cell: ({ outcome }) => (outcome === null ? <Nil why="not recorded" /> : plainWord(outcome)),
  },
  { head: 'Node', class: 'nw c-off', cell: ({ node }) => node },
];

export function AuditPage() {
  const { values } = useUrlState();
  const filter = { who: values['who'] ?? null, userId: values['user'] ?? null };
  const query = useQuery(AuditDocument, { filter, ...pageOf(values) });
  const list = query.data?.auditEvents;
  return (
    <>
      <PageHead title="Audit" acts={<AsOf queries={[query]} />}>
        What operators did. Each row is written before its act, and a row that is changed or removed breaks the chain.
      </PageHead>
      <List
        one="event"
        many="audit events"
        query={query}
        list={list}
        filters={isAdmin.value ? FILTERS : FILTERS.slice(0, 1)}
        bare="who"
        about={`${plural(list?.nodes.length ?? 0, 'event')} on this page, newest first.`}
        empty={
          <Empty title="No operator did anything yet" mark="all">
            <p>Reveals, cancellations of others’ calls, disconnects and drains are written here.</p>
          </Empty>
        }
        caption="Audit events"
        columns={COLUMNS}
        keyOf={({ id }) => id}
      />
    </>
  );
}

function subjectText({ subject }: AuditRow): string {
  const { userId, clientId, commandId, messageId, nodeId, stream } = subject;
  const named = [userId, clientId, commandId ?? messageId].filter((part) => part !== null).join(' / ');
  return named || (nodeId ?? stream ?? '');
}
