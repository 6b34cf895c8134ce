/**
 * Lists the console's pages, shows the page of the current URL if the viewer may see it, and preserves the reader's
 * position. The position includes the page's name in the tab's title and for screen readers, the focus, which moves
 * into a page that a link or key has opened, and scroll position and focus after Back, Forward and reload.
 */
import type { ComponentType } from 'preact';
import { Route, Router, useLocation } from 'preact-iso';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { pagePath } from '../base.ts';
import { Boundary, LoadFault, loaded, reloadOnce } from '../ui/loaded.tsx';
import { Empty, ErrorNotice, Loading } from '../ui/notices.tsx';
import { PageHead, label, pageTitle } from '../ui/page.tsx';
import type { IconName } from '../ui/icons.tsx';
import { LinkButton } from '../ui/values.tsx';
import { isAdmin, viewer, viewerQuery, longWaitCount } from './facts.tsx';
import { visibleText } from '../../protocol/visible-text.ts';
import { keep, recall } from '../browser-storage.ts';

/** Returns a page that is loaded when it is first opened. `title`: its heading if its file cannot be loaded. */
function page<Room>(title: string, load: () => Promise<Room>, pick: (room: Room) => ComponentType) {
  const Failed = () => (
    <>
      <PageHead title={title} />
      <LoadFault what="This page" />
    </>
  );
  return loaded(load, pick, Failed, reloadOnce);
}

// The imports of the pages' files. The bundler creates one file for each import.
const overview = () => import('../pages/overview.tsx');
const calls = () => import('../pages/calls.tsx');
const clients = () => import('../pages/clients.tsx');
const actions = () => import('../pages/actions.tsx');
const contexts = () => import('../pages/places.tsx');
const users = () => import('../pages/users.tsx');
const devices = () => import('../pages/devices.tsx');
const revocations = () => import('../pages/revocations.tsx');
const sites = () => import('../pages/sites.tsx');
const call = () => import('../pages/call.tsx');
const client = () => import('../pages/client.tsx');
const agents = () => import('../pages/agents.tsx');
const kept = () => import('../pages/history.tsx');
const nodes = () => import('../pages/nodes.tsx');
const limits = () => import('../pages/limits.tsx');
const audit = () => import('../pages/audit.tsx');

const OverviewPage = page('Overview', overview, (room) => room.OverviewPage);
const CallsPage = page('Calls', calls, (room) => room.CallsPage);
const WaitsPage = page('Waits', calls, (room) => room.WaitsPage);
const ClientsPage = page('Clients', clients, (room) => room.ClientsPage);
const ActionsPage = page('Actions', actions, (room) => room.ActionsPage);
const ActionPage = page('Action', actions, (room) => room.ActionPage);
const PlacesPage = page('Workers and windows', contexts, (room) => room.PlacesPage);
const PlacePage = page('Context', contexts, (room) => room.PlacePage);
const UsersPage = page('Users', users, (room) => room.UsersPage);
const OwnPage = page('Overview', users, (room) => room.OwnPage);
const UserPage = page('User', users, (room) => room.UserPage);
const DevicesPage = page('Devices', devices, (room) => room.DevicesPage);
const RevocationsPage = page('Revocations', revocations, (room) => room.RevocationsPage);
const SitesPage = page('Sites', sites, (room) => room.SitesPage);
const SitePage = page('Site', sites, (room) => room.SitePage);
const CallPage = page('Call', call, (room) => room.CallPage);
const ClientPage = page('Client', client, (room) => room.ClientPage);
const AgentsPage = page('Agents', agents, (room) => room.AgentsPage);
const HistoryPage = page('History', kept, (room) => room.HistoryPage);
const NodesPage = page('Nodes', nodes, (room) => room.NodesPage);
const LimitsPage = page('Limits', limits, (room) => room.LimitsPage);
const AuditPage = page('Audit', audit, (room) => room.AuditPage);

type Page = typeof OverviewPage;
type PageRoute = {
  /** The path of the page below the console's path. A segment such as `:user` matches any id. */
  readonly path: string;
  readonly page: Page;
};
type PageEntry = PageRoute & {
  readonly name: string;
  readonly icon: IconName;
  /** The second key of the page's shortcut, after `g`. */
  readonly key: string;
  /** Whether only administrators may see the page. Users see `ofUser` instead, or a page that states who may see it. */
  readonly admin?: true;
  readonly ofUser?: Page;
};

