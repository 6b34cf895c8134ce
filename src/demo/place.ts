/** Defines what a demo client reports: its contexts and windows, and how it announces their changes. */
import type { ReportedContext, ReportedWindow } from '../clients/runtime/index.ts';

/** The current contexts and windows of a client, for its report. */
export interface DemoPlace {
  contexts(): readonly ReportedContext[];
  windows(): readonly ReportedWindow[];
  /** Sets the one listener that is called after each change. A later call replaces it. */
  onChange(listener: () => void): void;
}

/** Returns a place that never changes: these contexts and no windows. */
export function stillPlace(contexts: readonly ReportedContext[]): DemoPlace {
  return { contexts: () => contexts, windows: () => [], onChange() {} };
}

/** Returns a window of a user's screen. `more` overrides its defaults. */
export function windowOf(windowId: string, more: Partial<ReportedWindow> = {}): ReportedWindow {
  const looks = { focused: false, type: 'normal', state: 'normal', incognito: false, tabCount: 1 } as const;
  return { windowId, ownership: 'user-owned', ...looks, draining: false, status: 'open', ...more };
}
