/**
 * Handles the pointer and the arrow keys in plots: a crosshair in all plots at once, and the choice of a span by
 * dragging.
 */
import { signal } from '@preact/signals';
import type { TimeSpan } from './span.tsx';

/**
 * The horizontal position of the pointer in a plot, from 0 (left edge) to 1 (right edge); null while it is in no plot.
 */
export const crosshair = signal<number | null>(null);

/** The span that is being dragged; null if there is none. `from` is where dragging began, so `to` may be earlier. */
export const dragged = signal<TimeSpan | null>(null);

/** The minimum width of a drag, as a fraction of the plot's width. A shorter movement is a click. */
const LEAST_SHARE = 0.02;

/** Returns the pointer handlers of a plot. A finger scrolls the page instead of choosing a span. */
export function pointerHandlers({ from, stepMs, slots }: PlotTime, choose: (span: TimeSpan) => void) {
  const length = slots * stepMs;
  const timeAt = (event: PointerEvent): number => from + shareOf(event) * length;
  return {
    onPointerDown: (event: PointerEvent): void => {
      if (event.button !== 0 || event.pointerType === 'touch' || !(event.currentTarget instanceof Element)) return;
      event.currentTarget.setPointerCapture(event.pointerId);
      dragged.value = { from: timeAt(event), to: timeAt(event) };
    },
    onPointerMove: (event: PointerEvent): void => {
      crosshair.value = Math.min(0.9999, shareOf(event));
      if (dragged.value !== null) dragged.value = { from: dragged.value.from, to: timeAt(event) };
    },
    onPointerUp: (): void => {
      const span = dragged.value;
      dragged.value = null;
      if (span !== null && Math.abs(span.to - span.from) >= length * LEAST_SHARE)
        choose({ from: Math.min(span.from, span.to), to: Math.max(span.from, span.to) });
    },
    onPointerCancel: (): void => void (dragged.value = null),
    onPointerLeave: (): void => void (crosshair.value = null),
  };
}

/** Returns the key handlers of a plot: the arrow keys move the crosshair by one slot. */
export function keyHandlers({ slots }: PlotTime) {
  const middleOf = (slot: number): number => (Math.min(slots - 1, Math.max(0, slot)) + 0.5) / slots;
  return {
    onKeyDown: (event: KeyboardEvent): void => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (by === undefined) return;
      event.preventDefault();
      const slot = Math.round((crosshair.value ?? 1) * slots - 0.5);
      crosshair.value = middleOf(crosshair.value === null ? slots - 1 : slot + by);
    },
    onBlur: (): void => void (crosshair.value = null),
  };
}

/** Returns the horizontal position of the pointer in the plot, from 0 (left edge) to 1 (right edge). */
function shareOf({ currentTarget, clientX }: PointerEvent): number {
  if (!(currentTarget instanceof Element)) return 0;
  const { left, width } = currentTarget.getBoundingClientRect();
  return Math.min(1, Math.max(0, (clientX - left) / width));
}

/** The period that a plot covers, divided into slots of equal length. Times are milliseconds. */
export type PlotTime = { readonly from: number; readonly stepMs: number; readonly slots: number };