/** The groups of pages that the navigation rail lists. */
const GROUPS: readonly (readonly [name: string, pages: readonly PageEntry[]])[] = Object.entries({
  Now: [
    { path: '', name: 'Overview', icon: 'overview', key: 'o', page: OverviewPage, admin: true, ofUser: OwnPage },
    { path: 'calls', name: 'Calls', icon: 'calls', key: 'k', page: CallsPage },
    { path: 'waits', name: 'Waits', icon: 'waits', key: 'w', page: WaitsPage },
    { path: 'clients', name: 'Clients', icon: 'clients', key: 'c', page: ClientsPage },
    { path: 'actions', name: 'Actions', icon: 'actions', key: 'a', page: ActionsPage },
  ],
  Who: [
    { path: 'users', name: 'Users', icon: 'users', key: 'u', page: UsersPage, admin: true },
    { path: 'devices', name: 'Devices', icon: 'devices', key: 'd', page: DevicesPage },
    { path: 'revocations', name: 'Revocations', icon: 'revocations', key: 'v', page: RevocationsPage },
    { path: 'sites', name: 'Sites', icon: 'sites', key: 's', page: SitesPage },
    { path: 'places', name: 'Workers and windows', icon: 'places', key: 'p', page: PlacesPage },
  ],
  Kept: [
    { path: 'history', name: 'History', icon: 'history', key: 'h', page: HistoryPage },
    { path: 'audit', name: 'Audit', icon: 'audit', key: 't', page: AuditPage },
  ],
  Relay: [
    { path: 'nodes', name: 'Nodes', icon: 'nodes', key: 'n', page: NodesPage, admin: true },
    { path: 'limits', name: 'Limits', icon: 'capacity', key: 'y', page: LimitsPage, admin: true },
    { path: 'agents', name: 'Agents', icon: 'key', key: 'm', page: AgentsPage },
  ],
});

const PAGES = GROUPS.flatMap(([, pages]) => pages);

/** The pages of single objects. */
const OBJECTS: readonly PageRoute[] = [
  { path: 'calls/:user/:client/:command', page: CallPage },
  { path: 'clients/:user/:client', page: ClientPage },
  { path: 'actions/:name', page: ActionPage },
  { path: 'places/:user/:client/:context', page: PlacePage },
  { path: 'users/:user', page: UserPage },
  { path: 'sites/:owner/:site', page: SitePage },
  // Former URLs of these pages.
  { path: 'capacity', page: LimitsPage },
  { path: 'dedup', page: NodesPage },
];

const isShown = ({ admin, ofUser }: PageEntry): boolean => !admin || isAdmin.value || ofUser !== undefined;

/** Returns the groups with the pages that the viewer may see. A group may be empty. */
export const shownGroups = (): typeof GROUPS => GROUPS.map(([name, pages]) => [name, pages.filter(isShown)]);
export const shownPages = (): readonly PageEntry[] => PAGES.filter(isShown);

export function Routes() {
  const { url, path } = useLocation();
  if (viewer.value === null) {
    preloadPage(path);
    return <Unknown />;
  }
  return (
    <Boundary place={url}>
      <Router>
        {PAGES.map((entry) => (
          <Route key={entry.path} path={pagePath(entry.path)} component={pageOf(entry)} />
        ))}
        {OBJECTS.map(({ path, page }) => (
          <Route key={path} path={pagePath(path)} component={page} />
        ))}
        <Route default component={NotFound} />
      </Router>
    </Boundary>
  );
}

/** Shown instead of the page until the relay has answered who is signed in. */
function Unknown() {
  const query = viewerQuery.value;
  return (
    <>
      {query && <ErrorNotice query={query} what="who is signed in" />}
      <Loading what="who is signed in" />
    </>
  );
}

const REFUSED = new Map<string, ComponentType>();

function pageOf(entry: PageEntry): ComponentType {
  if (!entry.admin || isAdmin.value) return entry.page;
  if (entry.ofUser) return entry.ofUser;
  const { name } = entry;
  const refused = REFUSED.get(name) ?? (() => <ForAdmins name={name} />);
  REFUSED.set(name, refused);
  return refused;
}

function ForAdmins({ name }: { readonly name: string }) {
  return (
    <>
      <PageHead title={name} />
      <Empty
        mark="key"
        title={`${name} are for administrators`}
        acts={<LinkButton text="To your own pages" href={pagePath('')} />}
      >
        You are signed in as user {viewer.value?.userId}. You can see your own clients, calls and waits.
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
        acts={<LinkButton text="To the start" href={pagePath('')} />}
      >
        The address may be cut, or an id in it may contain a character that must be percent-encoded.
      </Empty>
    </>
  );
}

/** Starts to load the page of a URL while the relay is still being asked who is signed in. */
function preloadPage(address: string): void {
  const segments = segmentsOf(address);
  const found = [...PAGES, ...OBJECTS].find(({ path }) => {
    const wanted = segmentsOf(pagePath(path));
    return (
      wanted.length === segments.length && wanted.every((part, at) => part.startsWith(':') || part === segments[at])
    );
  });
  // An error is ignored here. The page itself shows it later.
  void found?.page.preload();
}

const segmentsOf = (path: string): readonly string[] => path.split('/').filter((part) => part !== '');

// Preserves the reader's position.

