/** Measures how much a series of samples grows. */

/** Returns how much the line that fits best (least squares) rises from the first sample to the last. */
export function growth(samples: readonly number[]): number {
  const middle = (samples.length - 1) / 2;
  const mean = samples.reduce((sum, value) => sum + value, 0) / samples.length;
  let [top, bottom] = [0, 0];
  samples.forEach((value, at) => {
    top += (at - middle) * (value - mean);
    bottom += (at - middle) ** 2;
  });
  return bottom === 0 ? 0 : (top / bottom) * (samples.length - 1);
}
