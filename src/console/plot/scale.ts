/** Computes the vertical scales of plots: positions of values in percent, and round ticks. */

export type Scale = {
  /** Returns the position of a value in percent: 0 at the top, 100 at the bottom, as in SVG. */
  readonly y: (value: number) => number;
  readonly ticks: readonly number[];
};

/** The kind of values on a scale: any numbers, whole numbers, or durations in milliseconds. */
export type ScaleKind = 'any' | 'whole' | 'duration';

/** The scale of a plot without a value above 0: from 0 to 1, so that the axis has labels. */
export const EMPTY_SCALE: Scale = { y: (value) => 100 - value * 100, ticks: [0, 1] };

/** Returns a scale from 0 to a round number that is at least `most`, in at most 4 steps. */
export function linearScale(most: number, kind: ScaleKind = 'any'): Scale {
  if (most <= 0) return EMPTY_SCALE;
  const step = stepOf(most / 4, kind);
  const steps = Math.max(1, Math.ceil(most / step - 1e-9));
  const top = step * steps;
  return { y: (value) => 100 - (value / top) * 100, ticks: Array.from({ length: steps + 1 }, (_, at) => at * step) };
}

/** Returns the smallest round step that is at least `rough`. */
function stepOf(rough: number, kind: ScaleKind): number {
  const step = roundStep(rough);
  if (kind === 'whole') return Math.ceil(step);
  if (kind === 'duration' && rough > 1_000) return LABEL_STEPS_MS.find((candidate) => candidate >= rough) ?? step;
  return step;
}

/** Returns the smallest number that is at least `rough` and is 1, 2, 2.5 or 5 times a power of ten. */
function roundStep(rough: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, Number.MIN_VALUE)));
  const factor = [1, 2, 2.5, 5, 10].find((candidate) => candidate * power >= rough - 1e-12) ?? 10;
  return factor * power;
}

/**
 * Returns a logarithmic scale, from the power of ten at or below `least` to the one at or above `most`. Both must be
 * above 0.
 */
export function logScale(least: number, most: number): Scale {
  const low = Math.floor(Math.log10(least));
  const high = Math.max(low + 1, Math.ceil(Math.log10(most) - 1e-9));
  const ticks = Array.from({ length: high - low + 1 }, (_, at) => 10 ** (low + at));
  return { y: (value) => 100 - ((Math.log10(Math.max(value, 10 ** low)) - low) / (high - low)) * 100, ticks };
}

/** Returns the SVG path through the points, with gaps at null. Coordinates are in percent. */
export function linePath(points: readonly (number | null)[], y: Scale['y']): string {
  let path = '';
  let previous: number | null = null;
  points.forEach((value, at) => {
    if (value !== null) {
      const x = xOf(at, points.length);
      const height = round(y(value));
      if (previous === null) path += `M${x} ${height}`;
      else path += `L${x} ${height}`;
    }
    previous = value;
  });
  return path;
}

/** Returns the middle of slot `at`, in percent of the width. */
const xOf = (at: number, slots: number): number => round(((at + 0.5) / Math.max(1, slots)) * 100);

export const round = (value: number): number => Math.round(value * 100) / 100;

/** The distances that two labels of a time axis may have, in milliseconds. */
export const LABEL_STEPS_MS = [
  ...[1, 2, 5, 10, 15, 30].map((seconds) => seconds * 1_000),
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * 60_000),
  ...[1, 2, 3, 6, 12, 24].map((hours) => hours * 3_600_000),
];
