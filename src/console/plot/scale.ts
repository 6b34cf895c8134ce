/** Computes the vertical scales of plots: the height of each value in percent, and round ticks. */

export type Scale = {
  /** Returns the position of a value in percent: 0 at the top, 100 at the bottom, as in SVG. */
  readonly y: (value: number) => number;
  readonly ticks: readonly number[];
};

/**
 * Returns a scale from 0 to a round number that is at least `most`, in at most 5 steps. With `isWhole`, each step is a
 * whole number.
 */
export function linearScale(most: number, isWhole = false): Scale {
  const rough = Math.max(most, 1e-9) / 4;
  const step = isWhole ? Math.ceil(roundStep(rough)) : roundStep(rough);
  const steps = Math.max(1, Math.ceil(most / step - 1e-9));
  const top = step * steps;
  return { y: (value) => 100 - (value / top) * 100, ticks: Array.from({ length: steps + 1 }, (_, at) => at * step) };
}

/** Returns the smallest round step that is not below `rough`: 1, 2, 2.5 or 5 times a power of ten. */
function roundStep(rough: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, Number.MIN_VALUE)));
  const factor = [1, 2, 2.5, 5, 10].find((candidate) => candidate * power >= rough - 1e-12) ?? 10;
  return factor * power;
}

/**
 * Returns a scale of powers of ten. It begins with the power at or below `least` and ends with the power at or above
 * `most`. `least` and `most` must be above 0.
 */
export function logScale(least: number, most: number): Scale {
  const low = Math.floor(Math.log10(least));
  const high = Math.max(low + 1, Math.ceil(Math.log10(most) - 1e-9));
  const ticks = Array.from({ length: high - low + 1 }, (_, at) => 10 ** (low + at));
  return { y: (value) => 100 - ((Math.log10(Math.max(value, 10 ** low)) - low) / (high - low)) * 100, ticks };
}

/**
 * Returns the SVG path through the known points, with a gap where a point is unknown. Its coordinates are in percent.
 */
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

/** Returns the middle of slot `at` in percent of the width, from 0 to 100. */
export function xOf(at: number, slots: number): number {
  return round(((at + 0.5) / Math.max(1, slots)) * 100);
}

export function round(value: number): number {
  return Math.round(value * 100) / 100;
}
