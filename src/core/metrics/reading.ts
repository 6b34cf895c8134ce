/** The format in which nodes send each other what they recorded in a time window. */

/** The fine slots: 5 s each, for the last hour. */
export const FINE = { slotMs: 5_000, slots: 720 } as const;
/** The coarse slots: a minute each, for the last day. */
export const COARSE = { slotMs: 60_000, slots: 1440 } as const;

// Questions and answers between nodes about a time window.

/**
 * Asks for `points` steps of `stepMs` milliseconds each, beginning at `from` (epoch milliseconds). They are computed
 * from slots of `slotMs` milliseconds. `from` and `stepMs` are multiples of `slotMs`.
 */
export type ReadingQuery = {
  /** The names of the counters, histograms and sampled gauges to read. */
  readonly names: readonly string[];
  readonly from: number;
  readonly slotMs: (typeof FINE | typeof COARSE)['slotMs'];
  readonly stepMs: number;
  readonly points: number;
};

/**
 * The values of one counter, gauge or histogram for one value of its label. `label`: null if it has no label. `counts`:
 * a flat list of the values that are not zero. A counter has two numbers for each value: the index of the point, and
 * the count. A gauge has two: the index of the point, and the value as a whole number (durations in milliseconds). A
 * histogram has three: the index of the point, the bucket, and the count.
 */
export type ReadingRow = {
  readonly name: string;
  readonly label: string | null;
  readonly counts: readonly number[];
};

/**
 * What one node recorded. `known`: one character for each point: `1` if the node recorded any part of the point, and
 * `0` otherwise. Rows without counts may be omitted.
 */
export type NodeReading = {
  readonly known: string;
  readonly rows: readonly ReadingRow[];
  /** True if the node runs a version that samples no gauges. */
  readonly withoutGauges?: boolean;
};
