import type { ReportedContext, ReportedWindow } from '../clients/runtime/index.ts';

/** Where a client can execute something, as it would report it now. */
export interface Place {
  contexts(): readonly ReportedContext[];
  windows(): readonly ReportedWindow[];
  /** Called after each change, by one at a time: the latest who asked. */
  onChange(listener: () => void): void;
}

/** A place that stays as it is. */
export function stillPlace(contexts: readonly ReportedContext[]): Place {
  return { contexts: () => contexts, windows: () => [], onChange() {} };
}

/** A window on a screen that people stand before; `more` says what is different about it. */
export function windowOf(windowId: string, more: Partial<ReportedWindow> = {}): ReportedWindow {
  const looks = { focused: false, type: 'normal', state: 'normal', incognito: false, tabCount: 1 } as const;
  return { windowId, ownership: 'user-owned', ...looks, draining: false, status: 'open', ...more };
}
