/**
 * Chooses the time that the plots of the overview show: a window up to now, or a span between two times. The URL keeps
 * the choice.
 */
import { useMemo, useState } from 'preact/hooks';
import { KEPT_MS, useSpan, type TimeSpan } from '../plot/span.ts';
import { SpanDialog } from '../plot/span-dialog.tsx';
import { useKeys } from '../shell/keys.ts';
import { clock } from '../ui/format.ts';
import { Information } from '../ui/notice.tsx';
import { useUrlState } from '../ui/url-state.ts';

type Window = { readonly name: string; readonly seconds: number; readonly stepSeconds: number; readonly text: string };

const DEFAULT: Window = { name: '15m', seconds: 900, stepSeconds: 15, text: '15 min' };
const WINDOWS: readonly Window[] = [
  DEFAULT,
  { name: '60m', seconds: 3600, stepSeconds: 60, text: '60 min' },
  { name: '6h', seconds: 21_600, stepSeconds: 300, text: '6 h' },
  { name: '24h', seconds: 86_400, stepSeconds: 1200, text: '24 h' },
];
/**
 * The pause before the series of a window are read again, in milliseconds. It is shorter than one step of the shortest
 * window.
 */
const EVERY_MS = 10_000;
/** The approximate number of steps into which a chosen span is divided. */
const STEPS = 60;

export type PlotRange = {
  /** The part of the answer that is shown. Null: all of it. */
  readonly span: TimeSpan | null;
  /** The window to request from the relay, in seconds. The relay answers windows up to now only. */
  readonly windowSeconds: number;
  readonly stepSeconds: number;
  /**
   * The pause before the series are read again, in milliseconds. Undefined for a chosen span, because the past does not
   * change.
   */
  readonly everyMs: number | undefined;
};

export function useRange(): PlotRange {
  const { span } = useSpan();
  const { seconds, stepSeconds } = useWindow();
  const ofSpan = useMemo(() => span && windowOf(span), [span]);
  return ofSpan ?? { span: null, windowSeconds: seconds, stepSeconds, everyMs: EVERY_MS };
}

function windowOf(span: TimeSpan): PlotRange {
  const stepSeconds = Math.max(5, Math.ceil((span.to - span.from) / 1000 / STEPS));
  const back = Math.min(KEPT_MS, Math.max(0, Date.now() - span.from)) / 1000;
  const windowSeconds = Math.min(KEPT_MS / 1000, Math.ceil(back) + stepSeconds);
  return { span, windowSeconds, stepSeconds, everyMs: undefined };
}

function useWindow(): Window {
  const { values } = useUrlState();
  return WINDOWS.find(({ name }) => name === values['window']) ?? DEFAULT;
}

/**
 * Shows links to the windows, and the button that chooses a span. Keys: `z` chooses a span, `[` and `]` shorten and
 * lengthen it.
 */
export function RangeBar() {
  const { values, hrefWith, change } = useUrlState();
  const { span, fault: spanFault, choose } = useSpan();
  const chosen = useWindow();
  const name = values['window'];
  const fault = spanFault ?? (name === undefined || name === chosen.name ? null : `There is no window “${name}”.`);
  const [asking, setAsking] = useState(false);
  const open = (): void => setAsking(true);
  const move = (by: 1 | -1): void => {
    if (span !== null) return choose(by < 0 ? halfOf(span) : twice(span));
    const next = WINDOWS[WINDOWS.indexOf(chosen) + by];
    if (next !== undefined) change({ window: next.name, from: null, to: null });
  };
  useKeys({ z: open, '[': () => move(-1), ']': () => move(1) });
  return (
    <>
      {fault !== null && (
        <Information>
          <b>{fault}</b> The plots show the last {chosen.text}.
        </Information>
      )}
      <div class="range">
        <nav class="views" aria-label="Window">
          {WINDOWS.map((window) => (
            <a
              key={window.name}
              href={hrefWith({ window: window === DEFAULT ? null : window.name, from: null, to: null })}
              aria-current={span === null && window === chosen ? 'page' : undefined}
            >
              Last {window.text}
            </a>
          ))}
          {span !== null && (
            <a href={hrefWith({ from: values['from'] ?? null })} aria-current="page">
              {spanText(span)}
            </a>
          )}
        </nav>
        <button class="btn btn-s" type="button" onClick={open} aria-keyshortcuts="z">
          Choose a span…
        </button>
        {asking && (
          <SpanDialog shown={span ?? latest(chosen.seconds)} onChoose={choose} onClose={() => setAsking(false)} />
        )}
      </div>
    </>
  );
}

function spanText({ from, to }: TimeSpan): string {
  const [first, last] = [from, to].map((ms) => clock(new Date(ms).toISOString()));
  return `${first} to ${last} UTC`;
}

function latest(seconds: number): TimeSpan {
  const to = Date.now();
  return { from: to - seconds * 1000, to };
}

/** Returns the middle half of a span. */
function halfOf({ from, to }: TimeSpan): TimeSpan {
  const quarter = (to - from) / 4;
  return { from: from + quarter, to: to - quarter };
}

/** Returns a span of twice the length with the same middle, cut to the time for which the relay keeps series. */
function twice({ from, to }: TimeSpan): TimeSpan {
  const half = (to - from) / 2;
  const now = Date.now();
  return { from: Math.max(now - KEPT_MS, from - half), to: Math.min(now, to + half) };
}
