/** The bounds of metrics and their series. Importers use them through limits.ts. */

/**
 * The most series in one answer, and the most points of each. A request without a step gets at most
 * SERIES_POINTS_DEFAULT points.
 */
export const SERIES_LINES = 64;
export const SERIES_POINTS = 1000;
export const SERIES_POINTS_DEFAULT = 720;
/** The range of the time window of series, in seconds: from one slot to all that is kept. */
export const SERIES_WINDOW_SECONDS = { default: 3600, min: 5, max: 24 * 3600 } as const;
/**
 * How long a node waits for what other nodes recorded, in milliseconds, and the most characters of the answer that a
 * node sends.
 */
export const SERIES_ASK_MS = 1_000;
export const SERIES_ANSWER_CHARS = 1024 * 1024;
/** The most admission scopes of the policy that `/metrics` names: those with the most reservations. */
export const SHOWN_SCOPES = 20;
