/** Shows the list of cooperative sites, and the page of one site: its definition, its sessions and their grants. */
import { useRoute } from 'preact-iso';
import { useState } from 'preact/hooks';
import {
  CloseSessionDocument,
  RevokeGrantDocument,
  SitePageDocument,
  SitesDocument,
  type SessionState,
  type SitePageQuery,
  type SitesQuery,
} from '../../../generated/console.ts';
import { useQuery } from '../api/query.ts';
import { accepted, errorOf, request, type RequestError } from '../api/request.ts';
import { clientHref, pagePath, segments } from '../base.ts';
import { isAdmin, viewer } from '../shell/facts.tsx';
import { useUrlState, type Filter } from '../ui/filters.tsx';
import { ActError, AsOf, Empty, ErrorNotice, Facts, Loading, Nil, PageHead, Section } from '../ui/page.tsx';
import { List, Table, pageOf, type Column } from '../ui/table.tsx';
import { ShortId, StateMark, Time, Until, type ShapeName } from '../ui/values.tsx';
import { capitalWord, nameClass } from '../ui/words.ts';

type SiteRow = SitesQuery['sites']['nodes'][number];

const FILTERS: readonly Filter[] = [{ name: 'user', label: 'User' }];
/** The number of sites on one page. Each row contains sessions, so the page has fewer rows than other lists. */
const SITES = 20;

const ownerOf = ({ owner }: SiteRow): string => owner ?? viewer.value?.userId ?? '';
const hrefOf = (row: SiteRow): string => pagePath(`sites/${segments(ownerOf(row), row.siteId)}`);

const COLUMNS: readonly Column<SiteRow>[] = [
  { head: 'Host', class: 'c-1', cell: (row) => <HostMark {...row} /> },
  {
    head: 'Site',
    class: 'c-3',
    names: true,
    cell: (row) => (
      <a href={hrefOf(row)} class={nameClass(row.title ?? row.siteId)}>
        {row.title ?? row.siteId}
      </a>
    ),
  },
  { head: 'Owner', class: 'nw c-4 c-end', cell: ownerOf },
  { head: 'Client', class: 'nw c-off', cell: ({ clientId }) => clientId },
  {
    head: 'Events',
    class: 'c-off',
    cell: ({ eventNames }) => (eventNames.length === 0 ? 'any' : eventNames.join(', ')),
  },
  { head: 'Actions', class: 'c-5', label: 'actions', cell: (row) => actionsText(row) },
  { head: 'Sessions', class: 'r nw c-2 c-end', cell: (row) => sessionsText(row) },
];

export function SitesPage() {
  const { values } = useUrlState();
  const query = useQuery(SitesDocument, { userId: values['user'] ?? null, ...pageOf(values, SITES) });
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
        filters={isAdmin.value ? FILTERS : []}
        bare="user"
        empty={
          <Empty title="No site is registered">
            <p>
              A host registers one with <code>site</code> of its runtime. The demo has a task board:{' '}
              <code>npm run demo</code>.
            </p>
          </Empty>
        }
        size={SITES}
        caption="Sites"
        columns={COLUMNS}
        keyOf={(row) => `${ownerOf(row)}/${row.siteId}`}
        hrefOf={hrefOf}
      />
    </>
  );
}

