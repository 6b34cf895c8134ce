/** Packs times as small integers, because V8 keeps larger numbers in objects of their own. */

/** Times of long-lived objects are kept relative to this. */
const ORIGIN = Date.now();

/**
 * A difference of times, as a small integer where it is one. V8 keeps other numbers, and so every time in epoch
 * milliseconds, in an object of its own.
 */
export function smallInteger(value: number): number {
  const whole = value | 0;
  return whole === value ? whole : value;
}

/** Packs a time in epoch milliseconds; within three weeks of the start of the process it needs no object of its own. */
export function packTime(at: number): number {
  return smallInteger(at - ORIGIN);
}

/** The exact time that was packed. */
export function unpackTime(packed: number): number {
  return ORIGIN + packed;
}
