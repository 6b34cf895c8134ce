/** Shows the page of the current URL, if the viewer may see it. */
import type { ComponentType } from 'preact';
import { Route, Router, lazy, useLocation } from 'preact-iso';
import { pagePath } from '../base.ts';
import { Boundary, Empty, Loading, PageHead } from '../ui/page.tsx';
import { isAdmin, viewer } from './facts.tsx';

export function Routes() {
  const { url, path } = useLocation();
  if (viewer.value === null) preloadPage(path);
  if (viewer.value === null) return <Loading what="who is signed in" />;
  return (
    <Boundary place={url}>
      <Router>
        {PAGE_ROUTES.map((route) => (
          <Route key={route.path} path={pagePath(route.path)} component={pageOf(route)} />
        ))}
        <Route default component={NotFound} />
      </Router>
    </Boundary>
  );
}

const REFUSED = new Map<string, ComponentType>();

/** Returns the page if the viewer may open it, otherwise a page that says who may. */
function pageOf({ page, ofUser, admins }: PageRoute): ComponentType {
  if (isAdmin.value) return page;
  if (admins === undefined) return ofUser ?? page;
  const refused = REFUSED.get(admins) ?? (() => <ForAdmins name={admins} />);
  REFUSED.set(admins, refused);
  return refused;
}

function ForAdmins({ name }: { readonly name: string }) {
  return (
    <>
      <PageHead title={name} />
      <Empty
        mark="key"
        title={`${name === 'Capacity' || name === 'Deduplication' ? `${name} is` : `${name} are`} for administrators`}
        acts={
          <a class="btn" href={pagePath('clients')}>
            My clients
          </a>
        }
      >
        <p>You are signed in as user {viewer.value?.userId}. You can see your own clients, calls and waits.</p>
      </Empty>
    </>
  );
}

function NotFound() {
  return (
    <>
      <PageHead title="No such page" />
      <Empty
        title="The console has no page at this address"
        acts={
          <a class="btn" href={pagePath('')}>
            To the start
          </a>
        }
      >
        <p>The address may be cut, or an id in it may contain a character that must be percent-encoded.</p>
      </Empty>
    </>
  );
}

// Lists the addresses of the console's pages. Each page is loaded when it is first opened.

const Overview = lazy(() => import('../pages/overview.tsx').then((room) => room.OverviewPage));
const Clients = lazy(() => import('../pages/clients.tsx').then((room) => room.ClientsPage));

type Page = typeof Overview;
type PageRoute = {
  /** The path of the page below the console's path. A segment such as `:user` matches any id. */
  readonly path: string;
  readonly page: Page;
  /** The page for users who are not administrators, if it differs from `page`. */
  readonly ofUser?: Page;
  /** The name of the page, if only administrators may see it. */
  readonly admins?: string;
};

const PAGE_ROUTES: readonly PageRoute[] = [
  { path: '', page: Overview, ofUser: Clients },
  { path: 'calls', page: lazy(() => import('../pages/calls.tsx').then((room) => room.CallsPage)), admins: 'Calls' },
  { path: 'calls/:user/:client/:command', page: lazy(() => import('../pages/call.tsx').then((room) => room.CallPage)) },
  { path: 'waits', page: lazy(() => import('../pages/waits.tsx').then((room) => room.WaitsPage)) },
  { path: 'clients', page: Clients },
  { path: 'clients/:user/:client', page: lazy(() => import('../pages/client.tsx').then((room) => room.ClientPage)) },
  { path: 'actions', page: lazy(() => import('../pages/actions.tsx').then((room) => room.ActionsPage)) },
  { path: 'users', page: lazy(() => import('../pages/users.tsx').then((room) => room.UsersPage)), admins: 'Users' },
  { path: 'users/:user', page: lazy(() => import('../pages/users.tsx').then((room) => room.UserPage)) },
  { path: 'history', page: lazy(() => import('../pages/history.tsx').then((room) => room.HistoryPage)) },
  { path: 'places', page: lazy(() => import('../pages/places.tsx').then((room) => room.PlacesPage)) },
  { path: 'nodes', page: lazy(() => import('../pages/nodes.tsx').then((room) => room.NodesPage)), admins: 'Nodes' },
  {
    path: 'capacity',
    page: lazy(() => import('../pages/nodes.tsx').then((room) => room.CapacityPage)),
    admins: 'Capacity',
  },
  { path: 'sites', page: lazy(() => import('../pages/sites.tsx').then((room) => room.SitesPage)) },
  { path: 'sites/:owner/:site', page: lazy(() => import('../pages/sites.tsx').then((room) => room.SitePage)) },
  {
    path: 'dedup',
    page: lazy(() => import('../pages/dedup.tsx').then((room) => room.DedupPage)),
    admins: 'Deduplication',
  },
  { path: 'audit', page: lazy(() => import('../pages/audit.tsx').then((room) => room.AuditPage)) },
];

/** Starts to load the page of an address while the relay is still being asked who is signed in. */
function preloadPage(address: string): void {
  const segments = segmentsOf(address);
  const found = PAGE_ROUTES.find(({ path }) => {
    const wanted = segmentsOf(pagePath(path));
    return (
      wanted.length === segments.length && wanted.every((part, at) => part.startsWith(':') || part === segments[at])
    );
  });
  // A failure to load is shown when the page itself is shown.
  found?.page.preload().catch(() => undefined);
}

function segmentsOf(path: string): readonly string[] {
  return path.split('/').filter((part) => part !== '');
}
