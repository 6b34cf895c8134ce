/** Lists the addresses of the console's pages. Each page is loaded when it is first opened. */
import { lazy } from 'preact-iso';
import { pagePath } from '../base.ts';

const Overview = lazy(() => import('../overview/page.tsx').then((room) => room.OverviewPage));
const Clients = lazy(() => import('../clients/page.tsx').then((room) => room.ClientsPage));

export type Page = typeof Overview;
export type PageRoute = {
  /** The path of the page below the console's path. A segment such as `:user` matches any id. */
  readonly path: string;
  readonly page: Page;
  /** The page for users who are not administrators, if it differs from `page`. */
  readonly ofUser?: Page;
  /** The name of the page, if only administrators may see it. */
  readonly admins?: string;
};

export const PAGE_ROUTES: readonly PageRoute[] = [
  { path: '', page: Overview, ofUser: Clients },
  { path: 'calls', page: lazy(() => import('../calls/page.tsx').then((room) => room.CallsPage)), admins: 'Calls' },
  { path: 'calls/:user/:client/:command', page: lazy(() => import('../calls/call.tsx').then((room) => room.CallPage)) },
  { path: 'waits', page: lazy(() => import('../waits/page.tsx').then((room) => room.WaitsPage)) },
  { path: 'clients', page: Clients },
  { path: 'clients/:user/:client', page: lazy(() => import('../clients/client.tsx').then((room) => room.ClientPage)) },
  { path: 'actions', page: lazy(() => import('../actions/page.tsx').then((room) => room.ActionsPage)) },
  { path: 'users', page: lazy(() => import('../users/page.tsx').then((room) => room.UsersPage)), admins: 'Users' },
  { path: 'users/:user', page: lazy(() => import('../users/user.tsx').then((room) => room.UserPage)) },
  { path: 'history', page: lazy(() => import('../history/page.tsx').then((room) => room.HistoryPage)) },
  { path: 'places', page: lazy(() => import('../places/page.tsx').then((room) => room.PlacesPage)) },
  { path: 'nodes', page: lazy(() => import('../nodes/page.tsx').then((room) => room.NodesPage)), admins: 'Nodes' },
  {
    path: 'capacity',
    page: lazy(() => import('../nodes/capacity.tsx').then((room) => room.CapacityPage)),
    admins: 'Capacity',
  },
  { path: 'sites', page: lazy(() => import('../sites/page.tsx').then((room) => room.SitesPage)) },
  { path: 'sites/:owner/:site', page: lazy(() => import('../sites/site.tsx').then((room) => room.SitePage)) },
  {
    path: 'dedup',
    page: lazy(() => import('../dedup/page.tsx').then((room) => room.DedupPage)),
    admins: 'Deduplication',
  },
  { path: 'audit', page: lazy(() => import('../audit/page.tsx').then((room) => room.AuditPage)) },
];

/** Starts to load the page of an address while the relay is still being asked who is signed in. */
export function preloadPage(address: string): void {
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
