/** The time slots in which a node keeps what it counted: how long they are, and how many are kept. */

/** The fine slots: 5 s each, for the last hour. */
export const FINE = { slotMs: 5_000, slots: 720 } as const;
/** The coarse slots: a minute each, for the last day. */
export const COARSE = { slotMs: 60_000, slots: 1440 } as const;
