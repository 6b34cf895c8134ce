/** Packs times into small integers. V8 would keep larger numbers as separate objects. */

/** The start of the process, in epoch milliseconds. Long-lived objects keep their times relative to it. */
const ORIGIN = Date.now();

/**
 * Returns the value as a small integer if it is one, such as the difference of two times. V8 keeps larger numbers, such
 * as times in epoch milliseconds, as separate objects.
 */
export function smallInteger(value: number): number {
  const whole = value | 0;
  return whole === value ? whole : value;
}

/**
 * Packs a time in epoch milliseconds. A time within three weeks of the start of the process then needs no separate
 * object.
 */
export function packTime(at: number): number {
  return smallInteger(at - ORIGIN);
}

/** Returns the exact time that `packTime` packed, in epoch milliseconds. */
export function unpackTime(packed: number): number {
  return ORIGIN + packed;
}
