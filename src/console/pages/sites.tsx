/** Shows the list of cooperative sites, and the page of one site: its definition, its sessions and their grants. */
import { useRoute } from 'preact-iso';
import { useState } from 'preact/hooks';
import * as gql from '../../../generated/console.ts';
import { useQuery } from '../api/query.ts';
import { accepted, errorOf, request, type RequestError } from '../api/request.ts';
import { clientHref, pagePath, segments } from '../base.ts';
import { isAdmin, viewer } from '../shell/facts.tsx';
import { useUrlState } from '../ui/url-state.ts';
import type { Filter } from '../ui/filters.tsx';
import { ActError, Empty, ErrorNotice, Loading } from '../ui/notices.tsx';
import { AsOf, Facts, Nil, PageHead, Section } from '../ui/page.tsx';
import { List, pageOf } from '../ui/list.tsx';
import { Table, column, nameColumn, labelled, quietColumn, type Column } from '../ui/table.tsx';
import type { ShapeName } from '../ui/shapes.tsx';
import { Time, Until } from '../ui/times.tsx';
import { Button, NameLink, ShortId, StateMark } from '../ui/values.tsx';
import { capitalWord } from '../ui/text-format.ts';

type SiteRow = gql.SitesQuery['sites']['nodes'][number];

const FILTERS: readonly Filter[] = [{ name: 'user', label: 'User' }];
/** The number of sites on one page. Rows contain sessions, so there are fewer rows than in other lists. */
const SITES = 20;

const ownerOf = ({ owner }: SiteRow): string => owner ?? viewer.value?.userId ?? '';
const hrefOf = (row: SiteRow): string => pagePath(`sites/${segments(ownerOf(row), row.siteId)}`);

const COLUMNS: readonly Column<SiteRow>[] = [
  column('Host', 'c-1', (row) => <HostMark {...row} />),
  nameColumn('Site', 'c-3', (row) => <NameLink href={hrefOf(row)} text={row.title ?? row.siteId} />),
  column('Owner', 'nw c-4 c-end', ownerOf),
  column('Client', 'nw c-off', ({ clientId }) => clientId),
  column('Events', 'c-off', ({ eventNames }) => (eventNames.length === 0 ? 'any' : eventNames.join(', '))),
  labelled('Actions', 'c-5', (row) => actionsText(row)),
  column('Sessions', 'r nw c-2 c-end', (row) => sessionsText(row)),
];

export function SitesPage() {
  const { values } = useUrlState();
  const query = useQuery(gql.SitesDocument, { userId: values['user'] ?? null, ...pageOf(values, SITES) });
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
            A host registers one with <code>site</code> of its runtime. The demo has a task board:{' '}
            <code>npm run demo</code>.
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
  return <StateMark shape={hostConnected ? 'up' : 'down'}>{hostConnected ? 'Connected' : 'Not connected'}</StateMark>;
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
  const query = useQuery(gql.SitePageDocument, { owner, siteId });
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
        <Empty title="There is no such site">It was never registered, or its owner removed it.</Empty>
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

type SiteDetails = NonNullable<gql.SitePageQuery['site']>;

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

// The sessions of a site, with the owner's buttons that close a session or revoke a grant.

type Session = NonNullable<SiteDetails['sessions']>['nodes'][number];
type Grant = NonNullable<Session['grants']>[number];

const SHAPES: Readonly<Record<gql.SessionState, ShapeName>> = {
  ACTIVE: 'up',
  SUSPENDED: 'stale',
  CLOSED: 'down',
  EXPIRED: 'down',
};

type SessionsProps = {
  readonly site: SiteDetails;
  /** Whether the viewer may end sessions. This is a user with the scope `host`, who sees only own sites. */
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
        (session) => session.grants && <Grants key={session.sessionId} session={session} canEnd={canEnd} run={run} />,
      )}
    </Section>
  );
}

type Run = (act: Promise<unknown>) => void;

async function close(sessionId: string): Promise<void> {
  accepted((await request(gql.CloseSessionDocument, { sessionId })).closeSiteSession);
}

async function revoke(sessionId: string, grantId: string): Promise<void> {
  accepted((await request(gql.RevokeGrantDocument, { sessionId, grantId })).revokeGrant);
}

const SESSION_COLUMNS: readonly Column<Session>[] = [
  column('State', 'c-1', ({ state }) => <StateMark shape={SHAPES[state]}>{capitalWord(state)}</StateMark>),
  nameColumn('Session', 'c-3', ({ sessionId }) => <ShortId id={sessionId} />),
  column('Opened', 'nw c-off', ({ openedAt }) => <Time at={openedAt} />),
  labelled('Ends', 'nw c-4', ({ expiresAt }) => <Until at={expiresAt} />),
  {
    head: 'Subscribers on this node',
    class: 'r c-5',
    label: 'subscribers',
    cell: ({ subscribers }) => subscribers ?? <Nil why="not shown to the holder of a grant" />,
  },
];

function closeColumn(run: Run): Column<Session> {
  return quietColumn(
    'Acts',
    'r c-2',
    ({ sessionId, state }) =>
      state === 'ACTIVE' && <Button look="btn-s btn-danger" text="Close" onClick={() => run(close(sessionId))} />,
  );
}

type GrantsProps = { readonly session: Session; readonly canEnd: boolean; readonly run: Run };

function Grants({ session, canEnd, run }: GrantsProps) {
  const { sessionId } = session;
  const acts: Column<Grant> = quietColumn(
    'Acts',
    'r',
    ({ grantId, revokedAt }) =>
      revokedAt === null && <Button look="btn-s" text="Revoke" onClick={() => run(revoke(sessionId, grantId))} />,
  );
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
  nameColumn('Grant', 'c-1', ({ grantId }) => <ShortId id={grantId} />),
  labelled('From', 'c-3', ({ parentId }) => (parentId === null ? 'the owner' : <ShortId id={parentId} />)),
  labelled('Actions', 'c-5 c-wide', ({ actions }) => namesOf(actions)),
  labelled('Events', 'c-6 c-wide', ({ events }) => namesOf(events)),
  labelled('May share', 'c-4', ({ share }) => (share ? 'yes' : 'no')),
  labelled('Ends', 'nw c-2', ({ revokedAt, expiresAt }) =>
    revokedAt === null ? (
      <Until at={expiresAt} />
    ) : (
      <>
        revoked at <Time at={revokedAt} />
      </>
    ),
  ),
];

/** Returns the names as text. Null stands for all names that the site allows. */
function namesOf(names: readonly string[] | null): string {
  if (names === null) return 'all';
  return names.length === 0 ? 'none' : names.join(', ');
}
