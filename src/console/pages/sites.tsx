/** Shows the list of cooperative sites: applications that publish events to viewers and may let them invoke actions. */
import { SitesDocument, type SitePageQuery, type SitesQuery } from '../../../generated/console.ts';
import { useQuery } from '../api/query.ts';
import { pagePath, segments } from '../base.ts';
import { isAdmin, viewer } from '../shell/facts.tsx';
import { useUrlState, type Filter } from '../ui/filters.tsx';
import { AsOf, Empty, PageHead } from '../ui/page.tsx';
import { List, Table, type Column } from '../ui/table.tsx';
import { StateMark } from '../ui/values.tsx';
import { plural } from '../ui/words.ts';

type SiteRow = SitesQuery['sites']['nodes'][number];

const FILTERS: readonly Filter[] = [{ name: 'user', label: 'User' }];
/** The number of sites on one page. Each row contains sessions, so the page has fewer rows than other lists. */
const SITES = 20;

const ownerOf = ({ owner }: SiteRow): string => owner ?? viewer.value?.userId ?? '';
const hrefOf = (row: SiteRow): string => pagePath(`sites/${segments(ownerOf(row), row.siteId)}`);

const COLUMNS: readonly Column<SiteRow>[] = [
  {
    head: 'Host',
    class: 'c-1',
    cell: ({ hostConnected }) =>
      hostConnected ? <StateMark shape="up">Connected</StateMark> : <StateMark shape="down">Not connected</StateMark>,
  },
  { head: 'Site', class: 'c-3', names: true, cell: (row) => <a href={hrefOf(row)}>{row.title ?? row.siteId}</a> },
  { head: 'Owner', class: 'nw c-4 c-end', cell: ownerOf },
  { head: 'Client', class: 'nw c-off', cell: ({ clientId }) => clientId },
  {
    head: 'Events',
    class: 'fit c-off',
    cell: ({ eventNames }) => (eventNames.length === 0 ? 'any' : eventNames.join(', ')),
  },
  { head: 'Actions', class: 'fit c-5', label: 'actions', cell: (row) => actionsText(row) },
  { head: 'Sessions', class: 'r nw c-2 c-end', cell: (row) => sessionsText(row) },
];

export function SitesPage() {
  const { values } = useUrlState();
  const filters = isAdmin.value ? FILTERS : [];
  const query = useQuery(SitesDocument, {
    userId: values['user'] ?? null,
    first: SITES,
    after: values['after'] ?? null,
  });
  const list = query.data?.sites;
  return (
    <>
      <PageHead title="Sites" acts={<AsOf queries={[query]} />}>
        Applications that publish events to viewers, and may let them invoke actions while a session lasts.
      </PageHead>
      <List
        one="site"
        many="sites"
        query={query}
        list={list}
        held="Hosts that are connected to this node are shown"
        filters={filters}
        bare="user"
        about={`${plural(list?.nodes.length ?? 0, 'site')} on this page.`}
        empty={<NoSites />}
        size={SITES}
      >
        <Table
          caption="Sites"
          columns={COLUMNS}
          rows={list?.nodes ?? []}
          keyOf={(row) => `${ownerOf(row)}/${row.siteId}`}
          hrefOf={hrefOf}
        />
      </List>
    </>
  );
}

function NoSites() {
  return (
    <Empty title="No site is registered">
      <p>
        A host registers one with <code>registerSite</code>, from <code>callboard/host</code>. The demo has a task
        board: <code>npm run demo</code>.
      </p>
    </Empty>
  );
}

function actionsText({ actions, capabilityProfile }: SiteRow): string {
  if (!capabilityProfile.actionInvocation) return 'none may be invoked';
  return actions.length === 0 ? 'none' : actions.join(', ');
}

function sessionsText({ sessions }: SiteRow): string {
  if (!sessions) return '';
  const active = sessions.nodes.filter(({ state }) => state === 'ACTIVE').length;
  return `${active}${sessions.pageInfo.hasNextPage ? ' or more' : ''} active`;
}

// Defines the types that several files of the site pages use. Contains types only.

export type SiteDetails = NonNullable<SitePageQuery['site']>;