/** Announces the page's name: in the title of the tab, after the number of long waits, and in a live region. */
export function PageName() {
  const title = pageTitle.value;
  const count = longWaitCount.value;
  useEffect(() => {
    const badge = count > 0 ? `(${count}) ` : '';
    document.title = badge + visibleText([title, label, 'Callboard'].filter((part) => part !== '').join(' · '));
  }, [title, count]);
  return (
    <p class="sr" aria-live="polite">
      {title !== '' && `Page ${title}`}
    </p>
  );
}

/** The reader's position on a page. `focus`: the URL of the link that had the focus; null if another element had it. */
type Place = { readonly y: number; readonly focus: string | null };

const PLACES = 'callboard:places';
/** The maximum number of entries of the browser's history whose positions are stored. */
const PLACES_MAX = 100;
/** How long a page may take to load before its position is no longer restored, in milliseconds. */
const LOADING_MS = 3_000;

/** The positions, by the id that each entry of the browser's history has in its state. */
const places = new Map<string, Place>(storedPlaces());

/** Restores the reader's position when the URL changes, and records it until then. Renders nothing. */
export function KeepPlace() {
  const { url, path } = useLocation();
  const entry = useRef('');
  const shown = useRef(path);
  useLayoutEffect(() => {
    history.scrollRestoration = 'manual';
    const record = (): void => {
      if (!isRestoring) setPlace(entry.current, { y: scrollY, focus: focusedLink() });
    };
    const store = (): void => keep('session', PLACES, JSON.stringify([...places]));
    addEventListener('scroll', record, { passive: true });
    addEventListener('focusin', record);
    addEventListener('pagehide', store);
    return () => {
      removeEventListener('scroll', record);
      removeEventListener('focusin', record);
      removeEventListener('pagehide', store);
    };
  }, []);
  useLayoutEffect(() => {
    entry.current = entryId();
    // An entry that a link has just added has no position yet.
    const place = places.get(entry.current);
    const isOther = shown.current !== path;
    shown.current = path;
    if (place) return whileLoading(() => restore(place));
    return isOther ? whileLoading(focusPage) : undefined;
  }, [url]);
  return null;
}

/** Whether a position is being restored, so that scrolling is not the reader's. */
let isRestoring = false;

/** Calls `act` now and whenever the page changes, until the time for loading has passed or the user does something. */
function whileLoading(act: () => void): () => void {
  const main = document.querySelector('#main');
  const observer = new MutationObserver(act);
  const stop = (): void => {
    isRestoring = false;
    observer.disconnect();
    clearTimeout(timer);
    for (const name of USER_EVENTS) removeEventListener(name, stop, true);
  };
  const timer = setTimeout(stop, LOADING_MS);
  for (const name of USER_EVENTS) addEventListener(name, stop, true);
  if (main) observer.observe(main, { childList: true, subtree: true });
  isRestoring = true;
  act();
  return stop;
}

const USER_EVENTS = ['wheel', 'touchmove', 'keydown', 'pointerdown'] as const;

/** Scrolls to the position as soon as the page is long enough, and moves the focus to its link. */
function restore({ y, focus }: Place): void {
  if (scrollY !== y && document.documentElement.scrollHeight - innerHeight >= y) scrollTo(0, y);
  if (focus === null) return focusPage();
  if (focusedLink() === focus) return;
  const links = document.querySelectorAll<HTMLElement>('#main a');
  [...links].find((link) => link.getAttribute('href') === focus)?.focus({ preventScroll: true });
}

/**
 * Moves the focus into the page if no element has it, because the element that had it belonged to the previous page.
 */
function focusPage(): void {
  const { activeElement } = document;
  if (activeElement && activeElement !== document.body) return;
  document.querySelector<HTMLElement>('#main')?.focus({ preventScroll: true });
}

const focusedLink = (): string | null => document.activeElement?.closest('#main a')?.getAttribute('href') ?? null;

let entries = 0;

/** Returns the id of the current entry of the browser's history. An entry without an id gets one. */
function entryId(): string {
  const state: unknown = history.state;
  if (typeof state === 'string') return state;
  const id = `${Date.now()}-${++entries}`;
  history.replaceState(id, '');
  return id;
}

function setPlace(id: string, place: Place): void {
  places.delete(id);
  places.set(id, place);
  const [oldest] = places.keys();
  if (places.size > PLACES_MAX && oldest !== undefined) places.delete(oldest);
}

/** Returns the positions that were stored before the page was reloaded. */
function storedPlaces(): readonly (readonly [string, Place])[] {
  try {
    const stored: unknown = JSON.parse(recall('session', PLACES) ?? '[]');
    return Array.isArray(stored) ? stored.filter(isEntry) : [];
  } catch {
    return [];
  }
}

function isEntry(value: unknown): value is readonly [string, Place] {
  return Array.isArray(value) && typeof value[0] === 'string' && typeof value[1]?.y === 'number';
}
