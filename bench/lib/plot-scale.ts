/** Computes the axes of a plot: where a value is drawn, and which values have labels. */

/** One axis of a plot: the position of a value, and the values with labels. */
export type Scale = {
  readonly ticks: readonly number[];
  /** Returns the position of a value: 0 at the start of the axis, 1 at its end. */
  at(value: number): number;
};

const STEPS = [1, 2, 5] as const;
/** The number of decades up to which an axis also has labels between its decades. */
const FEW_DECADES = 2;
/** The maximum number of steps into which a linear axis is divided. */
const LINEAR_TICKS = 5;

/**
 * Returns an axis from the step at or below the smallest value to the step at or above the largest. Values are above 0.
 */
export function logScale(values: readonly number[]): Scale {
  const low = stepBelow(Math.min(...values));
  const high = Math.max(stepAbove(Math.max(...values)), low * 10);
  const [from, to] = [Math.log10(low), Math.log10(high)];
  const steps = to - from <= FEW_DECADES ? STEPS : STEPS.slice(0, 1);
  const ticks: number[] = [];
  for (let decade = Math.floor(from); decade <= to; decade++) {
    for (const step of steps) ticks.push(step * 10 ** decade);
  }
  const within = (value: number): boolean => value >= low * 0.999 && value <= high * 1.001;
  return { ticks: ticks.filter(within), at: (value) => (Math.log10(value) - from) / (to - from) };
}

/** Returns an axis from 0 to a round number at or above the largest value. */
export function linearScale(values: readonly number[]): Scale {
  const greatest = Math.max(...values, Number.MIN_VALUE);
  const size = 10 ** Math.floor(Math.log10(greatest / LINEAR_TICKS));
  const step = [1, 2, 5, 10].map((times) => times * size).find((one) => one * LINEAR_TICKS >= greatest) ?? greatest;
  const count = Math.ceil(greatest / step);
  const ticks = Array.from({ length: count + 1 }, (_, i) => i * step);
  return { ticks, at: (value) => value / (count * step) };
}

/** Returns an axis with exactly these values, evenly spaced: for a few sizes that are not decades. */
export function placesScale(values: readonly number[]): Scale {
  const places = [...new Set(values)].sort((a, b) => a - b);
  return { ticks: places, at: (value) => (places.indexOf(value) + 0.5) / places.length };
}

function stepBelow(value: number): number {
  const decade = 10 ** Math.floor(Math.log10(value));
  return decade * (STEPS.findLast((step) => step * decade <= value) ?? 1);
}

function stepAbove(value: number): number {
  const decade = 10 ** Math.floor(Math.log10(value));
  return decade * (STEPS.find((step) => step * decade >= value) ?? 10);
}
