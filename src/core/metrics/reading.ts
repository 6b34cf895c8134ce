/** What a node recorded in a window of time, in the form in which nodes send it to each other. */

/** The fine slots: 5 s each, for the last hour. */
export const FINE = { slotMs: 5_000, slots: 720 } as const;
/** The coarse slots: a minute each, for the last day. */
export const COARSE = { slotMs: 60_000, slots: 1440 } as const;

// The form in which nodes send each other what they recorded in a window of time.

/**
 * Asks for `points` steps of `stepMs` milliseconds each, from the time `from` on (epoch milliseconds). They are
 * computed from slots of `slotMs` milliseconds. `from` and `stepMs` are multiples of `slotMs`.
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
 * One counter, gauge or histogram with one value of its label; `label` is null if it has no label. `counts` is a flat
 * list of its values that are not zero. A counter has two numbers for each value: the index of the point, and the
 * count. A gauge also has two: the index of the point, and the value as a whole number (durations in milliseconds). A
 * histogram has three: the index of the point, the bucket, and the count.
 */
export type ReadingRow = {
  readonly name: string;
  readonly label: string | null;
  readonly counts: readonly number[];
};

/**
 * What one node recorded. `known`: for each point `1` if the node recorded any part of it, else `0`. A row without
 * counts may be left out.
 */
export type NodeReading = {
  readonly known: string;
  readonly rows: readonly ReadingRow[];
  /** The node is of a version that samples no gauges. */
  readonly withoutGauges?: boolean;
};
