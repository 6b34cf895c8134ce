/**
 * Tracks the pointer and the arrow keys in the plots: a crosshair in all of them at once, and the span that a person
 * chooses by dragging.
 */
import { signal } from '@preact/signals';
import type { TimeSpan } from './span.tsx';

/** The position of the pointer, from 0 at the left edge to 1 at the right one; null while it is in no plot. */
export const crosshair = signal<number | null>(null);

/** The span that is being chosen by dragging, or null. Dragging began at `from`, so `to` may be earlier. */
export const dragged = signal<TimeSpan | null>(null);

/** The least width of a drag, as a fraction of the plot's width. A shorter movement is a click. */
const LEAST_SHARE = 0.02;

/** Returns the pointer handlers for the drawing of a plot. A finger scrolls the page and chooses nothing. */
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

/** Returns the key handlers for the drawing of a plot: the arrow keys move the crosshair by one slot. */
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

/** Returns where the pointer is in the drawing, from 0 at its left edge to 1 at its right one. */
function shareOf({ currentTarget, clientX }: PointerEvent): number {
  if (!(currentTarget instanceof Element)) return 0;
  const { left, width } = currentTarget.getBoundingClientRect();
  return Math.min(1, Math.max(0, (clientX - left) / width));
}

/** The time that a plot spans: slots of equal length. Times are milliseconds. */
export type PlotTime = { readonly from: number; readonly stepMs: number; readonly slots: number };
