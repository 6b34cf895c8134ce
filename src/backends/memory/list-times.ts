/** Packs times as small integers. V8 keeps larger numbers as separate objects. */

/** Long-lived objects keep their times relative to this one. */
const ORIGIN = Date.now();

/**
 * A difference of times, as a small integer if possible. V8 keeps larger numbers, such as times in epoch milliseconds,
 * as separate objects.
 */
export function smallInteger(value: number): number {
  const whole = value | 0;
  return whole === value ? whole : value;
}

/** Packs a time in epoch milliseconds. Within three weeks of the start of the process it needs no separate object. */
export function packTime(at: number): number {
  return smallInteger(at - ORIGIN);
}

/** The exact time that was packed. */
export function unpackTime(packed: number): number {
  return ORIGIN + packed;
}
