/** The time slots in which a node keeps what it counted: how long they are, and how many are kept. */

/** Slots of 5 s for the last hour. */
export const FINE = { slotMs: 5_000, slots: 720 } as const;
/** Slots of a minute for the last day. */
export const COARSE = { slotMs: 60_000, slots: 1440 } as const;
