/** Lists the console's pages with their names, paths, icons and shortcuts. */
import type { IconName } from '../ui/values.tsx';

export type PageEntry = {
  readonly path: string;
  readonly name: string;
  readonly icon: IconName;
  /** The second key of the page's shortcut, which follows `g`. */
  readonly key: string;
  /** Whether only administrators may see the page. */
  readonly admin: boolean;
};

export type PageGroup = { readonly name: string; readonly pages: readonly PageEntry[] };

export const PAGE_GROUPS: readonly PageGroup[] = [
  {
    name: 'Now',
    pages: [
      { path: '', name: 'Overview', icon: 'overview', key: 'o', admin: true },
      { path: 'calls', name: 'Calls', icon: 'calls', key: 'k', admin: true },
      { path: 'waits', name: 'Waits', icon: 'waits', key: 'w', admin: false },
      { path: 'clients', name: 'Clients', icon: 'clients', key: 'c', admin: false },
      { path: 'actions', name: 'Actions', icon: 'actions', key: 'a', admin: false },
    ],
  },
  {
    name: 'Kept',
    pages: [
      { path: 'history', name: 'History', icon: 'history', key: 'h', admin: false },
      { path: 'places', name: 'Workers and windows', icon: 'places', key: 'p', admin: false },
      { path: 'users', name: 'Users', icon: 'users', key: 'u', admin: true },
      { path: 'sites', name: 'Sites', icon: 'sites', key: 's', admin: false },
    ],
  },
  {
    name: 'Relay',
    pages: [
      { path: 'nodes', name: 'Nodes', icon: 'nodes', key: 'n', admin: true },
      { path: 'capacity', name: 'Capacity', icon: 'capacity', key: 'y', admin: true },
      { path: 'dedup', name: 'Deduplication', icon: 'dedup', key: 'd', admin: true },
      { path: 'audit', name: 'Audit', icon: 'audit', key: 't', admin: false },
    ],
  },
];

export const PAGES: readonly PageEntry[] = PAGE_GROUPS.flatMap(({ pages }) => pages);
