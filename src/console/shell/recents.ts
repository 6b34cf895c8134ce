/** Stores which pages of single objects were opened in this tab, latest first. */
import { useLocation } from 'preact-iso';
import { useEffect } from 'preact/hooks';
import { keep, recall } from '../browser-storage.ts';
import { pageTitle } from '../ui/page.tsx';
import type { VNode } from 'preact';

const RECENT = 'callboard:recent';
const RECENT_MAX = 8;

export function useRecord(): void {
  const { path } = useLocation();
  const title = pageTitle.value;
  useEffect(() => {
    if (!/\/console\/(calls|clients|users|actions|sites|places)\/./.test(path) || title === '') return;
    const others = recents().filter((target) => !('href' in target) || target.href !== path);
    const all = [{ href: path, text: title }, ...others.slice(0, RECENT_MAX - 1)];
    keep('session', RECENT, JSON.stringify(all.map((target) => ('href' in target ? [target.href, target.text] : []))));
  }, [path, title]);
}

export function recents(): readonly PaletteTarget[] {
  try {
    const stored: unknown = JSON.parse(recall('session', RECENT) ?? '[]');
    if (!Array.isArray(stored)) return [];
    return stored.flatMap((row: unknown) =>
      Array.isArray(row) && typeof row[0] === 'string' && typeof row[1] === 'string'
        ? [{ kind: 'Recent', href: row[0], text: row[1] } as const]
        : [],
    );
  } catch {
    return [];
  }
}

export type PaletteTarget = {
  readonly kind: 'Call' | 'Client' | 'User' | 'Action' | 'Page' | 'Act' | 'Recent';
  readonly text: string;
  readonly mark?: VNode;
} & ({ readonly href: string } | { readonly run: () => void });
