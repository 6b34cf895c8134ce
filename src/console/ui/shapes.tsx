/** Draws the shapes of states on a grid of 14. Colour is never the only sign of a state. */
import type { JSX } from 'preact';

const SHAPES = {
  completed: (
    <>
      <circle class="shape-fill" cx="7" cy="7" r="6" />
      <path class="shape-cut" d="m4.4 7.2 1.9 1.9 3.4-3.9" />
    </>
  ),
  failed: (
    <>
      <rect class="shape-fill" x="1.25" y="1.25" width="11.5" height="11.5" rx="1.5" />
      <path class="shape-cut" d="m4.8 4.8 4.4 4.4m0-4.4-4.4 4.4" />
    </>
  ),
  cancelled: (
    <>
      <circle class="shape-line" cx="7" cy="7" r="5.25" />
      <path class="shape-line" d="M4.5 7h5" />
    </>
  ),
  expired: (
    <>
      <path class="shape-line" stroke-linejoin="round" d="M2.5 1.5h9L7 7l4.5 5.5h-9L7 7z" />
      <path class="shape-fill" d="M4.6 12h4.8L7 9.2z" />
    </>
  ),
  unknown: (
    <>
      <path class="shape-line" stroke-linejoin="round" d="M7 1 13 7l-6 6-6-6z" />
      <path class="shape-fill" d="M7 1 1 7l6 6z" />
    </>
  ),
  up: <circle class="shape-fill" cx="7" cy="7" r="4" />,
  stale: (
    <>
      <circle class="shape-line" cx="7" cy="7" r="4" />
      <path class="shape-fill" d="M7 3a4 4 0 0 0 0 8z" />
    </>
  ),
  down: <circle class="shape-line" cx="7" cy="7" r="4" />,
  recorded: <circle class="shape-dash" cx="7" cy="7" r="4.5" />,
  drain: <path class="shape-line" d="M7 2v8m-3.5-3.2L7 10.3l3.5-3.5" stroke-linecap="round" />,
  pass: <path class="shape-line" stroke-linecap="round" stroke-linejoin="round" d="m2.5 7.4 3 3 6-6.8" />,
  skip: <path class="shape-line" stroke-linecap="round" d="M3.5 7h7" />,
  proven: <circle class="shape-fill" cx="7" cy="7" r="4.5" />,
  open: <circle class="shape-dash" cx="7" cy="7" r="5" />,
  late: (
    <>
      <circle class="shape-line" cx="7" cy="7" r="4.5" />
      <path class="shape-line" stroke-linecap="round" d="M7 4.6V7l1.6 1.2" />
    </>
  ),
  note: <circle class="shape-line" cx="7" cy="7" r="2.5" />,
} satisfies Record<string, JSX.Element>;

export type ShapeName = keyof typeof SHAPES;

export function Shape({ name }: { readonly name: ShapeName }) {
  return (
    <svg viewBox="0 0 14 14" aria-hidden="true">
      {SHAPES[name]}
    </svg>
  );
}

/** Draws four bars, of which the first `filled` (0 to 4) are filled: those up to the last proven stage. */
export function Pips({ filled, wide = false }: { readonly filled: number; readonly wide?: boolean }) {
  const bars = [0, 1, 2, 3].map((bar) =>
    bar < filled ? (
      <rect key={bar} class="pip-on" x={bar * 4.75} y="0" width="3" height="12" rx="0.75" />
    ) : (
      <rect key={bar} class="pip-off" x={bar * 4.75 + 0.5} y="0.5" width="2" height="11" rx="0.5" />
    ),
  );
  return (
    <svg viewBox="0 0 18 12" aria-hidden="true" class={wide ? 'wide' : undefined}>
      {bars}
    </svg>
  );
}

/** Draws the logo of Callboard: three solid bars, and a dashed one for what is not proven. */
export function Mark() {
  return (
    <svg viewBox="0 0 20 16" aria-hidden="true">
      {[0, 5.25, 10.5].map((x) => (
        <rect key={x} x={x} y="1" width="3.5" height="14" rx="1" fill="currentColor" />
      ))}
      <rect
        x="16.25"
        y="1.5"
        width="3"
        height="13"
        rx="0.75"
        fill="none"
        stroke="currentColor"
        stroke-dasharray="2.2 1.4"
      />
    </svg>
  );
}
