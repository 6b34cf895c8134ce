/** Links that choose the window of the overview. The URL contains the choice. */
import { useUrlState } from '../ui/url-state.ts';

export type Window = {
  readonly name: string;
  readonly seconds: number;
  readonly stepSeconds: number;
  readonly text: string;
};

export const WINDOWS: readonly Window[] = [
  { name: '15m', seconds: 900, stepSeconds: 15, text: '15 min' },
  { name: '60m', seconds: 3600, stepSeconds: 60, text: '60 min' },
  { name: '6h', seconds: 21_600, stepSeconds: 300, text: '6 h' },
  { name: '24h', seconds: 86_400, stepSeconds: 1200, text: '24 h' },
];
const DEFAULT = '15m';

/** The chosen window, and the keys that make it shorter or longer. */
export function useWindow(): Window {
  const { values } = useUrlState();
  const found = WINDOWS.find(({ name }) => name === (values['window'] ?? DEFAULT));
  return found ?? { name: DEFAULT, seconds: 900, stepSeconds: 15, text: '15 min' };
}

/** The window before or after this one; null at the ends. */
export function nextWindow(name: string, by: 1 | -1): string | null {
  const at = WINDOWS.findIndex((window) => window.name === name);
  return WINDOWS[at + by]?.name ?? null;
}

export function WindowLinks() {
  const { hrefWith } = useUrlState();
  const chosen = useWindow();
  return (
    <nav class="views" aria-label="Window">
      {WINDOWS.map(({ name, text }) => (
        <a
          key={name}
          href={hrefWith({ window: name === DEFAULT ? null : name })}
          aria-current={name === chosen.name ? 'page' : undefined}
        >
          Last {text}
        </a>
      ))}
    </nav>
  );
}