function HostMark({ hostConnected }: { readonly hostConnected: boolean }) {
  return hostConnected ? (
    <StateMark shape="up">Connected</StateMark>
  ) : (
    <StateMark shape="down">Not connected</StateMark>
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

export function SitePage() {
  const { owner = '', site: siteId = '' } = useRoute().params;
  const query = useQuery(SitePageDocument, { owner, siteId });
  const site = query.data?.site;
  return (
    <>
      <PageHead
        title={site?.title ?? siteId}
        crumbs={[{ href: pagePath('sites'), text: 'Sites' }]}
        acts={<AsOf queries={[query]} />}
      >
        {site ? `${siteId}, of ${owner}` : ''}
      </PageHead>
      <ErrorNotice query={query} what="this site" />
      {!query.data && query.loading && <Loading what="this site" />}
      {query.data && !site && (
        <Empty title="There is no such site">
          <p>It was never registered, or its owner removed it.</p>
        </Empty>
      )}
      {site && (
        <>
          <SiteFacts site={site} owner={owner} />
          <SiteSessions site={site} canEnd={viewer.value?.scopes.includes('HOST') ?? false} onChange={query.again} />
        </>
      )}
    </>
  );
}

type SiteDetails = NonNullable<SitePageQuery['site']>;

function SiteFacts({ site, owner }: { readonly site: SiteDetails; readonly owner: string }) {
  const { clientId, eventNames, actions, capabilityProfile } = site;
  return (
    <Section title="Definition">
      <Facts
        rows={[
          [
            'Host',
            <>
              <HostMark {...site} /> {clientId && <a href={clientHref({ userId: owner, clientId })}>{clientId}</a>}
            </>,
          ],
          ['Mode', site.mode],
          ['Events', eventNames.length === 0 ? 'any name' : eventNames.join(', ')],
          ['Actions', capabilityProfile.actionInvocation ? actions.join(', ') || 'none' : 'viewers may invoke none'],
          ['Sharing', capabilityProfile.sharing ? 'sessions may be shared' : 'sessions may not be shared'],
          site.registeredAt === null ? null : ['Registered', <Time at={site.registeredAt} />],
        ]}
      />
    </Section>
  );
}

// Shows the sessions of a site, with buttons for its owner: close a session, revoke a grant.

type Session = NonNullable<SiteDetails['sessions']>['nodes'][number];
type Grant = NonNullable<Session['grants']>[number];

const SHAPES: Readonly<Record<SessionState, ShapeName>> = {
  ACTIVE: 'up',
  SUSPENDED: 'stale',
  CLOSED: 'down',
  EXPIRED: 'down',
};

type SessionsProps = {
  readonly site: SiteDetails;
  /** Whether the viewer may end sessions: a user with the scope `host`, who sees own sites only. */
  readonly canEnd: boolean;
  readonly onChange: () => void;
};

function SiteSessions({ site, canEnd, onChange }: SessionsProps) {
  const [error, setError] = useState<RequestError | null>(null);
  const run = (act: Promise<unknown>): void => {
    setError(null);
    act.then(onChange, (cause: unknown) => setError(errorOf(cause)));
  };
  const nodes = site.sessions?.nodes ?? [];
  return (
    <Section title="Sessions" about="limited times in which viewers may use the site">
      <ActError title="It was not done." error={error} />
      <Table
        caption="Sessions of this site"
        columns={canEnd ? [...SESSION_COLUMNS, closeColumn(run)] : SESSION_COLUMNS}
        rows={nodes}
        keyOf={({ sessionId }) => sessionId}
        none="None. The owner opens one with openSiteSession."
      />
      {nodes.map(
        (session) => session.grants && <Grants key={session.sessionId} session={session} {...{ canEnd, run }} />,
      )}
    </Section>
  );
}

type Run = (act: Promise<unknown>) => void;

async function close(sessionId: string): Promise<void> {
  accepted((await request(CloseSessionDocument, { sessionId })).closeSiteSession);
}

async function revoke(sessionId: string, grantId: string): Promise<void> {
  accepted((await request(RevokeGrantDocument, { sessionId, grantId })).revokeGrant);
}

const SESSION_COLUMNS: readonly Column<Session>[] = [
  {
    head: 'State',
    class: 'c-1',
    cell: ({ state }) => <StateMark shape={SHAPES[state]}>{capitalWord(state)}</StateMark>,
  },
  { head: 'Session', class: 'c-3', names: true, cell: ({ sessionId }) => <ShortId id={sessionId} /> },
  { head: 'Opened', class: 'nw c-off', cell: ({ openedAt }) => <Time at={openedAt} /> },
  { head: 'Ends', class: 'nw c-4', label: 'ends', cell: ({ expiresAt }) => <Until at={expiresAt} /> },
  {
    head: 'Subscribers on this node',
    class: 'r c-5',
    label: 'subscribers',
    cell: ({ subscribers }) => subscribers ?? <Nil why="not shown to the holder of a grant" />,
  },
];

function closeColumn(run: Run): Column<Session> {
  return {
    head: 'Acts',
    quietHead: true,
    class: 'r c-2',
    cell: ({ sessionId, state }) =>
      state === 'ACTIVE' && (
        <button class="btn btn-s btn-danger" type="button" onClick={() => run(close(sessionId))}>
          Close
        </button>
      ),
  };
}

type GrantsProps = { readonly session: Session; readonly canEnd: boolean; readonly run: Run };

function Grants({ session, canEnd, run }: GrantsProps) {
  const { sessionId } = session;
  const acts: Column<Grant> = {
    head: 'Acts',
    quietHead: true,
    class: 'r',
    cell: ({ grantId, revokedAt }) =>
      revokedAt === null && (
        <button class="btn btn-s" type="button" onClick={() => run(revoke(sessionId, grantId))}>
          Revoke
        </button>
      ),
  };
  return (
    <>
      <h3 class="sub-head">
        Grants of session <ShortId id={sessionId} />
      </h3>
      <Table
        caption={`Grants of session ${sessionId}`}
        columns={canEnd ? [...GRANT_COLUMNS, acts] : GRANT_COLUMNS}
        rows={session.grants ?? []}
        keyOf={({ grantId }) => grantId}
        look="small"
      />
    </>
  );
}

const GRANT_COLUMNS: readonly Column<Grant>[] = [
  { head: 'Grant', class: 'c-1', names: true, cell: ({ grantId }) => <ShortId id={grantId} /> },
  {
    head: 'From',
    class: 'c-3',
    label: 'from',
    cell: ({ parentId }) => (parentId === null ? 'the owner' : <ShortId id={parentId} />),
  },
  { head: 'Actions', class: 'c-5 c-wide', label: 'actions', cell: ({ actions }) => namesOf(actions) },
  { head: 'Events', class: 'c-6 c-wide', label: 'events', cell: ({ events }) => namesOf(events) },
  { head: 'May share', class: 'c-4', label: 'may share', cell: ({ share }) => (share ? 'yes' : 'no') },
  {
    head: 'Ends',
    class: 'nw c-2',
    label: 'ends',
    cell: ({ revokedAt, expiresAt }) =>
      revokedAt === null ? (
        <Until at={expiresAt} />
      ) : (
        <>
          revoked at <Time at={revokedAt} />
        </>
      ),
  },
];

/** Returns the names as text. Null means everything that the site allows. */
function namesOf(names: readonly string[] | null): string {
  if (names === null) return 'all';
  return names.length === 0 ? 'none' : names.join(', ');
}
